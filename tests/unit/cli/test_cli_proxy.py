"""`overspill proxy` at the command line: what it takes, and how it says what is wrong."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from commands import Place
from wire import EVERY, PATIENCE, Process, every, proxied

pytestmark = pytest.mark.slow

SECRET = "s3cret-value"  # noqa: S105


ONE_WAY = (
    "overspill: error: Give exactly one of `-- COMMAND ARGS…`, --url URL, --url-env VARIABLE, --config FILE or "
    "--config-env VARIABLE. For a settings file, use --settings.\n"
)
ADDRESS = "is not the address of a server. Use one like https://example.com/mcp.\n"
GONE = "cannot be started: no such command {!r}. Check the spelling, or give its full path.\n"
OPEN = (
    "overspill: error: 0.0.0.0 can be reached from other machines, and without TLS anyone on the network can listen in. "
    "Pass --tls-cert and --tls-key, or --insecure if something else encrypts the connection.\n"
)


@pytest.mark.parametrize(
    ("args", "words"),
    [
        ((), ONE_WAY),
        (("--url", "http://127.0.0.1:1/mcp", "--", "cat"), ONE_WAY),
        (("--config", "mcp.json", "--", "cat"), ONE_WAY),
        (("--url", "http://127.0.0.1:1/mcp", "--url-env", "NOWHERE"), ONE_WAY),
        (("--", "no-such-command", "-y"), f"overspill: error: The server no-such-command {GONE.format('no-such-command')}"),
        (("--name", "mine", "--", "./mcp.json"), f"overspill: error: The server mine {GONE.format('./mcp.json')}"),
        (("--config", "gone.json"), f"overspill: error: The server one {GONE.format('/no/such')}"),
        (("--url", "foo"), f"overspill: error: --url {ADDRESS}"),
        (("--url", "ftp://x"), f"overspill: error: --url {ADDRESS}"),
        (("--url", "http:///mcp"), f"overspill: error: --url {ADDRESS}"),
        (("--url", "http://[::1/mcp"), f"overspill: error: --url {ADDRESS}"),
        (("--url-env", "ADDRESS"), f"overspill: error: The address in ADDRESS {ADDRESS}"),
        (
            ("--server", "x", "--", "cat"),
            "overspill: error: --server chooses among the servers of --config FILE. To name a single server, use --name.\n",
        ),
        (
            ("--header-env", "X=Y", "--", "cat"),
            "overspill: error: --header-env works only with a URL. A command reads its own environment.\n",
        ),
        (
            ("--config", "mcp.json", "--name", "x"),
            "overspill: error: --name works only for a single server. The servers of --config FILE already have names.\n",
        ),
        (
            ("--url", "http://a", "--header-env", "X=ADDRESS"),
            "overspill: error: Server 'a' on the command line has a bad header 'X': "
            "it contains characters that are not allowed in a header.\n",
        ),
        (("--config", "mcp.json", "--server", "none"), "overspill: error: That file has no server 'none'. It has time, web.\n"),
        (("--config", "nothing.json"), "overspill: error: nothing.json cannot be read: No such file or directory.\n"),
        (("--config", "empty.json"), "overspill: error: That file lists no servers.\n"),
        (("--url-env", "NOWHERE"), "overspill: error: The environment variable NOWHERE is not set.\n"),
        (
            ("--url", "http://a", "--header-env", "X"),
            "overspill: error: --header-env X has no variable. Write --header-env X=VARIABLE.\n",
        ),
        (
            ("--http", "localhost:99999", "--", "cat"),
            "overspill: error: --http localhost:99999 is not HOST:PORT, for example 127.0.0.1:8850.\n",
        ),
        (("--http", "0.0.0.0:8850", "--", "cat"), OPEN),
        (
            ("--http", "127.0.0.1:0", "--token-env", "NOWHERE", "--", "cat"),
            "overspill: error: The environment variable NOWHERE is not set.\n",
        ),
        (
            ("--http", "127.0.0.1:0", "--set", "providers.lab.apiKeyEnv=NOWHERE", "--", "cat"),
            "overspill: error: providers.lab.apiKeyEnv names NOWHERE, and that environment variable is not set.\n",
        ),
    ],
)
def test_a_mistake_is_said_in_one_line(place: Place, monkeypatch: pytest.MonkeyPatch, args: tuple[str, ...], words: str) -> None:
    monkeypatch.setenv("ADDRESS", "a\nb")
    Path("gone.json").write_text('{"mcpServers": {"one": {"command": "/no/such"}}}')
    Path("mcp.json").write_text('{"mcpServers": {"time": {"command": "cat"}, "web": {"url": "http://a"}}}')
    Path("empty.json").write_text('{"mcpServers": {}}')
    assert place.overspill("proxy", *args) == (2, "", words)


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (("--nonsense",), "No such option '--nonsense'."),
        (("--tools", "never", "--", "cat"), "'never' is not one of 'always', 'when-needed'."),
        (("--tls-cert", "nothing.pem", "--", "cat"), "File 'nothing.pem' does not exist."),
        (("--set", "toolResponseMaxByte=5", "--", "cat"), "toolResponseMaxBytes"),
        (("--set", "toolResponseMaxBytes=many", "--", "cat"), "toolResponseMaxBytes"),
        (("--settings", "nothing.yaml", "--", "cat"), "nothing.yaml"),
    ],
)
def test_a_mistyped_option_is_named(place: Place, args: tuple[str, ...], words: str) -> None:
    code, out, err = place.overspill("proxy", *args)
    assert (code, out) == (2, "")
    assert words in err


def test_help_shows_every_option_with_examples(place: Place) -> None:
    code, out, err = place.overspill("proxy", "--help")
    assert (code, err) == (0, "")
    for option in ("--url", "--config", "--http", "--token-env", "--tools", "--dry-run", "--list-outputs", "--quiet", "--preset"):
        assert option in out
    assert "overspill proxy -- npx -y @modelcontextprotocol/server-filesystem /data" in out


def test_help_of_the_program_starts_no_protocol(place: Place) -> None:
    code = "import sys\nfrom overspill.cli import main\ntry: main(['--help'])\nfinally: print(*sys.modules, file=sys.stderr)"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert "proxy" in run.stdout
    assert {"mcp", "mcp_types", "uvicorn", "starlette", "httpx2"} & set(run.stderr.split()) == set()


def test_a_proxy_ends_with_its_client_and_leaves_no_process(tmp_path: Path) -> None:
    environ = {"XDG_STATE_HOME": str(tmp_path), "XDG_DATA_HOME": str(tmp_path), "HOME": str(tmp_path), "TOKEN": SECRET}
    file = tmp_path / "mcp.json"
    entry: dict[str, Any] = {"command": sys.executable, "args": [str(EVERY)], "env": {"KEY": "${TOKEN}"}}
    file.write_text(
        json.dumps({"mcpServers": {"one": entry, "two": {**entry, "disabled": True}, "bad": {"command": "/no/such"}}})
    )
    chosen = ("--config", str(file), "--server", "one", "--server", "bad")
    options = (*chosen, "--set", f"storeDir={tmp_path / 'store'}", "--tools", "always", "--quiet")
    with Process(proxied((), *options), env=environ) as wire:
        wire.hello()
        pid = int(wire.text("one__pid"))
        assert "get_tool_output" in wire.names()
        assert wire.call("one__lines", {"count": 1000})["content"][1]["type"] == "resource_link"
        command_line = Path(f"/proc/{wire.process.pid}/cmdline").read_text() + Path(f"/proc/{pid}/cmdline").read_text()
        assert SECRET not in command_line
        assert f"KEY={SECRET}" in Path(f"/proc/{pid}/environ").read_text()
        wire.begin("tools/call", {"name": "one__wait", "arguments": {"until": "never"}})
        assert wire.end() == 0
        assert not Path(f"/proc/{pid}").exists()
    assert wire.errors == b""


def test_what_was_kept_is_reported_on_standard_error(tmp_path: Path) -> None:
    environ = {"HOME": str(tmp_path), "XDG_STATE_HOME": str(tmp_path)}
    with Process(proxied(every(), "--name", "time", "--set", f"storeDir={tmp_path / 's'}"), env=environ) as wire:
        wire.hello()
        wire.call("lines", {"count": 10})
        wire.call("lines", {"count": 1000})
        assert wire.end() == 0
    assert wire.errors == b"overspill: Tool 'lines' output stored for tool_output (size_cap).\n"


def test_of_several_servers_those_that_cannot_be_started_are_named(place: Place) -> None:
    Path("mcp.json").write_text('{"mcpServers": {"good": {"command": "cat"}, "bad": {"command": "/no/such"}}}')
    ended = place.process("proxy", "--config", "mcp.json", input=b"", capture_output=True)
    words = f"overspill: The server bad {GONE.format('/no/such')}".encode()
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, b"", words)
    ended = place.process("proxy", "--config", "mcp.json", "--quiet", input=b"", capture_output=True)
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, b"", b"")


def started(tmp_path: Path) -> subprocess.Popen[bytes]:
    """A proxy that has been asked for more than a pipe holds, and whose client does not read it."""
    pipe, environ = subprocess.PIPE, {**os.environ, "HOME": str(tmp_path), "XDG_STATE_HOME": str(tmp_path)}
    proxy = subprocess.Popen(proxied(every(), "--dry-run", "--quiet"), stdin=pipe, stdout=pipe, stderr=pipe, env=environ)
    who = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "deaf", "version": "0"}}
    asked = {"name": "lines", "arguments": {"count": 100_000}}
    for message in (
        {"id": 1, "method": "initialize", "params": who},
        {"method": "notifications/initialized"},
        {"id": 2, "method": "tools/call", "params": asked},
    ):
        proxy.stdin.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
    proxy.stdin.flush()
    assert b"serverInfo" in proxy.stdout.readline()
    assert proxy.stdout.read(1) == b"{"
    return proxy


@pytest.mark.parametrize("ending", [signal.SIGTERM, signal.SIGINT, None])
def test_a_client_that_does_not_read_cannot_keep_a_proxy_from_ending(tmp_path: Path, ending: signal.Signals | None) -> None:
    with started(tmp_path) as proxy:
        if ending is None:
            proxy.stdin.close()
        else:
            proxy.send_signal(ending)
        try:
            assert proxy.wait(PATIENCE) == 0
        finally:
            proxy.kill()
        assert proxy.stderr.read() == b""


def test_a_client_that_has_closed_its_side_has_gone(tmp_path: Path) -> None:
    with started(tmp_path) as proxy:
        proxy.stdout.close()
        try:
            assert proxy.wait(PATIENCE) == 0
        finally:
            proxy.kill()
        assert proxy.stderr.read() == b""


def test_what_a_client_asked_for_before_it_hung_up_is_written_to_its_end(tmp_path: Path) -> None:
    with started(tmp_path) as proxy:
        proxy.stdin.close()
        answer = json.loads(b"{" + proxy.stdout.read())
        assert answer["result"]["content"][0]["text"].endswith("line 100000: the quick brown fox\n")
        assert proxy.wait(PATIENCE) == 0


def test_what_happens_to_a_server_is_reported_without_its_secrets(tmp_path: Path) -> None:
    environ = {
        "HOME": str(tmp_path),
        "XDG_STATE_HOME": str(tmp_path),
        "OVERSPILL_PROXY_TOKEN": SECRET,
        "ADDRESS": f"http://127.0.0.1:1/{SECRET}",
    }
    with Process(proxied((), "--url-env", "ADDRESS", "--header-env", "X-Key=OVERSPILL_PROXY_TOKEN"), env=environ) as wire:
        assert wire.hello()["serverInfo"]["name"] == "overspill"
        assert wire.end() == 0
    assert b"The server 127.0.0.1 cannot be reached" in wire.errors
    assert SECRET.encode() not in wire.errors
    assert b"Traceback" not in wire.errors


def test_our_own_variables_do_not_reach_the_server(tmp_path: Path) -> None:
    environ = {"HOME": str(tmp_path), "XDG_STATE_HOME": str(tmp_path), "OVERSPILL_PROXY_TOKEN": SECRET, "THEIRS": "1"}
    with Process(proxied(every(), "--name", "time", "--set", f"storeDir={tmp_path / 's'}", "--dry-run"), env=environ) as wire:
        wire.hello()
        theirs = Path(f"/proc/{int(wire.text('pid'))}/environ").read_text().split("\0")
        assert "THEIRS=1" in theirs
        assert [each for each in theirs if SECRET in each] == []
        wire.call("lines", {"count": 1000})
        assert wire.end() == 0
    assert b"overspill: dry run: lines of time would be stored: " in wire.errors
    assert os.listdir(tmp_path / "s") == []


@pytest.mark.parametrize("module", ["mcp", "mcp_types"])
def test_a_missing_package_is_named_with_the_extra_that_brings_it(place: Place, module: str):
    code, out, err = place.without(module, "proxy", "--", "cat")
    assert (code, out) == (2, "")
    assert err == (
        "overspill: error: `overspill proxy` needs the package mcp, which is not installed or too old. "
        "With uv: `uvx --from 'overspill[mcp]' overspill proxy`. In a clone of Overspill: `pip install '.[mcp]'`.\n"
    )
    assert place.without(module, "proxy", "--help").code == 0
