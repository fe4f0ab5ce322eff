"""`overspill login`, `login --list` and `logout` as a user meets them."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit
from urllib.request import urlopen

import pytest
from commands import RUN, Place, bare_environment
from forked import Forked
from login_servers import Door, answer_url, door, page

URL = "https://mcp.example.com/mcp"


@pytest.fixture
def notes() -> Iterator[Door]:
    with door() as opened:
        opened.be_issuer()
        yield opened


def start_anew(args: list[str], **options: Any) -> subprocess.Popen[str]:
    return subprocess.Popen([sys.executable, "-c", RUN, *args], **options)


class Process:
    """`overspill login --no-browser` in a bare environment, up to where it shows the address."""

    def __init__(
        self, home: Path, *words: str, stdin: int = subprocess.PIPE, start: Callable[..., subprocess.Popen[str]] = Forked
    ) -> None:
        pipes: dict[str, Any] = {"stdin": stdin, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        self.process = start(["login", *words, "--no-browser"], env=bare_environment(home), cwd=home, text=True, **pipes)
        self.lines: list[str] = []
        assert self.process.stderr
        for line in self.process.stderr:
            self.lines.append(line)
            if "Paste the address" in line:
                break
        self.link = next((line.strip() for line in self.lines if line.startswith("http")), "")

    def answer(self, **changes: str) -> str:
        asked = {name: values[0] for name, values in parse_qs(urlsplit(self.link).query).items()}
        return answer_url(asked["redirect_uri"], **{"code": "c", "state": asked["state"], **changes}) + "\n"

    def finish(self, typed: str) -> tuple[int, str, str]:
        out, err = self.process.communicate(typed, timeout=60)
        return self.process.returncode, out, "".join(self.lines) + err


def configure(place: Place, **servers: str) -> None:
    file = place.root / ".cursor" / "mcp.json"
    file.parent.mkdir(exist_ok=True)
    file.write_text(json.dumps({"mcpServers": {name: {"url": url} for name, url in servers.items()}}))


def test_a_pasted_answer_logs_in_and_the_login_is_listed_without_a_token(place: Place, notes: Door):
    configure(place, notes=notes.url)
    notes.check = {"token-of-notes": {"notes:read"}}.get
    notes.pages["/token"] = page({"access_token": "token-of-notes", "token_type": "Bearer"})
    run = Process(place.root, "notes", start=start_anew)
    code, out, err = run.finish("rubbish\nhttp://[rubbish?\n" + run.answer(state="wrong") + run.answer())
    assert (code, out) == (0, "Logged in to notes. Scopes: notes:read.\n")
    assert "in a file that only you can read" in err
    assert "token-of-notes" not in out + err
    listed = place.overspill("login", "--list")
    assert listed.out == f"Server\tScopes\tExpires\n{notes.url}\tnotes:read\t\n"
    assert json.loads(place.overspill("login", "--list", "--json").out) == [
        {"server": notes.url, "scopes": "notes:read", "expires": ""}
    ]


def test_a_wrong_paste_gets_an_answer_and_another_try(place: Place, notes: Door):
    run = Process(place.root, notes.url)
    code, out, err = run.finish("rubbish\n" + run.answer(state="wrong") + run.answer())
    assert (code, out) == (0, "Logged in to 127.0.0.1. Scopes: notes:read.\n")
    assert err.count("That is not the address that the login ends on. Copy all of it from the browser's address bar") == 2


def test_five_wrong_pastes_end_the_login(place: Place, notes: Door):
    run = Process(place.root, notes.url)
    code, out, err = run.finish("rubbish\n" * 5 + run.answer())
    assert (code, out) == (2, "")
    told = "None of the 5 pasted addresses is the one that the login ends on. Nothing was stored. Run the command again."
    assert err.endswith(f"overspill: error: {told}\n")
    assert place.overspill("login", "--list").out == "Server\tScopes\tExpires\n"


@pytest.mark.parametrize("address", ["ftp://x", "https://", "//x", "http://a b/mcp"])
def test_an_address_of_another_kind_is_an_error(place: Place, address: str):
    result = place.overspill("login", address)
    told = f"overspill: error: {address} is not the address of a server. Use one like https://example.com/mcp.\n"
    assert (result.code, result.err) == (2, told)


@pytest.mark.parametrize("stdin", [subprocess.PIPE, subprocess.DEVNULL])
def test_an_answer_that_is_not_pasted_may_still_come_from_a_browser(place: Place, notes: Door, stdin: int):
    run = Process(place.root, notes.url, stdin=stdin)
    if run.process.stdin:
        run.process.stdin.close()  # as in a container without a terminal
        run.process.stdin = None
    urlopen(run.answer().strip()).close()  # noqa: S310  # of the process above
    code, out, _ = run.finish("")
    assert (code, out) == (0, "Logged in to 127.0.0.1. Scopes: notes:read.\n")


def test_a_signal_ends_the_wait_and_stores_nothing(place: Place, notes: Door):
    run = Process(place.root, notes.url)
    run.process.send_signal(signal.SIGINT)
    assert run.finish("")[0] == 130
    assert place.overspill("login", "--list").out == "Server\tScopes\tExpires\n"


def test_logging_out_forgets_the_login(place: Place, notes: Door):
    notes.be_issuer(revocation_endpoint=f"{notes.origin}/revoke")
    revoked: list[bytes] = []
    notes.pages["/revoke"] = lambda body: (revoked.append(body), page({}))[1]
    run = Process(place.root, notes.url)
    assert run.finish(run.answer())[0] == 0
    assert place.overspill("logout", notes.url).out == "Logged out of 127.0.0.1.\n"
    assert revoked == [b"token=r1&client_id=c1"]
    again = place.overspill("logout", notes.url)
    assert (again.code, again.err) == (
        2,
        "overspill: error: There is no login at 127.0.0.1. List the logins with `overspill login --list`.\n",
    )


def test_a_name_that_nobody_has_is_an_error_with_a_hint(place: Place):
    configure(place, linear=URL)
    result = place.overspill("login", "liner")
    assert result.code == 2
    assert "have a server 'liner' with a URL. Did you mean 'linear'?" in result.err


def test_a_name_that_several_servers_have_is_an_error(place: Place):
    configure(place, linear=URL)
    (place.root / ".claude.json").write_text(json.dumps({"mcpServers": {"linear": {"url": "https://other.example/mcp"}}}))
    result = place.overspill("login", "linear")
    assert (result.code, "Several servers are called linear" in result.err) == (2, True)


def test_a_file_of_the_working_directory_names_no_server(place: Place):
    for name in (".mcp.json", ".cursor/mcp.json"):
        Path(name).parent.mkdir(exist_ok=True)
        Path(name).write_text(json.dumps({"mcpServers": {"notes": {"url": "https://evil.example/mcp"}}}))
    assert "Neither your settings nor your clients have a server 'notes'" in place.overspill("login", "notes").err


def test_a_file_of_the_working_directory_sets_nothing_about_logins(place: Place):
    Path("overspill.yaml").write_text("login:\n  clientMetadataUrl: https://evil.example/client.json\n")
    Path(".overspill.yaml").write_text("login:\n  clientMetadataUrl: https://evil.example/client.json\n")
    shown = place.overspill("config")
    assert "evil.example" not in shown.out


@pytest.mark.parametrize("words", [[], ["a", "--list"]])
def test_a_server_or_a_list(place: Place, words: list[str]):
    assert place.overspill("login", *words).code == 2


def test_a_wrapped_server_keeps_its_name(place: Place, notes: Door):
    configure(place, notes=notes.url)
    assert place.overspill("wrap", "cursor", "--command", sys.executable).code == 0
    run = Process(place.root, "notes")
    assert run.finish(run.answer())[0] == 0


def test_wrapping_a_remote_server_names_the_command(place: Place):
    configure(place, linear=URL)
    result = place.overspill("wrap", "cursor", "--command", "overspill")
    assert "Each of these may need one login: linear. To log in: " in result.out
    assert "overspill login NAME" in result.out
