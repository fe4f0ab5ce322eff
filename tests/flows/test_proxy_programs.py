"""A program gets the whole result, as the server sent it; a model gets a card. The same result is stored for both."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from frames import TOO_LARGE
from upstream import script
from wire import Served

from overspill.mcp.proxy.known_clients import find_known_client

CODEX = {"name": "codex-mcp-client", "version": "0.169.0"}
FROM_PROGRAM = {"callId": "exec-5b9ad4a6-9b3c-4d43-8e0a-0a1b2c3d4e5f"}
FROM_MODEL = {"callId": "call_abc"}
HANDLE = re.compile(r"session-[0-9a-f-]{36}/[0-9a-f-]{36}")
COUNT = 3000
LARGE = "words and more words\n" * 2000


@contextmanager
def serving(store: Path, info: Mapping[str, Any], settings: Mapping[str, Any] | None = None, **more: Any) -> Iterator[Served]:
    with Served([script("rows")], store, settings=settings, **more) as wire:
        wire.info = info
        wire.hello()
        yield wire


def ask_rows(wire: Served, meta: Mapping[str, Any] | None = None, **arguments: Any) -> dict[str, Any]:
    return wire.call("rows", {"count": COUNT, **arguments}, **({} if meta is None else {"_meta": meta}))


def is_card(result: Mapping[str, Any]) -> bool:
    return result["content"][0]["text"].startswith(TOO_LARGE)


def sent_rows(count: int = COUNT) -> dict[str, Any]:
    return {"rows": [{"id": number, "city": f"City {number % 7}", "sales": number * 3} for number in range(count)]}


@pytest.mark.promise("nothing-lost")
@pytest.mark.parametrize("modern", [False, True])
def test_a_program_gets_every_row_and_the_result_is_stored_too(tmp_path: Path, modern: bool) -> None:
    with serving(tmp_path, CODEX, modern=modern) as wire:
        result = ask_rows(wire, FROM_PROGRAM)
        assert result["structuredContent"] == sent_rows()
        assert result["content"] == [{"type": "text", "text": json.dumps(sent_rows())}]
        handle = result["_meta"]["overspill/handle"]
        assert HANDLE.fullmatch(handle)
        stored = wire.call("get_tool_output", {"id": handle, "mode": "query", "query": "length(rows)"})
        assert str(COUNT) in stored["content"][0]["text"]


def test_the_model_of_the_same_client_gets_a_card(tmp_path: Path) -> None:
    with serving(tmp_path, CODEX) as wire:
        assert is_card(ask_rows(wire, FROM_MODEL))
        assert wire.log == []


@pytest.mark.parametrize("meta", [None, {}, {"callId": 7}, {"callId": None}, {"other": "exec-1"}])
def test_where_nothing_says_who_gets_the_result_the_proxy_says_so_once(tmp_path: Path, meta: Any) -> None:
    with serving(tmp_path, CODEX, {"repeats": "full"}) as wire:
        assert is_card(ask_rows(wire, meta))
        assert is_card(ask_rows(wire, meta, count=COUNT + 1))
        (said,) = wire.log
        assert "clients.codex-mcp-client.programs" in said
        assert "docs/code-mode.md" in said


@pytest.mark.parametrize(
    "info", [{"name": "somebody", "version": "1"}, {"name": "", "version": ""}, {"name": "Zed", "version": "garbage"}]
)
def test_another_client_gets_a_card_without_a_word(tmp_path: Path, info: dict[str, Any]) -> None:
    with serving(tmp_path, info) as wire:
        assert is_card(ask_rows(wire, FROM_PROGRAM))
        assert wire.log == []


@pytest.mark.parametrize(
    "settings",
    [
        {"programs": "whole"},
        {"clients": {"SomeBody": {"programs": "whole"}}},
        {"clients": {"somebody": {"programs": "card"}}, "servers": {"rows": {"programs": "whole"}}},
        {"servers": {"rows": {"programs": "card"}}, "truncation": {"overrides": {"ROWS": {"programs": "whole"}}}},
    ],
)
def test_the_user_chooses_whole_for_all_a_client_a_server_or_a_tool(tmp_path: Path, settings: dict[str, Any]) -> None:
    with serving(tmp_path, {"name": "somebody", "version": "1"}, settings) as wire:
        result = ask_rows(wire)
        assert result["structuredContent"] == sent_rows()
        assert HANDLE.fullmatch(result["_meta"]["overspill/handle"])


@pytest.mark.parametrize(
    "settings",
    [
        {"programs": "card"},
        {"clients": {"codex-mcp-client": {"programs": "card"}}},
        {"programs": "whole", "clients": {"CODEX-mcp-client": {"programs": "card"}}},
        {"programs": "whole", "servers": {"rows": {"programs": "card"}}},
        {"clients": {"codex-mcp-client": {"programs": "whole"}}, "truncation": {"overrides": {"rows": {"programs": "card"}}}},
    ],
)
def test_a_card_that_the_user_chose_stays_a_card_and_is_no_error(tmp_path: Path, settings: dict[str, Any]) -> None:
    with serving(tmp_path, CODEX, settings) as wire:
        result = ask_rows(wire, FROM_PROGRAM)
        assert is_card(result)
        assert "isError" not in result
        assert wire.log == []


def test_a_card_fits_the_output_schema_that_the_client_was_given(tmp_path: Path) -> None:
    with serving(tmp_path, CODEX) as wire:
        schema = next(tool for tool in wire.result("tools/list")["tools"] if tool["name"] == "rows")["outputSchema"]
        jsonschema.validate(ask_rows(wire, FROM_MODEL)["structuredContent"], schema)
        jsonschema.validate(ask_rows(wire, FROM_PROGRAM)["structuredContent"], schema)


def test_where_every_result_passes_whole_the_output_schema_is_the_servers_own(tmp_path: Path) -> None:
    with serving(tmp_path, CODEX, {"programs": "whole"}) as wire:
        schema = next(tool for tool in wire.result("tools/list")["tools"] if tool["name"] == "rows")["outputSchema"]
        assert set(schema) == {"type", "properties", "required"}


@pytest.mark.promise("failures-are-answers")
def test_a_program_whose_client_cannot_take_the_result_gets_an_error_that_says_how_to_read_it(tmp_path: Path) -> None:
    row = find_known_client(CODEX)
    assert row is not None
    assert row.max_result_bytes is not None
    size = row.max_result_bytes + 1
    with serving(tmp_path, CODEX) as wire:
        result = wire.call("huge", {"size": size}, _meta=FROM_PROGRAM)
        assert result["isError"] is True
        assert "structuredContent" not in result
        name = re.search(r"out_\w+", result["content"][0]["text"])
        assert name
        assert "get_tool_output" in result["content"][0]["text"]
        part = wire.call("get_tool_output", {"id": name.group(), "mode": "slice", "slice": {"start": size - 10, "length": 10}})
        assert "x" * 10 in part["content"][0]["text"]


def test_a_large_image_counts_toward_what_the_client_can_take(tmp_path: Path) -> None:
    row = find_known_client(CODEX)
    assert row is not None
    assert row.max_result_bytes is not None
    with serving(tmp_path, CODEX) as wire:
        result = wire.call("image", {"size": row.max_result_bytes + 1}, _meta=FROM_PROGRAM)
        assert result["isError"] is True
        assert len(json.dumps(result)) < 1000


@pytest.mark.parametrize(
    "given",
    [
        pytest.param({"content": [], "structuredContent": {"text": LARGE}}, id="no-text"),
        pytest.param({"content": [{"type": "text", "text": LARGE}]}, id="no-structure"),
        pytest.param({"content": [{"type": "text", "text": LARGE}], "structuredContent": {"other": 1}}, id="text-not-json"),
        pytest.param({"content": [{"type": "text", "text": LARGE}], "isError": True}, id="error"),
        pytest.param({"content": [{"type": "text", "text": LARGE}], "_meta": {"anthropic/maxResultSizeChars": 9}}, id="meta"),
        pytest.param({"content": [{"type": "text", "text": LARGE}], "unknown": {"kept": [1, None]}}, id="unknown-field"),
        pytest.param(
            {
                "content": [
                    {"type": "image", "data": "QUJD" * 500_000, "mimeType": "image/png"},
                    {"type": "text", "text": LARGE, "annotations": {"audience": ["user"]}},
                    {"type": "resource_link", "uri": "file:///a", "name": "a"},
                ]
            },
            id="blocks-beside",
        ),
        pytest.param({"content": [{"type": "text", "text": "x"}], "structuredContent": [1, 2, LARGE]}, id="list"),
    ],
)
def test_a_whole_result_is_equal_in_every_field(tmp_path: Path, given: dict[str, Any]) -> None:
    with serving(tmp_path, CODEX) as wire:
        result = wire.call("give", {"result": given}, _meta=FROM_PROGRAM)
        meta = dict(result.pop("_meta"))
        assert HANDLE.fullmatch(meta.pop("overspill/handle"))
        assert {**result, **({"_meta": meta} if meta else {})} == given


def test_a_refusal_reaches_a_program_as_the_server_sent_it(tmp_path: Path) -> None:
    refusal = {"code": -32602, "message": "No such city.", "data": {"cities": ["Rome", "Oslo"]}}
    with serving(tmp_path, CODEX) as wire:
        answer = wire.request("tools/call", {"name": "give", "arguments": {"error": refusal}, "_meta": FROM_PROGRAM})
        assert answer["error"] == refusal


def test_a_small_result_is_neither_stored_nor_changed(tmp_path: Path) -> None:
    with serving(tmp_path, CODEX, list_outputs=True) as wire:
        result = ask_rows(wire, FROM_PROGRAM, count=3)
        assert result == {"content": [{"type": "text", "text": json.dumps(sent_rows(3))}], "structuredContent": sent_rows(3)}
        assert wire.result("resources/list")["resources"] == []


def test_the_same_result_again_is_whole_again(tmp_path: Path) -> None:
    with serving(tmp_path, CODEX, {"repeats": "stub"}) as wire:
        for _ in range(3):
            assert ask_rows(wire, FROM_PROGRAM)["structuredContent"] == sent_rows()


def test_a_slow_call_of_a_program_waits_for_its_result(tmp_path: Path) -> None:
    with serving(tmp_path, CODEX, {"asyncTimeoutSecs": 0.1}) as wire:
        ask_rows(wire, FROM_MODEL)  # from the second call on, slow ones are answered early
        assert ask_rows(wire, FROM_PROGRAM, seconds=1.0)["structuredContent"] == sent_rows()
        assert "keeps running in the background" in str(ask_rows(wire, FROM_MODEL, seconds=1.0)["content"])


@pytest.mark.parametrize("settings", [{"toolOutput": {"enabled": False}}, {"servers": {"rows": {"off": True}}}])
def test_a_program_gets_everything_where_nothing_is_stored(tmp_path: Path, settings: dict[str, Any]) -> None:
    with serving(tmp_path, CODEX, settings) as wire:
        result = ask_rows(wire, FROM_PROGRAM)
        assert result["structuredContent"] == sent_rows()
        assert "_meta" not in result


def test_a_tool_keeps_what_its_server_says_about_the_clients_own_limits(tmp_path: Path) -> None:
    with serving(tmp_path, CODEX) as wire:
        tools = {tool["name"]: tool for tool in wire.result("tools/list")["tools"]}
        assert tools["give"]["_meta"] == {"anthropic/maxResultSizeChars": 500_000}
        meta = {"anthropic/maxResultSizeChars": 400_000}
        card = wire.call("give", {"result": {"content": [{"type": "text", "text": LARGE}], "_meta": meta}}, _meta=FROM_MODEL)
        assert is_card(card)
        assert card["_meta"] == meta
