"""Servers that offer tasks: no result of one goes round the gate."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from upstream import script, up
from wire import META, Served, Wire

from overspill.errors import ServerError

EXTENSION = META + "tasks"
CLIENT = {
    "roots": {},
    "tasks": {"list": {}, "cancel": {}, "requests": {"elicitation": {"create": {}}}},
    "extensions": {EXTENSION: {}, "x.example/other": {}},
    "experimental": {"x": {}, "tasks": {}},
}
KINDS = [(client, server, count) for client in ("legacy", "modern") for server in ("legacy", "modern") for count in (1, 2)]
MAX_BYTES = 20_000
TASK = {"taskId": "t1", "status": "completed", "createdAt": "2026-01-01T00:00:00Z", "lastUpdatedAt": "2026-01-01T00:00:00Z"}


@pytest.fixture(scope="module", params=KINDS, ids=lambda kind: "{} client, {} server, {}".format(*kind))
def wire(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Wire]:
    client, server, count = request.param
    servers = [script("tasks", server, name=f"s{number}") for number in range(count)]
    with Served(servers, tmp_path_factory.mktemp("store"), modern=client == "modern") as wire:
        wire.capabilities = CLIENT
        wire.handshake = wire.hello()
        wire.prefix, wire.server = "" if count == 1 else "s0__", server
        wire.routed = client == server == "legacy"
        yield wire


def test_tasks_of_the_older_protocol_are_announced_where_both_sides_speak_it_and_extensions_are(wire: Wire) -> None:
    found = wire.handshake["capabilities"]
    assert found.get("tasks") == ({"list": {}, "cancel": {}, "requests": {"tools": {"call": {}}}} if wire.routed else None)
    assert found["extensions"] == {"x.example/other": {"a": 1}, **({EXTENSION: {}} if wire.modern else {})}
    assert found["experimental"] == {"x": {}}
    tools = {tool["name"]: tool for tool in wire.result("tools/list")["tools"]}
    assert tools[wire.prefix + "report"]["execution"] == {"x": 1, **({"taskSupport": "optional"} if wire.routed else {})}
    assert tools[wire.prefix + "must"].get("execution") == ({"taskSupport": "required"} if wire.routed else None)


def test_a_newer_server_hears_that_the_proxy_knows_tasks_and_an_older_one_does_not(wire: Wire) -> None:
    heard = json.loads(wire.text(wire.prefix + "heard"))
    extensions = {"x.example/other": {}, **({EXTENSION: {}} if wire.server == "modern" else {})}
    assert heard == {"capabilities": {"roots": {}, "extensions": extensions, "experimental": {"x": {}}}, "task": None}


@pytest.mark.promise("nothing-lost")
def test_the_result_of_a_tool_that_could_be_a_task_passes_the_gate(wire: Wire) -> None:
    result = wire.call(wire.prefix + "report")
    assert len(json.dumps(result)) < MAX_BYTES
    assert "stored" in result["content"][0]["text"]


MALFORMED: list[dict[str, Any]] = [
    {},
    {"name": 5},
    {"name": ["report"]},
    *({"name": "report", "arguments": each} for each in ([], ["a"], "", "text", 0, False, 5)),
]


@pytest.mark.parametrize("params", MALFORMED, ids=str)
def test_a_malformed_call_is_refused_and_does_not_go_round_the_gate(wire: Wire, params: dict[str, Any]) -> None:
    named = {"name": wire.prefix + "report"} if params.get("name") == "report" else {}
    answer = wire.request("tools/call", {**params, **named})
    assert answer["error"]["code"] == -32602
    assert "arguments" in answer["error"]["message"]


@pytest.mark.parametrize("name", ["report", "heard", "get_tool_output"])
def test_a_call_that_cannot_be_a_task_is_refused_and_says_what_to_do(wire: Wire, name: str) -> None:
    prefix = "" if name == "get_tool_output" else wire.prefix
    if wire.routed and prefix + name != "get_tool_output":
        assert "t1" not in json.dumps(wire.call(prefix + name, task={"ttl": 1000}))
        return
    answer = wire.request("tools/call", {"name": prefix + name, "arguments": {}, "task": {"ttl": 1000}})
    assert answer["error"]["code"] == -32601
    assert "Call the tool without a task" in answer["error"]["message"]


@pytest.mark.parametrize("method", ["tasks/get", "tasks/result", "tasks/cancel", "tasks/update"])
def test_no_result_comes_by_the_id_of_a_server(wire: Wire, method: str) -> None:
    error = wire.request(method, {"taskId": "t1", "inputResponses": {}})["error"]
    is_known = method in ("tasks/get", "tasks/cancel", "tasks/update" if wire.modern else "tasks/result")
    assert error["code"] == (-32602 if is_known else -32601)
    assert ("Failed to retrieve task" if is_known else "Call the tool without a task") in error["message"]


@pytest.mark.promise("nothing-lost")
def test_nothing_but_the_result_of_a_task_has_its_result_and_that_passes_the_gate(wire: Wire) -> None:
    if not wire.routed:
        assert wire.request("tools/call", {"name": wire.prefix + "must", "task": {}})["error"]["code"] == -32601
        return
    id = wire.call(wire.prefix + "must", task={})["task"]["taskId"]
    state = {"taskId": id, **{key: value for key, value in TASK.items() if key != "taskId"}}
    assert wire.result("tasks/get", {"taskId": id}) == state
    assert [task for task in wire.result("tasks/list")["tasks"] if task["taskId"] == id] == [state]
    assert "t2" not in json.dumps(wire.result("tasks/list"))
    assert len(json.dumps(wire.result("tasks/cancel", {"taskId": id}))) < 1000
    result = wire.result("tasks/result", {"taskId": id, "name": "heard", "arguments": {}})
    assert len(json.dumps(result)) < MAX_BYTES
    assert "stored" in result["content"][0]["text"]


@pytest.mark.parametrize("version", ["2025-06-18", "2024-11-05"])
def test_clients_of_earlier_versions_have_no_tasks(tmp_path: Path, version: str) -> None:
    with Served([script("tasks", "legacy")], tmp_path) as wire:
        wire.version = version
        assert "tasks" not in wire.hello()["capabilities"]
        assert "taskSupport" not in json.dumps(wire.result("tools/list"))
        assert wire.request("tools/call", {"name": "report", "task": {}})["error"]["code"] == -32601
        assert wire.request("tasks/list", {})["error"]["code"] == -32601


def hear_of_tasks(wire: Wire) -> list[dict[str, Any]]:
    start = wire.mark
    assert wire.text(wire.prefix + "tell") == "told"
    wire.call(wire.prefix + "heard")
    return [each for each in wire.received[start:] if "tasks" in each.get("method", "")]


def test_a_report_about_a_task_reaches_the_client_that_asked_for_it_under_its_id_and_without_the_result(wire: Wire) -> None:
    if not wire.routed:
        assert hear_of_tasks(wire) == []
        assert any("notifications/tasks" in line for line in wire.log)
        return
    id = wire.call(wire.prefix + "must", task={})["task"]["taskId"]
    state = {"taskId": id, **{key: value for key, value in TASK.items() if key != "taskId"}}
    assert hear_of_tasks(wire) == [{"jsonrpc": "2.0", "method": "notifications/tasks/status", "params": state}]


@pytest.mark.promise("nobody-elses")
def test_a_report_about_a_task_that_the_client_did_not_ask_for_does_not_pass(tmp_path: Path) -> None:
    with Served([script("tasks", "legacy", name="s0"), script("tasks", "legacy", name="s1")], tmp_path) as wire:
        wire.hello()
        wire.prefix = "s0__"
        wire.call("s1__must", task={})  # which has the same id there
        assert hear_of_tasks(wire) == []
        assert any("notifications/tasks/status" in line for line in wire.log)


def test_a_server_that_answers_about_another_task_is_refused(tmp_path: Path) -> None:
    with Served([script("tasks", "legacy", "confused")], tmp_path) as wire:
        wire.hello()
        id = wire.call("must", task={})["task"]["taskId"]
        error = wire.request("tasks/get", {"taskId": id})["error"]
    assert "answered about another task" in error["message"]


@pytest.mark.parametrize(("client", "count"), [(client, count) for client in ("legacy", "modern") for count in (1, 2)])
def test_a_task_that_an_older_server_starts_unasked_is_an_error_that_says_so(tmp_path: Path, client: str, count: int) -> None:
    servers = [script("tasks", "legacy", "stubborn", name=f"s{number}") for number in range(count)]
    with Served(servers, tmp_path, modern=client == "modern", dry_run=count == 1) as wire:
        wire.hello()
        answer = wire.request("tools/call", {"name": "report" if count == 1 else "s0__report", "arguments": {}})
        said = json.dumps(answer)
        assert "t1" not in said
        assert "The server s0 started a task" in said


@pytest.mark.anyio
async def test_an_agent_hears_that_an_older_server_started_a_task_unasked() -> None:
    async with up(script("tasks", "legacy", "stubborn")) as server:
        with pytest.raises(ServerError, match="The server tasks started a task"):
            await server.call_tool("report", {})


@pytest.mark.anyio
async def test_an_agent_gets_the_result_of_a_task() -> None:
    async with up(script("tasks", "modern")) as server:
        assert "line 7999" in (await server.call_tool("report", {})).content[0]["text"]
