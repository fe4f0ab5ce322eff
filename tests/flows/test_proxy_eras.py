"""Clients and servers of either protocol, in every pairing: each hears its own."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from wire import META, Served, Wire, config, every

PAIRS = [(client, server) for client in ("legacy", "modern") for server in ("legacy", "modern")]
ANN = {"action": "accept", "content": {"name": "Ann"}}
FORM = {"method": "elicitation/create", "params": {"message": "Name?", "requestedSchema": {"type": "object", "properties": {}}}}
SAMPLE = {"method": "sampling/createMessage", "params": {"maxTokens": 5, "messages": []}}
SAID = {"role": "assistant", "content": {"type": "text", "text": "hm"}, "model": "m"}


@pytest.fixture(scope="module", params=PAIRS, ids=lambda pair: f"{pair[0]} client, {pair[1]} server")
def wire(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Wire]:
    client, server = request.param
    with Served([config(every(server))], tmp_path_factory.mktemp("store"), modern=client == "modern") as wire:
        wire.asked = {"elicitation/create": {"result": ANN}, "sampling/createMessage": {"result": SAID}}
        wire.handshake = wire.hello()
        wire.server = server
        yield wire


def only(client: str, server: str) -> pytest.MarkDecorator:
    return pytest.mark.parametrize(
        "wire", [(client, server)], indirect=True, ids=lambda pair: f"{pair[0]} client, {pair[1]} server"
    )


def finished(wire: Wire, result: dict[str, Any], name: str, arguments: dict[str, Any]) -> dict[str, Any]:
    """Answer what is wanted, call by call, as a client of the newer protocol does."""
    while result.get("resultType") == "input_required":
        wanted = result["inputRequests"]
        responses = {key: wire.asked[each["method"]]["result"] for key, each in wanted.items()}
        result = wire.call(name, arguments, inputResponses=responses, requestState=result["requestState"])
    return result


def test_results_carry_what_the_clients_protocol_requires(wire: Wire) -> None:
    listed, called = wire.result("prompts/list"), wire.call("say", {"result": {"content": []}})
    if not wire.modern:
        assert {"resultType", "ttlMs", "cacheScope"} & {*listed, *called} == set()
    elif wire.server == "modern":
        assert (listed["resultType"], listed["ttlMs"], listed["cacheScope"]) == ("complete", 1000, "public")
    else:
        assert (listed["resultType"], listed["ttlMs"], listed["cacheScope"]) == ("complete", 0, "private")
    if wire.modern:
        assert called["resultType"] == "complete"
        assert called["_meta"][META + "serverInfo"]["name"] == "every"
        assert not {"ttlMs", "cacheScope"} & set(called)


def test_a_tool_can_ask_a_person(wire: Wire) -> None:
    arguments = {"requests": [FORM]}
    result = finished(wire, wire.call("ask", arguments), "ask", arguments)
    assert json.loads(result["content"][0]["text"]) == [ANN]


def test_a_tool_can_ask_twice(wire: Wire) -> None:
    arguments = {"requests": [FORM, SAMPLE]}
    result = finished(wire, wire.call("ask", arguments), "ask", arguments)
    assert json.loads(result["content"][0]["text"]) == [ANN, SAID]


def test_progress_comes_before_the_answer(wire: Wire) -> None:
    start = wire.mark
    wire.call("steps", {"steps": [{"progress": 1}, {"progress": 2, "message": "half"}]}, _meta={"progressToken": "t"})
    assert [each.get("method", "answer") for each in wire.received[start:]] == ["notifications/progress"] * 2 + ["answer"]
    assert [each["params"]["progressToken"] for each in wire.received[start : start + 2]] == ["t", "t"]


def test_log_messages_start_at_the_level_that_the_client_set(wire: Wire) -> None:
    start = wire.mark
    if not wire.modern:
        assert wire.result("logging/setLevel", {"level": "warning"}) == {}
    wire.log_level = "warning"
    for level in ("info", "error"):
        wire.call("log", {"level": level, "data": level})
    wire.log_level = None
    said = [each["params"] for each in wire.received[start:] if each.get("method") == "notifications/message"]
    assert said == [{"level": "error", "logger": "every", "data": "error", "x-message": 1}]


def test_a_log_level_that_a_server_refuses_does_no_harm(tmp_path: Path) -> None:
    with Served([config(every())], tmp_path, modern=True) as wire:
        wire.log_level = "loud"
        wire.hello()
        assert wire.text("log", {"level": "error", "data": 1}) == "logged"


@only("legacy", "legacy")
def test_a_client_of_the_older_protocol_hears_changes_of_an_older_server(wire: Wire) -> None:
    _hears_changes(wire)


@only("legacy", "modern")
def test_a_client_of_the_older_protocol_hears_changes_of_a_newer_server(wire: Wire) -> None:
    _hears_changes(wire)


def _hears_changes(wire: Wire) -> None:
    start = wire.mark
    wire.call("touch", {"kind": "prompts"})
    assert wire.told("notifications/prompts/list_changed", start) == {
        "jsonrpc": "2.0",
        "method": "notifications/prompts/list_changed",
    }
    assert wire.result("resources/subscribe", {"uri": "file:///notes.txt"}) == {}
    if wire.server == "modern":
        wire.seen("subscriptions/listen", 2)
    wire.call("touch", {"uri": "file:///notes.txt"})
    assert wire.told("notifications/resources/updated", start)["params"] == {"uri": "file:///notes.txt"}
    assert wire.result("resources/unsubscribe", {"uri": "file:///notes.txt"}) == {}
    if wire.server == "modern":
        wire.seen("notifications/cancelled")
        start = wire.mark
        wire.call("touch", {"uri": "file:///notes.txt"})
        assert [each for each in wire.received[start:] if "method" in each] == []


@only("modern", "legacy")
def test_a_client_that_listens_hears_an_older_server(wire: Wire) -> None:
    start = wire.mark
    wanted = {"promptsListChanged": True, "resourceSubscriptions": ["file:///notes.txt"]}
    first, second = (wire.begin("subscriptions/listen", {"notifications": wanted}) for _ in range(2))
    for id in (first, second):
        wire.wait(lambda each, id=id: _of(each) == id and "acknowledged" in each["method"], start)
    wire.call("touch", {"uri": "file:///notes.txt"})
    wire.call("touch", {"kind": "prompts"})
    wire.call("touch", {"kind": "tools"})
    for id in (first, second):
        for method in ("notifications/resources/updated", "notifications/prompts/list_changed"):
            wire.wait(lambda each, id=id, method=method: _of(each) == id and each["method"] == method, start)
    assert [each for each in wire.received[start:] if "tools" in each.get("method", "")] == []
    assert len(wire.seen("resources/subscribe")) == 1
    wire.notify("notifications/cancelled", {"requestId": first})
    wire.notify("notifications/cancelled", {"requestId": second})
    assert wire.seen("resources/unsubscribe") == [{"method": "resources/unsubscribe", "params": {"uri": "file:///notes.txt"}}]


def _of(message: dict[str, Any]) -> Any:
    return message.get("params", {}).get("_meta", {}).get(META + "subscriptionId")


@only("modern", "legacy")
def test_an_unknown_request_state_makes_no_call(wire: Wire) -> None:
    answer = wire.request(
        "tools/call", {"name": "say", "arguments": {"result": {}}, "requestState": "guessed", "inputResponses": {}}
    )
    assert answer["error"] == {
        "code": -32602,
        "message": "No call is waiting for that requestState. Make the call again without it.",
    }


@only("modern", "legacy")
def test_an_answer_is_used_only_once(wire: Wire) -> None:
    asked = wire.call("ask", {"requests": [FORM]})
    again = {"inputResponses": {"input-1": ANN}, "requestState": asked["requestState"]}
    assert json.loads(wire.call("ask", **again)["content"][0]["text"]) == [ANN]
    assert wire.request("tools/call", {"name": "ask", **again})["error"]["code"] == -32602


@only("modern", "legacy")
def test_a_client_can_cancel_its_call_between_two_questions(wire: Wire) -> None:
    start = wire.mark
    id = wire.begin("tools/call", {"name": "wait", "arguments": {"until": "never"}, "_meta": {"progressToken": "w"}})
    wire.told("notifications/progress", start)
    wire.notify("notifications/cancelled", {"requestId": id})
    wire.seen("notifications/cancelled")
    assert [each for each in wire.received[start:] if each.get("id") == id] == []


def test_a_person_who_refuses_an_answer_refuses_the_call_in_their_own_words(tmp_path: Path) -> None:
    with Served([config(every("modern"))], tmp_path) as wire:
        wire.asked = {"elicitation/create": {"error": {"code": -1, "message": "User rejected the request"}}}
        wire.hello()
        answer = wire.request("tools/call", {"name": "ask", "arguments": {"requests": [FORM, FORM]}})
        assert answer["error"] == {"code": -1, "message": "User rejected the request"}


def test_a_client_without_the_capability_is_not_asked(tmp_path: Path) -> None:
    with Served([config(every())], tmp_path, modern=True) as wire:
        wire.capabilities = {}
        wire.hello()
        (error,) = json.loads(wire.text("ask", {"requests": [FORM]}))
    assert error["message"] == "The client does not declare elicitation, so it cannot be asked."


def test_a_servers_ping_is_answered(tmp_path: Path) -> None:
    with Served([config(every())], tmp_path) as wire:
        wire.hello()
        assert wire.text("ask", {"requests": [{"method": "ping"}]}) == "[{}]"
        assert [each for each in wire.received if each.get("method") == "ping"] == []


@pytest.mark.parametrize("version", ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"])
@pytest.mark.parametrize("server", ["legacy", "modern"])
def test_every_older_version_is_spoken(tmp_path: Path, version: str, server: str) -> None:
    with Served([config(every(server))], tmp_path) as wire:
        wire.version = version
        assert wire.hello()["protocolVersion"] == version
        kept = wire.call("lines", {"count": 1000})
    kinds = [block["type"] for block in kept["content"]]
    assert kinds == (["text", "resource_link"] if version >= "2025-06-18" else ["text"])


def test_a_version_nobody_knows_is_answered_with_the_newest_of_the_handshake(tmp_path: Path) -> None:
    with Served([config(every())], tmp_path) as wire:
        wire.version = "1999-01-01"
        assert wire.hello()["protocolVersion"] == "2025-11-25"
