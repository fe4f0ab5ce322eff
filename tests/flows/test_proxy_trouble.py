"""Servers that die, hang or babble, and clients that send nonsense: whoever is left gets an answer, and the session goes on."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from extras import OFFERED
from wire import Served, Wire, config, every

pytestmark = pytest.mark.slow

CHANGES = ["notifications/tools/list_changed", "notifications/prompts/list_changed", "notifications/resources/list_changed"]


@pytest.fixture(scope="module")
def steady(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Wire]:
    """For mistakes of the client: all of them to one proxy, which goes on."""
    with Served([config(every())], tmp_path_factory.mktemp("store")) as wire:
        wire.hello()
        yield wire


@pytest.mark.parametrize("era", ["legacy", "modern"])
def test_a_server_that_dies_is_restarted_and_its_client_continues(tmp_path: Path, era: str) -> None:
    with Served([config(every(era))], tmp_path) as wire:
        wire.hello()
        wire.result("logging/setLevel", {"level": "error"})
        wire.result("resources/subscribe", {"uri": "file:///notes.txt"})
        kept = wire.call("lines", {"count": 1000})["content"][1]["name"]
        waiting = wire.begin("tools/call", {"name": "wait", "arguments": {"until": "never"}, "_meta": {"progressToken": 1}})
        wire.told("notifications/progress")
        start = wire.mark
        ending = wire.begin("tools/call", {"name": "end", "arguments": {"code": 3, "words": "out of memory"}})
        words = "The server every ended with exit code 3. Its last line on standard error: out of memory"
        for id in (waiting, ending):
            assert wire.answer(id)["result"] == {"content": [{"type": "text", "text": words}], "isError": True}
        assert "line 5:" in wire.text("get_artifact", {"id": kept, "lines": "5-5"})
        assert "say" in wire.names()
        wire.call("log", {"level": "error", "data": "again"})
        assert wire.told("notifications/message", start)["params"]["data"] == "again"
        if era == "modern":
            wire.seen("subscriptions/listen", 2)
        wire.call("touch", {"uri": "file:///notes.txt"})
        assert wire.told("notifications/resources/updated", start)["params"] == {"uri": "file:///notes.txt"}
        assert not [each for each in wire.received[start:] if each.get("method") in CHANGES]  # the new process lists the same
        assert any(words in line for line in wire.log)


def test_a_restarted_server_may_refuse_what_it_accepted_before(tmp_path: Path) -> None:
    with Served([config(every())], tmp_path) as wire:
        wire.hello()
        assert wire.request("logging/setLevel", {"level": "loud"})["error"]["code"] == -32602
        wire.call("end")
        assert wire.text("lines", {"count": 1}) == "line 1: the quick brown fox\n"


def test_a_server_that_cannot_be_started_is_named_with_the_reason(tmp_path: Path) -> None:
    with Served([config(["sh", "-c", "echo no key >&2; exit 7"], "broken")], tmp_path) as wire:
        greeting = wire.hello()
        assert "The server broken ended with exit code 7. Its last line on standard error: no key" in greeting["instructions"]
        assert wire.names() == OFFERED
        result = wire.call("anything")
        assert result["isError"] is True
        assert "Its last line on standard error: no key" in result["content"][0]["text"]
        assert "no key" in wire.request("resources/read", {"uri": "file:///x"})["error"]["message"]
        assert wire.result("ping") == {}
        assert wire.text("tool_output", {"handle": "x", "extract": "y"}).startswith("ABSTRACT FROM TOOL OUTPUT unknown")


def test_a_server_that_never_answers_delays_its_client_only_briefly(tmp_path: Path) -> None:
    settings = {"asyncTimeoutSecs": 0.3}
    with Served([config(every("legacy", "silent"))], tmp_path, first_wait=0.3, settings=settings) as wire:
        assert "The server every has not answered yet." in wire.hello()["instructions"]
        first = wire.begin("tools/call", {"name": "say", "arguments": {"result": {}}})
        assert wire.text("say", {"result": {}}).startswith("Tool Output ID: art_")
        assert wire.answer(first)["result"]["content"][0]["text"].startswith("Tool Output ID: art_")


def test_a_server_that_never_lists_its_tools_does_not_hide_the_others(tmp_path: Path) -> None:
    servers = [config(every("legacy", name), name) for name in ("stuck", "fine")]
    with Served(servers, tmp_path) as wire:
        wire.hello()
        asked = ("tools/list", "prompts/list", "resources/list")
        tools, prompts, resources = (wire.begin(method) for method in asked)
        read = wire.begin("resources/read", {"uri": "file:///notes.txt"})
        assert wire.answer(tools)["result"]["tools"][0]["name"] == "fine__say"
        assert [prompt["name"] for prompt in wire.answer(prompts)["result"]["prompts"]] == ["fine__greet", "fine__plain"]
        assert [each["name"] for each in wire.answer(resources)["result"]["resources"]] == ["notes", "pixel"]
        assert wire.answer(read)["result"]["contents"][0]["text"] == "notes"
        assert wire.text("stuck__lines", {"count": 1}) == "line 1: the quick brown fox\n"
        assert wire.call("get_tool_output", {"id": "nothing", "mode": "raw"})["isError"] is True
        assert len(json.loads(wire.text("stuck__seen", {"method": "tools/list"}))) == 1  # nobody waited for it again
    for method in asked:
        assert f"The server stuck did not answer {method} within 10 s, so the list is without it." in wire.log


def test_servers_may_be_called_anything(tmp_path: Path) -> None:
    with Served([config(every(), name) for name in ("my server", "my/server")], tmp_path) as wire:
        wire.hello()
        names = wire.names()
        assert (names[0], names[(len(names) - len(OFFERED)) // 2]) == ("my_server__say", "my_server_2__say")
        pids = [wire.text(f"{prefix}__pid") for prefix in ("my_server", "my_server_2")]
        assert len(set(pids)) == 2
        prompts = [prompt["name"] for prompt in wire.result("prompts/list")["prompts"]]
        assert prompts == ["my_server__greet", "my_server__plain", "my_server_2__greet", "my_server_2__plain"]
        assert wire.result("prompts/get", {"name": "my_server_2__greet"})["description"] == "d"


def test_a_late_server_is_announced_once_it_is_up(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "gate")
    with Served([config(every("legacy", "late", str(tmp_path / "gate")))], tmp_path / "store", first_wait=0.3) as wire:
        assert "has not answered yet" in wire.hello()["instructions"]
        with open(tmp_path / "gate", "wb"):
            pass
        for method in CHANGES:
            wire.told(method)
        assert "say" in wire.names()


@pytest.mark.slow
def test_the_first_question_of_the_stateless_protocol_is_answered_before_its_client_gives_up(tmp_path: Path) -> None:
    """The official client waits ten seconds for it, twice, and a server that is fetched first takes longer."""
    os.mkfifo(tmp_path / "gate")
    server = every("legacy", "late", str(tmp_path / "gate"))
    with Served([config(server)], tmp_path / "store", modern=True) as wire:
        began = time.monotonic()
        assert "has not answered yet" in wire.hello()["instructions"]
        assert time.monotonic() - began < 10
        with open(tmp_path / "gate", "wb"):
            pass
        assert "say" in wire.names()


GARBAGE = [
    "Listening on port 3000",
    "",
    "{}",
    "[]",
    "null",
    '{"jsonrpc":"2.0","id":99999,"result":{}}',
    '{"jsonrpc":"2.0","id":[],"method":"x"}',
    '{"jsonrpc":"2.0","method":"notifications/message","params":{"_meta":5}}',
    '{"jsonrpc":"2.0","method":"notifications/tools/list_changed","params":{"_meta":null}}',
    '{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":5}}',
    '{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":[]}}',
    '{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"overspill-1","progress":"much"}}',
    '{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"overspill-1","progress":1' + 400 * "0" + "}}",
    '{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":[]}}',
    '{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":[]}',
    '{"jsonrpc":"2.0","id":7,"method":"roots/list","params":{"_meta":[]}}',
    "\x00\x01\x02",
    '{"jsonrpc":"2.0","method":' + "[" * 2000,
]


@pytest.mark.parametrize("modern", [False, True])
@pytest.mark.parametrize("era", ["legacy", "modern"])
def test_a_servers_garbage_does_no_harm(tmp_path: Path, era: str, modern: bool) -> None:
    with Served([config(every(era))], tmp_path, modern=modern) as wire:
        wire.capabilities = {}
        wire.asked = {"roots/list": {"result": {"roots": []}}}
        wire.hello()
        pid = wire.text("pid")
        assert wire.text("garbage", {"lines": GARBAGE}, _meta={"progressToken": 1}) == "clean again"
        assert wire.text("garbage", {"lines": GARBAGE}) == "clean again"
        assert wire.text("pid") == pid
        assert "say" in wire.names()


RESULTS: list[Any] = [
    {"content": None},
    {"content": {}},
    {"content": [None, 1, "x", [], {"type": "text"}, {"type": "text", "text": None}]},
    {"content": [{"type": "image", "data": 5}]},
    {"content": [{"type": "resource", "resource": None}]},
    {"content": [{"type": "resource", "resource": {"text": 5}}]},
    {"content": [], "isError": "yes", "structuredContent": "text", "_meta": 5},
    {"structuredContent": {"result": None}},
    {"content": [{"type": "text", "text": "[" * 5000}], "structuredContent": {"result": "[" * 5000}},
]


@pytest.mark.parametrize("result", RESULTS)
def test_a_result_of_any_shape_arrives(steady: Wire, result: Any) -> None:
    assert steady.call("say", {"result": result}) == result


@pytest.mark.parametrize("kind", ["text", "structuredContent"])
def test_a_large_result_of_a_strange_shape_is_kept(steady: Wire, kind: str) -> None:
    strange = [None, 1, {"type": "text"}, {"type": "resource", "resource": {"text": "r" * 20_000}}]
    result = steady.call(
        "say", {"result": {"content": strange, **({kind: ["s" * 20_000]} if kind == "structuredContent" else {})}}
    )
    assert "session-" in json.dumps(result)


LINES = [
    b"not json",
    b"{",
    b"[]",
    b"5",
    b'"text"',
    b"null",
    b"{}",
    b'{"jsonrpc":"1.0","id":1,"method":"ping"}',
    b'{"jsonrpc":"2.0","id":{},"method":"ping"}',
    b'{"jsonrpc":"2.0","id":true,"method":"ping"}',
    b'{"jsonrpc":"2.0","id":1.5,"method":"ping"}',
    b'{"jsonrpc":"2.0","method":5}',
    b'{"jsonrpc":"2.0","result":{}}',
    b'{"jsonrpc":"2.0","error":{}}',
    b"\xff\xfe\x00",
    b"[" * 100_000,
]


@pytest.mark.parametrize("line", LINES, ids=lambda line: line[:30].decode(errors="replace"))
def test_anything_but_a_message_is_refused_and_the_session_continues(steady: Wire, line: bytes) -> None:
    start = steady.mark
    steady.write(line + b"\n")
    refusal = steady.wait(lambda each: "error" in each, start)
    assert (refusal["id"], refusal["error"]["code"]) == (None, -32700)
    assert refusal["error"]["message"].startswith("Received ")
    assert steady.result("ping") == {}


@pytest.mark.parametrize("params", [b"[]", b"5", b'"x"', b"null"])
def test_an_invalid_request_is_refused_under_its_id(steady: Wire, params: bytes) -> None:
    start = steady.mark
    steady.write(b'{"jsonrpc":"2.0","id":"mine","method":"tools/list","params":' + params + b"}\n")
    refusal = steady.wait(lambda each: each.get("id") == "mine", start)
    assert refusal["error"]["code"] == -32600
    assert steady.result("ping") == {}


def test_empty_lines_and_windows_line_ends_are_accepted(steady: Wire) -> None:
    start = steady.mark
    steady.write(b'\n\r\n  \n{"jsonrpc":"2.0","id":"crlf","method":"ping"}\r\n')
    assert steady.wait(lambda each: each.get("id") == "crlf", start)["result"] == {}
    assert len(steady.received) == start + 1


CALLS: list[Any] = [
    {},
    {"name": None},
    {"name": 5},
    {"name": ""},
    {"name": "say", "arguments": []},
    {"name": "say", "arguments": "text"},
    {"name": "say", "arguments": None},
    {"name": "nothing", "_meta": None},
    {"name": "nothing", "_meta": 5},
    {"name": "nothing", "_meta": {"progressToken": {"a": 1}}},
    {"name": "tool_output", "arguments": []},
    {"name": "tool_output", "arguments": {"handle": 5}},
    {"name": "get_tool_output", "arguments": {"id": "x" * 100_000, "mode": "raw"}},
]


@pytest.mark.parametrize("params", CALLS)
def test_a_call_of_any_shape_is_answered(steady: Wire, params: Any) -> None:
    answer = steady.request("tools/call", params)
    assert "error" in answer or answer["result"]["isError"] is True
    assert answer.get("error", {}).get("code") != 0


@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("resources/read", {}),
        ("resources/read", {"uri": 5}),
        ("resources/read", {"uri": "overspill://" + "x" * 10_000}),
        ("resources/subscribe", {}),
        ("prompts/get", {"name": []}),
        ("completion/complete", {"ref": 5, "argument": None}),
        ("logging/setLevel", {}),
        ("subscriptions/listen", {}),
        ("server/discover", {}),
        ("", {}),
    ],
)
def test_a_request_of_any_shape_is_answered(steady: Wire, method: str, params: dict[str, Any]) -> None:
    assert {"result", "error"} & set(steady.request(method, params))
    assert steady.result("ping") == {}


def test_two_requests_with_the_same_id_are_both_answered(steady: Wire) -> None:
    start = steady.mark
    for number in (1, 2):
        steady.send({"id": "twice", "method": "x/echo", "params": {"n": number}})
    steady.result("ping")
    steady.wait(lambda each: each.get("id") == "twice" and each["result"]["echo"] == {"n": 2}, start)
    steady.wait(lambda each: each.get("id") == "twice" and each["result"]["echo"] == {"n": 1}, start)


def test_answers_and_cancellations_without_a_request_are_ignored(steady: Wire) -> None:
    steady.send({"id": 424242, "result": {}})
    steady.send({"id": 424242, "error": {"code": 1, "message": "x"}})
    steady.notify("notifications/cancelled", {"requestId": 424242})
    steady.notify("notifications/cancelled")
    steady.notify("notifications/progress", {"progressToken": 1, "progress": 1})
    assert steady.result("ping") == {}


def test_before_the_handshake_nothing_else_is_answered(tmp_path: Path) -> None:
    with Served([config(every())], tmp_path) as wire:
        wire.notify("notifications/x")
        assert "error" in wire.request("tools/list")
        assert "error" in wire.request("tools/call", {"name": "say", "arguments": {"result": {}}})
        wire.hello()
        assert "say" in wire.names()


def test_a_client_may_initialize_twice(tmp_path: Path) -> None:
    with Served([config(every())], tmp_path) as wire:
        assert wire.hello() == wire.hello()
        pid = wire.text("pid")
        wire.hello()
        assert wire.text("pid") == pid


def test_requests_may_be_sent_before_the_handshake_is_answered(tmp_path: Path) -> None:
    with Served([config(every())], tmp_path) as wire:
        greeting = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "hasty", "version": "0"}}
        first = wire.begin("initialize", greeting)
        wire.notify("notifications/initialized")
        second = wire.begin("tools/list")
        assert "result" in wire.answer(second)
        assert [each["id"] for each in wire.received] == [first, second]


def test_a_client_is_asked_nothing_before_its_handshake_is_complete(tmp_path: Path) -> None:
    with Served([config(every("legacy", "curious"))], tmp_path) as wire:
        wire.asked = {"roots/list": {"result": {"roots": []}}}
        wire.hello()
        wire.told("roots/list")
        assert [each.get("method", "greeting") for each in wire.received[:2]] == ["greeting", "roots/list"]


@pytest.mark.slow
def test_a_line_of_a_gigabyte_is_refused_without_filling_memory(tmp_path: Path) -> None:
    with Served([config(every())], tmp_path) as wire:
        wire.hello()
        before = _peak()
        wire.write(b'{"jsonrpc":"2.0","id":"huge","method":"tools/call","params":{"name":"')
        for _ in range(1024):
            wire.write(b"x" * (1 << 20))
        wire.write(b'"}}\n')
        refusal = wire.wait(lambda each: each.get("id") == "huge")
        assert refusal["error"]["code"] == -32600
        assert wire.result("ping") == {}
        assert _peak() - before < 700_000


def _peak() -> int:
    """Kilobytes this process has had at most."""
    status = Path("/proc/self/status").read_text()
    return int(next(line for line in status.splitlines() if line.startswith("VmHWM")).split()[1])
