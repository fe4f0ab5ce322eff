"""Tasks that a client of 2025-11-25 asks for: they stay with their server, and the proxy routes and gates them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import anyio
import pytest
from running import Overspill
from waiting import wait_until
from wire import Served, Wire

from overspill.mcp.client.config import ServerConfig

pytestmark = pytest.mark.slow

PEER = str(Path(__file__).parent.parent / "servers" / "tasks_of_sdk.py")
RELATED = "io.modelcontextprotocol/related-task"


@pytest.fixture
def peer(python: Callable[[str], Path]) -> Callable[..., ServerConfig]:
    def configure(name: str, *id: str) -> ServerConfig:
        return ServerConfig(name, str(python("mcp-1.30") / "python"), (PEER, name, *id))

    return configure


@pytest.fixture
def wire(peer: Callable[..., ServerConfig], tmp_path: Path) -> Iterator[Wire]:
    """In front of two servers whose tasks all have the same id."""
    with Served([peer("a", "same"), peer("b", "same")], tmp_path, tools_always=False) as wire:
        wire.hello()
        yield wire


def start(wire: Wire, tool: str, **arguments: Any) -> dict[str, Any]:
    return wire.call(tool, arguments, task={"ttl": 60_000})["task"]


def finish(wire: Wire, id: str) -> dict[str, Any]:
    return wait_until(
        lambda: wire.result("tasks/get", {"taskId": id}), lambda task: task["status"] not in ("working", "input_required")
    )


def test_tasks_with_the_same_id_are_told_apart(wire: Wire) -> None:
    first, second = start(wire, "a__report"), start(wire, "b__report")
    assert len({first["taskId"], second["taskId"], "same"}) == 3
    for task, server in ((first, "a"), (second, "b")):
        done = finish(wire, task["taskId"])
        assert (done["taskId"], done["status"]) == (task["taskId"], "completed")
        result = wire.result("tasks/result", {"taskId": task["taskId"]})
        assert result["content"] == [{"type": "text", "text": f"line 0 of {server}\n"}]
        assert result["_meta"][RELATED] == {"taskId": task["taskId"]}


@pytest.mark.promise("nothing-lost")
def test_a_large_result_is_stored_and_answered_small(wire: Wire) -> None:
    id = start(wire, "b__report", lines=8000)["taskId"]
    result = wire.result("tasks/result", {"taskId": id})
    assert len(json.dumps(result)) < 20_000
    assert wire.told("notifications/tools/list_changed")
    link = next(block for block in result["content"] if block["type"] == "resource_link")
    assert wire.result("resources/read", {"uri": link["uri"]})["contents"][0]["text"].startswith("line 0 of b\n")


def test_the_result_is_waited_for_and_states_are_the_servers(wire: Wire) -> None:
    id = start(wire, "a__wait")["taskId"]
    asked = wire.begin("tasks/result", {"taskId": id})
    assert wire.result("tasks/get", {"taskId": id})["status"] == "working"
    wire.call("a__release")
    assert wire.answer(asked)["result"]["content"][0]["text"] == "line 0 of a\n"


def test_a_cancelled_task_is_cancelled_at_its_server_only(wire: Wire) -> None:
    first, second = start(wire, "a__wait")["taskId"], start(wire, "b__wait")["taskId"]
    cancelled = wire.result("tasks/cancel", {"taskId": first})
    assert (cancelled["taskId"], cancelled["status"]) == (first, "cancelled")
    assert wire.result("tasks/get", {"taskId": second})["status"] == "working"


def test_a_failed_task_says_why(wire: Wire) -> None:
    task = finish(wire, start(wire, "a__fail")["taskId"])
    assert (task["status"], task["statusMessage"]) == ("failed", "no more coal")


def test_a_question_of_a_task_reaches_the_client(wire: Wire) -> None:
    wire.asked["elicitation/create"] = {"result": {"action": "decline"}}
    start(wire, "b__confirm")
    id = start(wire, "a__confirm")["taskId"]
    assert wire.result("tasks/result", {"taskId": id})["content"][0]["text"] == "decline"


def test_a_task_is_unknown_in_another_conversation(peer: Callable[..., ServerConfig], wire: Wire, tmp_path: Path) -> None:
    id = start(wire, "a__report")["taskId"]
    with Served([peer("a", "same"), peer("b", "same")], tmp_path) as other:
        other.hello()
        start(other, "a__report")
        for method in ("tasks/get", "tasks/result", "tasks/cancel"):
            for unknown in (id, "same", "a__same", "", 5, None):
                assert other.request(method, {"taskId": unknown})["error"]["code"] == -32602


def test_the_list_has_the_tasks_of_this_client_from_all_servers(peer: Callable[..., ServerConfig], tmp_path: Path) -> None:
    with Served([peer("a"), peer("b")], tmp_path) as wire:
        wire.hello()
        assert wire.result("tasks/list") == {"tasks": []}
        ids = [start(wire, tool)["taskId"] for tool in ("a__report", "b__wait", "b__report")]
        finish(wire, ids[0])
        finish(wire, ids[2])
        listed = {task["taskId"]: task["status"] for task in wire.result("tasks/list")["tasks"]}
        assert listed == dict(zip(ids, ("completed", "working", "completed"), strict=True))


async def test_its_client_follows_a_task_through_the_proxy(python: Callable[[str], Path], tmp_path: Path) -> None:
    overspill, command = Overspill(tmp_path), str(python("mcp-1.30") / "python")
    proxy = overspill.proxy("--", command, PEER, "work")
    with anyio.fail_after(90):
        done = await anyio.run_process([command, PEER, "client", *proxy], env=overspill.environ)
    said = done.stdout.decode().splitlines()
    assert "completed" in said
    assert "[True]" in said
    assert len(done.stdout) < 20_000
    assert "Tool output is too large" in done.stdout.decode()
