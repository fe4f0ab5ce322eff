"""Clients that speak HTTP reach the hub without a process of ours: by a token of their own."""

from __future__ import annotations

import json
import os
import resource
import shutil
import signal
import socket
import stat
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
from client_files import CODEX
from http_hubs import HttpHome, entry, http_home, read, token
from http_proxy import ByHand
from hubs import ENVIRON, SMALL
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from upstream import is_alive
from waiting import until, wait_until
from wire import OVERSPILL, PATIENCE

import overspill
from overspill.mcp.host_configs.hub_clients import HubClient, HubClients

LARGE = {"count": 5000}


@pytest.fixture
def home() -> Iterator[HttpHome]:
    with http_home() as found:
        yield found


def ping(url: str, **headers: str) -> int:
    return httpx2.post(url, json={"jsonrpc": "2.0", "id": 1, "method": "ping"}, headers=headers).status_code


@pytest.mark.anyio
@pytest.mark.parametrize("mode", ["legacy", "auto"])
@pytest.mark.slow
async def test_a_client_stores_and_reads_what_is_large(home: HttpHome, mode: str):
    file = home.write(a=entry(), b=entry())
    before = file.read_bytes()
    assert "The entry servers is the address of the hub, which runs them all." in home.wrap()
    found = read(file)
    assert list(found) == ["servers"]
    with home.hub():
        async with (
            httpx2.AsyncClient(headers=found["servers"]["headers"], timeout=60) as http,
            Client(streamable_http_client(found["servers"]["url"], http_client=http), mode=mode) as client,
        ):
            assert {"a__lines", "b__lines", "get_tool_output"} <= {tool.name for tool in (await client.list_tools()).tools}
            assert (await client.call_tool("b__lines", {"count": 1})).content[0].text == SMALL  # pyright: ignore
            link: Any = (await client.call_tool("a__lines", LARGE)).content[-1]
            content: Any = (await client.read_resource(link.uri)).contents[0]
            assert content.text.startswith(SMALL)
            for command in (("hub", "status"), ("doctor",), ("stats",)):
                said = home.overspill(*command).stdout
                assert "1 client over HTTP" in said
                assert str(file) in said
            with home.front() as front:  # the socket is open too
                front.hello()
                assert "1 conversation through 1 front and 1 client over HTTP" in home.overspill("hub", "status").stdout
    assert home.overspill("unwrap", "cursor").returncode == 0
    assert file.read_bytes() == before


@pytest.mark.slow
def test_only_a_known_token_is_let_in_and_no_other_site(home: HttpHome):
    file = home.write(a=entry())
    home.wrap()
    url = read(file)["servers"]["url"]
    right = {"Authorization": f"Bearer {token(file)}", "Accept": "application/json, text/event-stream"}
    with home.hub():
        assert ping(url) == 401
        assert ping(url, Authorization="Bearer overspill_" + "x" * 43) == 401
        assert ping(url, **right, Origin="https://evil.example") == 403
        assert ping(url, **right, Host="evil.example") == 421
        assert ping(url, **right) not in (401, 403, 421)
    assert token(file) not in "".join(each.read_text() for each in home.folder.rglob("hub-clients/*"))
    modes = [
        stat.S_IMODE(each.stat().st_mode) for each in (*home.folder.rglob("hub-clients"), *home.folder.rglob("hub-clients/*"))
    ]
    assert modes == [0o700, 0o600]


@pytest.mark.slow
@pytest.mark.promise("nobody-elses")
def test_two_tokens_with_the_same_server_do_not_meet(home: HttpHome, tmp_path: Path):
    (tmp_path / "server.py").write_text(ENVIRON)
    same = {"command": sys.executable, "args": ["server.py"], "cwd": str(tmp_path), "share": True, "idleMinutes": 9}
    one = home.write(e={**same, "env": {"WHOSE": "one"}}, lines=entry())
    other = home.write(".codeium/windsurf/mcp_config.json", e={**same, "env": {"WHOSE": "other"}}, lines=entry())
    home.wrap()
    home.wrap("windsurf")
    url = read(one)["servers"]["url"]
    assert read(other)["servers"]["serverUrl"] == url
    with home.hub():
        clients = [ByHand(url, token(file)) for file in (one, other)]
        for whose, client in zip(("one", "other"), clients, strict=True):
            assert json.loads(client.text("e__where")) == [str(tmp_path), whose, []]
        call = {"id": 3, "method": "tools/call", "params": {"name": "lines__lines", "arguments": LARGE}}
        look = {"id": 4, "method": "resources/read", "params": {"uri": clients[0].post(call)["result"]["content"][-1]["uri"]}}
        assert clients[0].post(look)["result"]["contents"][0]["text"].startswith(SMALL)
        assert "error" in clients[1].post(look)
        stolen = {"Authorization": f"Bearer {token(other)}", "mcp-session-id": clients[0].session}
        assert ping(url, **stolen, Accept="application/json, text/event-stream") == 404


@pytest.mark.slow
def test_what_was_stored_is_read_with_the_same_token_after_the_hub_was_killed(home: HttpHome):
    file = home.write(lines=entry())
    home.wrap()
    url = read(file)["servers"]["url"]
    with home.hub() as hub:
        call = {"id": 3, "method": "tools/call", "params": {"name": "lines", "arguments": LARGE}}
        uri = ByHand(url, token(file)).post(call)["result"]["content"][-1]["uri"]
        hub.send_signal(signal.SIGKILL)
        hub.wait(PATIENCE)
    with home.hub():
        found = ByHand(url, token(file)).post({"id": 4, "method": "resources/read", "params": {"uri": uri}})
        assert found["result"]["contents"][0]["text"].startswith(SMALL)


@pytest.mark.anyio
@pytest.mark.slow
async def test_unwrap_revokes_the_token_and_ends_what_it_was_used_for(home: HttpHome):
    file = home.write(a=entry())
    home.wrap()
    url, headers = read(file)["servers"]["url"], {"Authorization": f"Bearer {token(file)}"}
    with home.hub():
        client = ByHand(url, token(file))
        server = int(client.text("pid"))
        listening = {**headers, "Accept": "text/event-stream", "mcp-session-id": client.session}
        async with httpx2.AsyncClient(timeout=PATIENCE) as http, http.stream("GET", url, headers=listening) as stream:
            assert stream.status_code == 200
            assert home.overspill("unwrap", "cursor").returncode == 0
            with pytest.raises(httpx2.HTTPError):
                async for _ in stream.aiter_raw():
                    pass
        await until(lambda: not is_alive(server))
        assert ping(url, **headers) == 401
        assert home.pid()
    assert not list(home.folder.rglob("hub-clients/*"))


@pytest.mark.slow
def test_restart_keeps_the_process_the_port_and_the_conversations(home: HttpHome):
    file = home.write(lines=entry())
    home.wrap()
    url = read(file)["servers"]["url"]
    with home.hub() as hub, home.front() as front:
        front.hello()
        uri = front.call("lines", LARGE)["content"][-1]["uri"]
        began = (home.status() or {})["began"]
        assert home.overspill("hub", "restart").returncode == 0
        assert front.text("lines", {"count": 1}) == SMALL
        assert front.result("resources/read", {"uri": uri})["contents"][0]["text"].startswith(SMALL)
        assert ByHand(url, token(file)).text("lines", {"count": 1}) == SMALL
        found = home.status()
        assert found
        assert found["pid"] == hub.pid
        assert found["began"] > began
        assert len(found["fronts"]) == 2


@pytest.mark.slow
def test_a_hub_with_a_port_replaces_the_hub_that_a_front_has_started(home: HttpHome):
    with home.front() as front:
        front.hello()
        first = home.pid()
        with home.hub() as hub:
            assert front.text("lines", {"count": 1}) == SMALL
            assert home.pid() == hub.pid != first
            again = home.overspill("hub", "run", "--port", str(home.port))
            assert again.returncode == 2
            assert again.stderr.startswith("overspill: error: A hub already runs at")
            assert again.stderr.count("\n") == 1


@pytest.mark.slow
def test_after_an_update_restart_leads_to_a_hub_of_the_new_version_with_the_same_port(home: HttpHome):
    shutil.copytree(Path(overspill.__file__).parent, home.folder / "src" / "overspill")
    home.env["PYTHONPATH"] = str(home.folder / "src")
    file = home.write(lines=entry())
    home.wrap()
    url = read(file)["servers"]["url"]
    with home.hub(forked=False) as hub:
        os.utime(home.folder / "src" / "overspill" / "__init__.py")
        new = home.place_in_another_process()
        done = subprocess.run([*OVERSPILL, "hub", "restart"], env=home.env, check=False)
        assert done.returncode == 0
        assert ByHand(url, token(file)).text("lines", {"count": 1}) == SMALL
        assert hub.poll() is None
        assert os.path.exists(new)


@pytest.mark.slow
def test_a_hub_with_a_port_that_may_end_waits_for_its_last_client(home: HttpHome):
    file = home.write(lines=entry())
    home.wrap()
    with home.hub("--idle-minutes", "0.02") as hub:
        client = ByHand(read(file)["servers"]["url"], token(file))
        with pytest.raises(subprocess.TimeoutExpired):
            hub.wait(3)
        client.leave()
        assert hub.wait(PATIENCE) == 0


@pytest.mark.parametrize("port", ["80", "x", "70000"])
def test_a_bad_port_is_refused(home: HttpHome, port: str):
    for command in ("install", "run"):
        done = home.overspill("hub", command, "--port", port)
        assert done.returncode == 2
        assert "'--port'" in done.stderr


@pytest.mark.slow
def test_a_port_that_another_program_has_is_named(home: HttpHome):
    with socket.create_server(("127.0.0.1", home.port)), home.front() as front:
        front.hello()
        before = home.pid()
        done = home.overspill("hub", "run", "--port", str(home.port))
        assert done.returncode == 2
        assert done.stderr.startswith(
            f"overspill: error: Cannot listen on 127.0.0.1:{home.port}: Address already in use. If another"
        )
        assert done.stderr.count("\n") == 1
        assert home.pid() == before


@pytest.mark.slow
def test_nobody_is_let_in_while_others_can_open_the_folder_of_tokens(home: HttpHome):
    file = home.write(lines=entry())
    home.wrap()
    url, headers = read(file)["servers"]["url"], {"Authorization": f"Bearer {token(file)}"}
    folder = next(home.folder.rglob("hub-clients"))
    folder.chmod(0o755)
    with home.hub() as hub:
        assert hub.stderr
        assert (
            f"no token is let in: {folder} is not a folder that only you can open. Run `chmod 700` on it" in hub.stderr.readline()
        )
        assert ping(url, **headers) == 401
        folder.chmod(0o700)
        wait_until(lambda: ping(url, **headers), lambda code: code != 401)


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux changes the limits of another process")
@pytest.mark.slow
def test_a_hub_without_free_descriptors_ends_nothing(home: HttpHome):
    file = home.write(lines=entry())
    home.wrap()
    url = read(file)["servers"]["url"]
    with home.hub() as hub, httpx2.Client(timeout=PATIENCE) as http:
        client = ByHand(url, token(file))
        server = client.text("pid")
        headers = {"Authorization": f"Bearer {token(file)}", "Accept": "application/json, text/event-stream"}
        calls = {"jsonrpc": "2.0", "id": 1, "method": "ping"}, {**headers, "mcp-session-id": client.session}

        def ping_connected() -> int:
            return http.post(url, json=calls[0], headers=calls[1]).status_code

        ping_connected()
        _, most = resource.prlimit(hub.pid, resource.RLIMIT_NOFILE)
        resource.prlimit(hub.pid, resource.RLIMIT_NOFILE, (3, most))
        later = time.monotonic() + 1.5  # longer than between two looks at the tokens
        while time.monotonic() < later:
            assert ping_connected() == 200
        resource.prlimit(hub.pid, resource.RLIMIT_NOFILE, (most, most))
        assert client.text("pid") == server


def test_a_file_that_disappears_or_is_no_tokens_locks_nobody_out(tmp_path: Path):
    folder = tmp_path / "clients"
    known, digest = HubClients(folder), "a" * 32
    known.write(digest, HubClient("mcp.json", "/", "/bin", "{}"))
    (folder / f"{'b' * 32}.json").symlink_to(tmp_path / "gone")
    (folder / "é.json").touch()
    assert digest in known.stamps()
    assert "".join(known.stamps()).isascii()


@pytest.mark.slow
def test_a_server_that_is_new_joins_under_the_same_token_and_one_can_leave(home: HttpHome):
    file = home.write(a=entry(), b=entry())
    home.wrap()
    mine = token(file)
    content = json.loads(file.read_text())
    content["mcpServers"]["c"] = entry()
    file.write_text(json.dumps(content, indent=2))
    home.wrap()
    assert (list(read(file)), token(file)) == (["servers"], mine)
    assert "Nothing to change" in home.wrap()
    home.overspill("unwrap", "cursor", "--server", "b")
    assert (sorted(read(file)), token(file)) == (["b", "servers"], mine)
    with home.hub():
        names = ByHand(read(file)["servers"]["url"], mine).post({"id": 2, "method": "tools/list"})["result"]["tools"]
        prefixes = {name.partition("__")[0] for tool in names if "__" in (name := tool["name"])}
        assert prefixes == {"a", "c"}
    home.overspill("unwrap", "cursor")
    assert read(file) == {"a": entry(), "b": entry(), "c": entry()}


def test_the_two_ways_to_write_one_entry_follow_each_other(home: HttpHome):
    file = home.write(a=entry(), b=entry())
    before = file.read_bytes()
    home.wrap()
    assert home.overspill("wrap", "cursor", "--one").returncode == 0
    assert "--config-env" in file.read_text()
    assert not list(home.folder.rglob("hub-clients/*"))
    home.wrap()
    assert len(list(home.folder.rglob("hub-clients/*"))) == 1
    assert "Nothing to change" in home.overspill("wrap", "cursor").stdout
    home.overspill("unwrap", "cursor")
    assert file.read_bytes() == before


@pytest.mark.parametrize(
    ("client", "place", "spelled"),
    [
        ("claude-code", ".claude.json", {"type": "http", "url": "URL", "headers": "HEADERS"}),
        ("cline", "CLINE", {"type": "streamableHttp", "url": "URL", "headers": "HEADERS"}),
        ("gemini-cli", ".gemini/settings.json", {"httpUrl": "URL", "headers": "HEADERS"}),
        ("windsurf", ".codeium/windsurf/mcp_config.json", {"serverUrl": "URL", "headers": "HEADERS"}),
    ],
)
def test_the_entry_is_in_the_form_of_its_client(home: HttpHome, client: str, place: str, spelled: dict[str, str]):
    cline = ".config/Code/User/globalStorage/saoudrizwan.claude-dev/settings/cline_mcp_settings.json"
    file = home.write(place.replace("CLINE", cline), a=entry())
    home.wrap(client)
    found = read(file)["servers"]
    assert found == {
        key: {"URL": f"http://127.0.0.1:{home.port}/mcp", "HEADERS": {"Authorization": f"Bearer {token(file)}"}}.get(value, value)
        for key, value in spelled.items()
    }


def refuse(home: HttpHome, *words: str) -> str:
    done = home.overspill("wrap", *words, "--hub-http")
    assert done.returncode == 2
    assert not list(home.folder.rglob("hub-clients/*"))
    return done.stderr


def test_without_an_installed_port_wrap_says_what_to_run(home: HttpHome):
    file = home.write(a=entry())
    before = file.read_bytes()
    home.overspill("hub", "install")
    assert "on a fixed port. To install one: overspill hub install --port" in refuse(home, "cursor").replace("\n", " ")
    home.overspill("hub", "uninstall")
    refuse(home, "cursor")
    assert file.read_bytes() == before


def test_files_that_cannot_have_a_token_are_left_alone(home: HttpHome):
    file = home.write(a=entry())
    file.chmod(0o644)
    assert "To prevent it: chmod 600" in refuse(home, "cursor")
    project = home.write("shop/.cursor/mcp.json", a=entry())
    assert "belongs to a project" in refuse(home, str(project))
    home.write(".config/Claude/claude_desktop_config.json", a=entry())
    assert "speaks only stdio" in refuse(home, "claude-desktop")
    codex = home.folder / ".codex" / "config.toml"
    codex.parent.mkdir()
    codex.write_text(CODEX)
    codex.chmod(0o600)
    assert "is not JSON" in refuse(home, "codex")
