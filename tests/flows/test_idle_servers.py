"""A server that nobody uses is stopped, and started by the next call. Nobody notices."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from upstream import is_alive
from waiting import wait_until
from wire import Process, every, proxied

from overspill.errors import SettingsError
from overspill.mcp.client.config import ServerConfig, server_configs
from overspill.mcp.client.handshake import Handshake
from overspill.mcp.client.rest import find_idle_minutes

SOON = "--idle-minutes=0.002"
LISTS = str(Path(__file__).parents[1] / "servers" / "lists.py")


def wait_until_stopped(pid: int) -> None:
    wait_until(lambda: not is_alive(pid))


@pytest.mark.parametrize("era", ["legacy", "modern"])
def test_an_idle_server_is_stopped_and_the_next_call_starts_it(era: str, tmp_path: Path):
    with Process(proxied(every(era), f"--set=storeDir={tmp_path}", SOON), modern=era == "modern") as wire:
        wire.hello()
        first = int(wire.text("pid"))
        wait_until_stopped(first)
        second = int(wire.text("pid"))
        assert second != first
        wait_until_stopped(second)
        assert wire.text("lines", {"count": 1}).startswith("line 1:")
        assert not [each for each in wire.received if "list_changed" in each.get("method", "")]


def two_servers(folder: Path) -> list[str]:
    """Of which one shows when the other would have been stopped."""
    command, *args = every()
    entry = {"command": command, "args": args, "idleMinutes": 0.002}
    (folder / "mcp.json").write_text(json.dumps({"mcpServers": {"used": entry, "idle": entry}}))
    return proxied((), "--config", str(folder / "mcp.json"), f"--set=storeDir={folder}")


def test_a_server_that_works_for_a_call_is_not_stopped(tmp_path: Path):
    done = tmp_path / "done"
    with Process(two_servers(tmp_path)) as wire:
        wire.hello()
        call = wire.begin("tools/call", {"name": "used__wait", "arguments": {"file": str(done), "then": "yes"}})
        wait_until_stopped(int(wire.text("idle__pid")))
        done.touch()
        assert wire.answer(call)["result"]["content"][0]["text"] == "yes"


def test_a_server_with_a_subscription_is_not_stopped(tmp_path: Path):
    with Process(two_servers(tmp_path)) as wire:
        wire.hello()
        pid = int(wire.text("used__pid"))
        uri = wire.result("resources/list")["resources"][0]["uri"]
        wire.result("resources/subscribe", {"uri": uri})
        wait_until_stopped(int(wire.text("idle__pid")))
        assert int(wire.text("used__pid")) == pid
        wire.result("resources/unsubscribe", {"uri": uri})
        wait_until_stopped(int(wire.text("used__pid")))


def test_a_client_learns_once_that_a_list_differs_after_the_rest(tmp_path: Path):
    lists, pids = tmp_path / "lists.txt", tmp_path / "pids.txt"
    tool = {"name": "one", "inputSchema": {"type": "object"}}
    lists.write_text(f"tools/list {json.dumps({'tools': [tool]})}")
    start = f"import os, runpy, sys; open({str(pids)!r}, 'a').write(str(os.getpid()) + ' '); "
    start += f"sys.argv = ['lists.py', 'legacy', {str(lists)!r}]; runpy.run_path({LISTS!r}, run_name='__main__')"
    with Process(proxied([sys.executable, "-c", start], f"--set=storeDir={tmp_path}", SOON)) as wire:
        wire.hello()
        assert wire.names()[0] == "one"
        wait_until_stopped(int(pids.read_text().split()[0]))
        lists.write_text(f"tools/list {json.dumps({'tools': [{**tool, 'name': 'other'}]})}")
        wire.call("one")
        heard = wire.wait(lambda each: "list_changed" in each.get("method", ""))
        assert heard["method"] == "notifications/tools/list_changed"
        assert wire.names()[0] == "other"
        wait_until_stopped(int(pids.read_text().split()[1]))
        assert wire.names()[0] == "other"
        wire.call("other")
        assert len([each for each in wire.received if "list_changed" in each.get("method", "")]) == 1


def test_only_a_server_without_a_session_is_stopped_unless_you_say_so():
    old, new = Handshake("2025-11-25", {}, {}, None), Handshake("2026-07-28", {}, {}, None)
    usual = ServerConfig("a", command="a")
    assert (find_idle_minutes(usual, old), find_idle_minutes(usual, new)) == (0, 5)
    chosen = server_configs({"a": {"command": "a", "idleMinutes": 1.5}}, "here")["a"]
    assert (find_idle_minutes(chosen, old), find_idle_minutes(chosen, new)) == (1.5, 1.5)
    assert find_idle_minutes(ServerConfig("a", command="a", idle_minutes=0), new) == 0
    assert find_idle_minutes(ServerConfig("a", url="http://localhost/mcp", idle_minutes=1), new) == 0
    assert find_idle_minutes(chosen, Handshake("2025-11-25", {"tasks": {}}, {}, None)) == 0


@pytest.mark.parametrize("bad", [-1, True, "5", 1e400])
def test_a_bad_number_of_minutes_is_refused(bad: object):
    with pytest.raises(SettingsError, match="`idleMinutes` must be a number of minutes, or 0 for never"):
        server_configs({"a": {"command": "a", "idleMinutes": bad}}, "here")
