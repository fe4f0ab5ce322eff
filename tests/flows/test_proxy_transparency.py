"""The same conversation with a server directly and through the proxy: what the client reads is the same, message by message."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from wire import Process, Served, Wire, config, every

from overspill.mcp.client.handshake import TASKS
from overspill.retrieval.definitions import definition, offered_tools
from overspill.settings import Settings

ANSWERS: dict[str, Any] = {
    "elicitation/create": {"result": {"action": "accept", "content": {"name": "Ann"}, "x-answer": [1]}},
    "sampling/createMessage": {
        "result": {"role": "assistant", "content": {"type": "text", "text": "hm"}, "model": "m", "x-answer": None}
    },
    "roots/list": {"error": {"code": -32000, "message": "No roots today", "data": {"why": "rain"}}},
    "x/unheard-of": {"result": {"x": [1, None]}},
}
FORM = {"mode": "form", "message": "Name?", "requestedSchema": {"type": "object", "properties": {}}, "x-form": 1}


class Both:
    def __init__(self, direct: Wire, proxied: Wire) -> None:
        self.direct = direct
        self.proxied = proxied
        for wire in (direct, proxied):
            wire.asked = ANSWERS
        self.greetings = direct.hello(), proxied.hello()

    def agree(self, flow: Callable[[Wire], Any]) -> list[dict[str, Any]]:
        """Whatever came back from either, in order."""
        heard: list[list[dict[str, Any]]] = []
        for wire in (self.direct, self.proxied):
            start = wire.mark
            flow(wire)
            heard.append([_numbered(each) for each in wire.received[start:]])
        assert heard[0] == heard[1]
        return heard[0]


def _numbered(message: dict[str, Any]) -> dict[str, Any]:
    """The one thing that differs: what each side calls its own requests."""
    return {**message, "id": "theirs"} if "method" in message and "id" in message else message


@pytest.fixture(scope="module", params=["legacy", "modern"])
def both(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Both]:
    era, store = request.param, tmp_path_factory.mktemp("store")
    modern = era == "modern"
    with Process(every(era), modern=modern) as direct, Served([config(every(era))], store, modern=modern) as proxied:
        yield Both(direct, proxied)


def only(era: str) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("both", [era], indirect=True)


def say(result: dict[str, Any]) -> Callable[[Wire], Any]:
    return lambda wire: wire.call("say", {"result": result})


def text(words: str, **more: Any) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": words}], **more}


RESULTS: dict[str, dict[str, Any]] = {
    "plain text": text("hello"),
    "no text": text(""),
    "no content at all": {"content": []},
    "not even a content": {"x-only": 1},
    "an error": text("it failed", isError=True),
    "not an error": text("it worked", isError=False),
    "unknown fields": {"content": [{"type": "text", "text": "a", "x-block": {"deep": [None, {}]}}], "x-result": [1, "2"]},
    "metadata": text("a", _meta={"vendor/key": {"a": [1]}}),
    "annotations": {"content": [{"type": "text", "text": "a", "annotations": {"audience": ["user"], "priority": 0.5, "x": 1}}]},
    "an image": {"content": [{"type": "image", "data": "iVBORw0KGgo=", "mimeType": "image/png", "x-image": 1}]},
    "audio": {"content": [{"type": "audio", "data": "UklGRg==", "mimeType": "audio/wav"}]},
    "a link": {"content": [{"type": "resource_link", "uri": "file:///a", "name": "a", "size": 3, "x-link": 1}]},
    "a resource with text": {"content": [{"type": "resource", "resource": {"uri": "file:///a", "text": "abc", "x-r": 1}}]},
    "a resource with bytes": {"content": [{"type": "resource", "resource": {"uri": "file:///a", "blob": "AAEC"}}]},
    "a block nobody knows": {"content": [{"type": "x-hologram", "rays": [1, 2]}, {"type": "text", "text": "a"}]},
    "mixed blocks": {
        "content": [
            {"type": "text", "text": "one"},
            {"type": "image", "data": "AA==", "mimeType": "image/png"},
            {"type": "text", "text": "two"},
        ]
    },
    "structure": text('{"a": 1}', structuredContent={"a": 1}),
    "structure alone": {"content": [], "structuredContent": {"a": [1, {"b": None}]}},
    "structure that says something else": text("see the structure", structuredContent={"a": 1.5, "b": "c"}),
    "structure under result": text("5", structuredContent={"result": 5}),
    "a lone surrogate": text("a\ud800b"),
    "a lone surrogate in structure": text("a", structuredContent={"k\udc00": "v\udfff"}),
    "every control character": text("".join(map(chr, range(32))) + "\x7f\x85\u2028\u2029\ufeff"),
    "more than the first plane": text("🦊" * 20),
    "big whole numbers": text("a", structuredContent={"n": 2**53 + 1, "m": -(2**63), "h": 2**64, "g": 10**40}),
    "small and large fractions": text("a", structuredContent={"n": [0.1, 1e-300, 1e300, -0.0, 5e-324]}),
    "blocks that are no blocks": {"content": ["text", 5, None, {"no": "type"}]},
    "content that is no list": {"content": "text"},
    "a text that is no text": {"content": [{"type": "text", "text": 5}]},
}


@pytest.mark.promise("small-things-untouched")
@pytest.mark.parametrize("name", RESULTS)
def test_a_result_within_the_limits_arrives_unchanged(both: Both, name: str) -> None:
    (answer,) = both.agree(say(RESULTS[name]))
    assert (
        RESULTS[name].items()
        <= {**answer["result"], **({"_meta": RESULTS[name].get("_meta")} if both.direct.modern else {})}.items()
    )


def listing(wire: Wire) -> None:
    cursor = wire.result("prompts/list")
    assert "nextCursor" not in cursor
    wire.result("resources/list")
    wire.result("resources/templates/list")


def elicit(wire: Wire) -> None:
    asks = [
        {"method": method, "params": params}
        for method, params in (("elicitation/create", FORM), ("sampling/createMessage", {"maxTokens": 5}))
    ]
    first = wire.call("ask", {"requests": asks})
    if first.get("resultType") == "input_required":
        responses = {key: ANSWERS[each["method"]]["result"] for key, each in first["inputRequests"].items()}
        wire.call("ask", {"requests": asks}, inputResponses=responses, requestState=first["requestState"])


FLOWS: dict[str, Callable[[Wire], Any]] = {
    "ping, or none": lambda wire: wire.request("ping"),
    "lists": listing,
    "a prompt": lambda wire: wire.result("prompts/get", {"name": "greet", "arguments": {"who": "Ann"}, "x-param": 1}),
    "a text resource": lambda wire: wire.result("resources/read", {"uri": "file:///notes.txt"}),
    "a binary resource": lambda wire: wire.result("resources/read", {"uri": "file:///pixel.png"}),
    "a resource that is not there": lambda wire: wire.request("resources/read", {"uri": "file:///none"}),
    "completions": lambda wire: wire.result(
        "completion/complete",
        {"ref": {"type": "ref/prompt", "name": "greet"}, "argument": {"name": "who", "value": "hel"}, "context": {"x": 1}},
    ),
    "a refusal": lambda wire: wire.request(
        "tools/call", {"name": "fail", "arguments": {"code": -32055, "message": "no", "data": {"deep": [1, None]}}}
    ),
    "a refusal without data": lambda wire: wire.request("tools/call", {"name": "fail", "arguments": {"code": 7, "message": ""}}),
    "a tool that is not there": lambda wire: wire.request("tools/call", {"name": "nothing", "arguments": {}}),
    "a call without arguments": lambda wire: wire.request("tools/call", {"name": "seen", "arguments": {"method": "never"}}),
    "a method nobody knows": lambda wire: wire.request("x/unknown", {"a": 1}),
    "a method only they know": lambda wire: wire.request("x/echo", {"a": {"b": [None]}}),
    "progress": lambda wire: wire.call(
        "steps",
        {"steps": [{"progress": 1, "x-step": 1}, {"progress": 2.5, "total": 4, "message": "half"}, {"progress": 3}]},
        _meta={"progressToken": "mine"},
    ),
    "progress under a number": lambda wire: wire.call("steps", {"steps": [{"progress": 1}]}, _meta={"progressToken": 7}),
    "elicitation and sampling": elicit,
}
OLDER: dict[str, Callable[[Wire], Any]] = {
    "roots, refused": lambda wire: wire.call("ask", {"requests": [{"method": "roots/list"}]}),
    "a request nobody knows": lambda wire: wire.call("ask", {"requests": [{"method": "x/unheard-of", "params": {"p": 1}}]}),
    "a level": lambda wire: wire.result("logging/setLevel", {"level": "warning"}),
    "a level there is not": lambda wire: wire.request("logging/setLevel", {"level": "loud"}),
    "a message": lambda wire: wire.call("log", {"level": "error", "data": {"deep": [1, None]}}),
    "a message below the level": lambda wire: wire.call("log", {"level": "debug", "data": "quiet"}),
    "a subscription": lambda wire: wire.result("resources/subscribe", {"uri": "file:///notes.txt"}),
    "no subscription": lambda wire: wire.result("resources/unsubscribe", {"uri": "file:///notes.txt"}),
    "a resource changes": lambda wire: wire.call("touch", {"uri": "file:///notes.txt"}),
    "prompts change": lambda wire: wire.call("touch", {"kind": "prompts"}),
    "tools change": lambda wire: wire.call("touch", {"kind": "tools"}),
    "a notification nobody knows": lambda wire: wire.call("notify", {"method": "notifications/x/y", "params": {"a": [None]}}),
    "a notification without anything": lambda wire: wire.call("notify", {"method": "notifications/x/z"}),
}


@pytest.mark.parametrize("name", FLOWS)
def test_a_conversation_is_the_same_through_the_proxy(both: Both, name: str) -> None:
    assert both.agree(FLOWS[name])


@only("legacy")
@pytest.mark.parametrize("name", OLDER)
def test_a_conversation_of_the_older_protocol_is_the_same_through_the_proxy(both: Both, name: str) -> None:
    assert both.agree(OLDER[name])


def listen(wire: Wire) -> None:
    start = wire.mark
    id = wire.begin(
        "subscriptions/listen", {"notifications": {"promptsListChanged": True, "resourceSubscriptions": ["file:///notes.txt"]}}
    )
    wire.told("notifications/subscriptions/acknowledged", start)
    for change in ({"kind": "prompts"}, {"kind": "tools"}, {"uri": "file:///notes.txt"}):
        wire.call("touch", change)
    wire.told("notifications/resources/updated", start)
    wire.notify("notifications/cancelled", {"requestId": id})


@pytest.mark.slow
def test_thousands_of_notes_arrive_in_order_and_before_their_result(both: Both) -> None:
    steps = [{"progress": number, "message": "x" * (number % 700)} for number in range(3000)]
    heard = both.agree(lambda wire: wire.call("steps", {"steps": steps}, _meta={"progressToken": "many"}))
    assert [each["params"]["progress"] for each in heard[:-1]] == list(range(3000))
    assert "result" in heard[-1]


@only("modern")
def test_a_client_gets_the_notifications_it_listens_to_and_no_others(both: Both) -> None:
    heard: list[list[Any]] = []
    for wire in (both.direct, both.proxied):
        start = wire.mark
        listen(wire)
        heard.append(sorted((each["method"], each["params"]) for each in wire.received[start:] if "method" in each))
    assert heard[0] == heard[1]
    assert [method for method, _ in heard[0]] == [
        "notifications/prompts/list_changed",
        "notifications/resources/updated",
        "notifications/subscriptions/acknowledged",
    ]


@only("modern")
def test_log_messages_come_with_the_requests_that_want_them(both: Both) -> None:
    def log(wire: Wire) -> None:
        for level in (None, "error", "info"):
            wire.log_level = level
            wire.call("log", {"level": "warning", "data": [level]})
        wire.log_level = None

    messages = [each["params"]["data"] for each in both.agree(log) if each.get("method") == "notifications/message"]
    assert messages == [["info"]]


def test_tools_are_listed_page_by_page_with_all_their_fields(both: Both) -> None:
    for cursor in ({}, {"cursor": "more"}):
        theirs, shown = both.direct.result("tools/list", cursor), both.proxied.result("tools/list", cursor)
        if both.direct.modern:  # the list is always the same, so it may be cached as long as the server says
            assert (shown["ttlMs"], shown["cacheScope"]) == (1000, "public")
        for tool in (*theirs["tools"], *shown["tools"]):
            tool.pop("outputSchema", None)
        own = [definition(name, "mcp") for name in offered_tools(Settings())] if "nextCursor" not in theirs else []
        assert shown == {**theirs, "tools": theirs["tools"] + own}


def test_a_cancelled_call_is_cancelled_at_the_server_and_never_answered(both: Both) -> None:
    for wire in (both.direct, both.proxied):
        start = wire.mark
        id = wire.begin("tools/call", {"name": "wait", "arguments": {"until": "never"}, "_meta": {"progressToken": "p"}})
        wire.told("notifications/progress", start)
        wire.notify("notifications/cancelled", {"requestId": id, "reason": "changed my mind"})
        wire.seen("notifications/cancelled")
        assert [each for each in wire.received[start:] if each.get("id") == id] == []


@only("legacy")
def test_a_clients_notifications_reach_the_server(both: Both) -> None:
    for wire in (both.direct, both.proxied):
        wire.notify("notifications/roots/list_changed")
        wire.notify("notifications/x/told", {"a": [None]})
        assert wire.seen("notifications/initialized") == [{"method": "notifications/initialized", "params": None}]
        assert wire.seen("notifications/roots") == [{"method": "notifications/roots/list_changed", "params": None}]
        assert wire.seen("notifications/x/told") == [{"method": "notifications/x/told", "params": {"a": [None]}}]


def test_a_client_that_asks_for_no_progress_gets_none(both: Both) -> None:
    """The proxy asks for it, to show it where a model asks about a running call."""
    start = both.proxied.mark
    both.proxied.call("steps", {"steps": [{"progress": 1}]})
    (heard,) = both.proxied.received[start:]
    assert heard["result"]["content"] == [{"type": "text", "text": "1 steps, heard"}]


def test_the_server_is_introduced_as_itself(both: Both) -> None:
    theirs, shown = both.greetings
    theirs.pop("x-greeting", None)
    if both.direct.modern:  # the proxy makes tasks of slow calls, whether or not the server can
        theirs["capabilities"] |= {"extensions": theirs["capabilities"].get("extensions", {}) | {TASKS: {}}}
        assert shown.pop("ttlMs") <= theirs.pop("ttlMs")  # the server's answer may be older
    assert shown == theirs
