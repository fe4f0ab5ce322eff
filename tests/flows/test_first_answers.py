"""A hub that has just started answers what clients ask first, while it still imports the code that serves them."""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hubs import HubFront, HubHome, hub_home
from waiting import wait_until
from wire import META, Wire

LISTS = str(Path(__file__).parents[1] / "servers" / "lists.py")
WAITING_IMPORT = """
import importlib.abc, os, sys, time

class Gate(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        while name == "mcp" and not os.path.exists({gate!r}):
            time.sleep(0.01)

sys.meta_path.insert(0, Gate())
"""


class SlowHome:
    """A home in which no process can import the MCP SDK after `hold`, until `release`: neither a hub nor a server."""

    def __init__(self, home: HubHome) -> None:
        self.home = home
        self.gate = home.folder / "gate"
        self.site = home.folder / "site"
        self.site.mkdir()
        home.env["PYTHONPATH"] = f"{self.site}{os.pathsep}{home.env['PYTHONPATH']}"
        self.lists = home.folder / "lists.txt"
        self.say("old")
        self.release()

    def hold(self) -> None:
        """From now on. The next front finds no hub."""
        assert self.home.overspill("hub", "stop").returncode == 0
        self.home.wait_until_gone()
        (self.site / "sitecustomize.py").write_text(WAITING_IMPORT.format(gate=str(self.gate)))
        self.gate.unlink()

    def release(self) -> None:
        self.gate.touch()

    @property
    def files(self) -> list[Path]:
        return sorted((self.home.folder / ".local" / "state" / "overspill" / "lists").glob("first-*.json"))

    def say(self, *names: str) -> None:
        """What the server lists."""
        tools = [{"name": name, "inputSchema": {"type": "object"}} for name in names]
        self.lists.write_text(f"tools/list {json.dumps({'tools': tools, 'resultType': 'complete'})}")

    def client(self, *options: str, modern: bool = False, **variables: str) -> HubFront:
        server = [sys.executable, LISTS, "modern" if modern else "legacy", str(self.lists)]
        return self.home.front(*options, server=server, modern=modern, **variables)

    def ask(self, *options: str, modern: bool = False) -> tuple[dict[str, Any], list[str]]:
        """What a client gets that greets, lists and leaves."""
        with self.client(*options, modern=modern) as client:
            found = client.hello(), client.names()
            assert client.end() == 0
        return found


@pytest.fixture
def slow() -> Iterator[SlowHome]:
    with hub_home() as home:
        found = SlowHome(home)
        try:
            yield found
        finally:
            found.release()


@pytest.mark.parametrize("modern", [pytest.param(False, marks=pytest.mark.slow), True])
def test_a_client_has_its_first_answers_before_the_hub_has_imported_the_sdk(slow: SlowHome, modern: bool):
    before = slow.ask(modern=modern)
    slow.hold()
    with slow.client(modern=modern) as client:
        assert (client.hello(), client.names()) == before
        call = client.begin("tools/call", {"name": "old", "arguments": {}})
        slow.release()
        assert client.answer(call)["result"]["content"][0]["text"] == "called old"
        assert client.names()
        ids = [each["id"] for each in client.received if "id" in each]
        assert ids == sorted(set(ids))
        assert not [each for each in client.received if "list_changed" in each.get("method", "")]


@pytest.mark.slow
def test_another_client_or_environment_waits_for_the_hub(slow: SlowHome):
    slow.ask()
    slow.hold()
    for info, environ in (({"name": "other", "version": "1"}, {}), ({}, {"WHOSE": "somebody"})):
        with slow.client(**environ) as client:
            client.info = info or client.info
            greeting = client.begin(
                "initialize", {"protocolVersion": client.version, "capabilities": {}, "clientInfo": client.info}
            )
            status = wait_until(slow.home.status)
            assert status
            assert not client.received
            slow.release()
            assert client.answer(greeting)["result"]["serverInfo"]["name"] == "lists"
        slow.hold()
    slow.release()


@pytest.mark.slow
def test_a_hub_killed_after_the_first_answers_is_replaced(slow: SlowHome):
    slow.ask()
    slow.hold()
    with slow.client() as client:
        assert client.hello()
        assert client.names()
        os.kill(slow.home.pid(), signal.SIGKILL)
        slow.release()
        assert client.text("old") == "called old"


@pytest.mark.slow
@pytest.mark.parametrize("modern", [False, True])
def test_a_client_is_told_once_if_it_was_given_another_list_than_there_is(slow: SlowHome, modern: bool):
    with slow.client(modern=modern) as stays:
        stays.hello()
        assert "old" in stays.names()
        slow.say("new")
        with slow.client(modern=modern) as later:
            later.hello()
            wait_until(later.names, lambda names: "new" in names)
            later.end()
        stays.end()  # keeps what it was given
    slow.hold()
    with slow.client(modern=modern) as client:
        client.hello()
        assert "old" in client.names()
        subscription = modern and client.begin("subscriptions/listen", {"notifications": {"toolsListChanged": True}})
        slow.release()
        about = client.told("notifications/tools/list_changed").get("params")
        assert about == ({"_meta": {META + "subscriptionId": subscription}} if modern else None)
        assert "new" in client.names()
        assert sum(each.get("method") == "notifications/tools/list_changed" for each in client.received) == 1
        client.end()


@pytest.mark.slow
def test_one_client_being_served_keeps_no_other_from_its_first_answers(slow: SlowHome):
    slow.ask()
    slow.hold()
    with slow.client() as one, slow.client() as other:
        for client in (one, other):
            client.hello()
            assert "old" in client.names()
        slow.release()


def test_a_subscription_is_acknowledged_at_once_and_is_told_once_of_other_lists(slow: SlowHome):
    """Claude Code subscribes before it asks for lists, and waits until it is told that it has."""
    acknowledged, listen = "notifications/subscriptions/acknowledged", {"notifications": {"toolsListChanged": True}}
    with slow.client(modern=True) as client:
        client.hello()
        client.begin("subscriptions/listen", listen)
        client.told(acknowledged)
        assert "old" in client.names()
        client.end()
    slow.home.overspill("hub", "stop")
    slow.say("new")
    slow.hold()
    with slow.client(modern=True) as client:
        client.hello()
        subscription = client.begin("subscriptions/listen", listen)
        about = {"_meta": {META + "subscriptionId": subscription}}
        assert client.told(acknowledged)["params"] == {**listen, **about}
        assert "old" in client.names()
        slow.release()
        assert client.told("notifications/tools/list_changed")["params"] == about
        assert "new" in client.names()
        said = [each.get("method") for each in client.received]
        assert (said.count(acknowledged), said.count("notifications/tools/list_changed")) == (1, 1)
        client.end()


@pytest.mark.parametrize("damage", [*(pytest.param(each, marks=pytest.mark.slow) for each in ("cut", "link")), "open"])
def test_a_file_that_is_damaged_or_may_be_somebody_elses_is_not_used(slow: SlowHome, damage: str):
    before = slow.ask()
    (file,) = slow.files
    assert file.stat().st_mode & 0o777 == 0o600
    if damage == "cut":
        file.write_bytes(file.read_bytes()[:-9])
    elif damage == "open":
        file.chmod(0o644)
    else:
        file.rename(file.with_name("elsewhere"))
        file.symlink_to("elsewhere")
    slow.hold()
    with slow.client() as client:
        greeting = client.begin(
            "initialize", {"protocolVersion": client.version, "capabilities": client.capabilities, "clientInfo": client.info}
        )
        assert wait_until(slow.home.status)
        assert not client.received
        slow.release()
        assert client.answer(greeting)["result"]["serverInfo"] == before[0]["serverInfo"]


def test_nothing_is_kept_where_stored_secrets_are_replaced(slow: SlowHome):
    slow.ask("--set=redact.stored=on")
    assert not slow.files


@pytest.mark.slow
@pytest.mark.parametrize("line", [b'{"jsonrpc": "2.0", "id": [], "method": 3}', b"[" * 5000])
def test_lines_that_are_no_messages_wait_for_the_hub(slow: SlowHome, line: bytes):
    slow.ask()
    slow.hold()
    with slow.client() as client:
        client.hello()
        client.write(line + b"\n")
        slow.release()
        assert client.names()
        assert client.text("old") == "called old"


@pytest.mark.slow
def test_the_entry_with_the_retrieval_tools_has_them_at_once(slow: SlowHome):
    command = [sys.executable, "-c", "from overspill.cli import main; main()", "serve", "claude-code"]

    def client() -> HubFront:
        return HubFront(command, slow.home.env)

    with client() as found:
        found.hello()
        before = found.names()
        found.end()
    slow.hold()
    with client() as found:
        found.hello()
        assert found.names() == before
        slow.release()


def greet(client: Wire, id: str) -> None:
    """Send the first request under an id of our own, written as JSON."""
    about = {"protocolVersion": client.version, "capabilities": client.capabilities, "clientInfo": client.info}
    client.write(f'{{"jsonrpc":"2.0","id":{id},"method":"initialize","params":{json.dumps(about)}}}\n'.encode())
    assert client.answer(json.loads(id))["result"]["serverInfo"]["name"] == "lists"
    client.notify("notifications/initialized")


@pytest.mark.slow
def test_an_id_that_is_long_when_it_is_written_ends_no_hub(slow: SlowHome):
    slow.ask()
    slow.hold()
    with slow.client() as client:
        greet(client, rf'"\ud800{"é" * 20_000}"')  # written with six bytes for each, because the first is none in UTF-8
        hub = slow.home.pid()
        slow.release()
        client.send({"id": "x" * 70_000, "method": "tools/list"})
        assert client.answer("x" * 70_000)["result"]["tools"]
        assert slow.home.pid() == hub


@pytest.mark.slow
def test_a_client_that_gives_all_requests_the_same_id_gets_all_answers(slow: SlowHome):
    with slow.client() as client:
        client.hello()
        client.hang_up()
        wait_until(lambda: slow.files)
    slow.hold()
    with slow.client() as client:
        greet(client, "1")
        slow.release()
        client.send({"id": 1, "method": "tools/list"})
        found = client.wait(lambda each: each.get("id") == 1 and "serverInfo" not in each.get("result", {}))
        assert found["result"]["tools"]
