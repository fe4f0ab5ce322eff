"""What is too large is kept whole, answered with a handle, and read again through the same connection."""

from __future__ import annotations

import base64
import json
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from extras import OFFERED
from frames import TOO_LARGE
from upstream import script
from wire import Served, Wire, config, every

from overspill.mcp.proxy.options import PROXY_DEFAULTS
from overspill.retrieval.definitions import TOOLS
from overspill.settings import load
from overspill.text import tokens

HANDLE = re.compile(r"session-[0-9a-f-]{36}/[0-9a-f-]{36}")
LINES = 1000
OUTPUT = "".join(f"line {number}: the quick brown fox\n" for number in range(1, LINES + 1))


@pytest.fixture(scope="module")
def wire(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Wire]:
    with Served([config(every())], tmp_path_factory.mktemp("store"), list_outputs=True) as wire:
        wire.hello()
        yield wire


def handle_in(result: dict[str, Any]) -> str:
    found = HANDLE.search(json.dumps(result))  # in the link to it
    assert found, result
    return found.group()


def kept_lines(wire: Wire) -> str:
    return handle_in(wire.call("lines", {"count": LINES}))


def test_a_large_text_is_answered_with_a_handle_a_preview_and_a_link(wire: Wire) -> None:
    result = wire.call("lines", {"count": LINES})
    text, link = result["content"]
    first, _, preview = text["text"].partition("\n\n")
    handle = handle_in(result)
    assert first.startswith(f"{TOO_LARGE} (")
    assert "line 1: the quick brown fox" in preview
    assert len(text["text"]) < 4000
    artifact = re.search(r"art_\w+", link["name"])
    assert artifact
    assert link == {
        "type": "resource_link",
        "uri": f"overspill://{handle}",
        "name": artifact.group(),
        "title": link["title"],
        "mimeType": "text/plain",
        "size": len(OUTPUT),
    }
    assert set(result) == {"content"}


def test_retrieval_tools_can_appear_when_needed_with_one_notification(tmp_path: Path) -> None:
    with Served([config(every())], tmp_path, tools_always=False) as wire:
        wire.hello()
        assert not set(wire.names()) & set(TOOLS)
        for _ in range(2):
            kept_lines(wire)
        changes = [
            number for number, each in enumerate(wire.received) if each.get("method") == "notifications/tools/list_changed"
        ]
        answer = next(number for number, each in enumerate(wire.received) if "resource_link" in json.dumps(each))
        assert changes == [answer - 1]
        assert wire.names()[-len(OFFERED) :] == OFFERED


@pytest.mark.promise("cache-safe")
def test_retrieval_tools_are_listed_from_the_beginning(tmp_path: Path) -> None:
    with Served([config(every())], tmp_path) as wire:
        wire.hello()
        before = wire.names()
        assert before[-len(OFFERED) :] == OFFERED
        kept_lines(wire)
        assert wire.names() == before
        assert [each for each in wire.received if each.get("method") == "notifications/tools/list_changed"] == []


@pytest.mark.parametrize(
    ("name", "arguments", "expected"),
    [
        ("get_tool_output", {"mode": "slice", "slice": {"lines": "500-501"}}, "line 500: the quick brown fox\nline 501: the"),
        ("get_tool_output", {"mode": "grep", "pattern": "^line 77:", "context": 0}, "line 77: the quick brown fox"),
        ("get_tool_output", {"mode": "raw"}, f"Response too large ({len(OUTPUT)} bytes). Use ask or slice mode."),
        ("get_tool_output", {"mode": "extract", "query": "line 321"}, "line 321: the quick brown fox"),
        ("get_artifact", {"start_line": 3, "end_line": 3}, "line 3: the quick brown fox"),
        ("tool_output", {"extract": "what does line 654 say?"}, "line 654: the quick brown fox"),
        ("wait_for_tool_output", {}, "No async tools running."),
    ],
)
def test_every_retrieval_tool_answers(wire: Wire, name: str, arguments: dict[str, Any], expected: str) -> None:
    handle = kept_lines(wire)
    key = {"tool_output": "handle", "get_artifact": "artifact_id", "wait_for_tool_output": ""}.get(name, "id")
    assert expected in wire.text(name, {**arguments, **({key: handle} if key else {})})


def test_a_models_mistake_is_answered_with_an_explanation(wire: Wire) -> None:
    result = wire.call("get_tool_output", {"mode": "raw"})
    assert result["isError"] is True
    assert "id" in result["content"][0]["text"]


def test_an_empty_output_schema_and_odd_capabilities_are_accepted(tmp_path: Path) -> None:
    with Served([script("raw", "promises")], tmp_path) as wire:
        assert wire.hello()["capabilities"] == {"tools": {"listChanged": True}, "resources": {}}
        tool, *_ = wire.result("tools/list")["tools"]
        assert "anyOf" in tool["outputSchema"]
        result = wire.call("huge", {"size": 20_000})
        assert result["structuredContent"]["overspill"]["handle"] == handle_in(result)


def test_a_structured_result_is_kept_once_and_still_fits_its_schema(wire: Wire) -> None:
    tools = {tool["name"]: tool for tool in wire.result("tools/list")["tools"]}
    assert tools["forecast"]["outputSchema"]["anyOf"][1] == {
        "type": "object",
        "required": ["overspill"],
        "properties": {"overspill": {"type": "object"}},
    }
    result = wire.call("forecast", {"days": 1000})
    handle = handle_in(result)
    facts = result["structuredContent"]["overspill"]
    assert facts["handle"] == handle
    assert facts["message"] == result["content"][0]["text"]
    assert "day 0 is dry" in facts["message"]  # the preview, too
    whole = json.dumps({"days": [{"note": f"day {day} is dry"} for day in range(1000)]})
    assert result["content"][1]["size"] == len(whole)
    assert "day 999 is dry" in wire.text("get_tool_output", {"id": handle, "mode": "query", "query": "/days/999/note"})


@pytest.mark.parametrize("key", ["result", "content"])
def test_text_repeated_as_structured_content_is_stored_once_under_any_key(wire: Wire, key: str) -> None:
    said = {"content": [{"type": "text", "text": OUTPUT}], "structuredContent": {key: OUTPUT}}
    assert wire.call("say", {"result": said})["content"][1]["size"] == len(OUTPUT)


def test_structured_content_beside_a_short_text_counts_too(wire: Wire) -> None:
    value = {"rows": [{"n": number, "name": f"row {number}"} for number in range(1000)]}
    result = wire.call("say", {"result": {"content": [{"type": "text", "text": "1000 rows"}], "structuredContent": value}})
    assert "structuredContent" not in result
    handle = handle_in(result)
    assert "row 998" in wire.text("get_tool_output", {"id": handle, "mode": "grep", "pattern": "row 998"})


def test_images_stay_in_their_place_beside_a_handle(wire: Wire) -> None:
    image = {"type": "image", "data": base64.b64encode(b"p" * 300).decode(), "mimeType": "image/png", "x-image": 1}
    blocks = [{"type": "text", "text": OUTPUT}, image, {"type": "text", "text": OUTPUT}]
    result = wire.call("say", {"result": {"content": blocks, "_meta": {"x": 1}, "x-result": 2}})
    assert [block["type"] for block in result["content"]] == ["text", "image", "resource_link"]
    assert result["content"][1] == image
    assert (result["_meta"], result["x-result"]) == ({"x": 1}, 2)
    assert result["content"][2]["size"] >= 2 * len(OUTPUT)


def test_a_large_error_is_kept_and_stays_an_error(wire: Wire) -> None:
    result = wire.call("say", {"result": {"content": [{"type": "text", "text": OUTPUT}], "isError": True}})
    assert result["isError"] is True
    assert "line 900" in wire.text("get_tool_output", {"id": handle_in(result), "mode": "grep", "pattern": "line 900"})


def test_a_large_refusal_is_kept_with_its_data_and_stays_an_error(wire: Wire) -> None:
    result = wire.call("fail", {"code": -32000, "message": OUTPUT, "data": {"cause": "flood"}})
    assert result["isError"] is True
    assert '{"cause":"flood"}' in wire.text("get_tool_output", {"id": handle_in(result), "mode": "grep", "pattern": "cause"})


def test_a_small_error_passes_unchanged(wire: Wire) -> None:
    assert wire.request("tools/call", {"name": "fail", "arguments": {"code": 1, "message": "no"}})["error"]["code"] == 1


def test_a_kept_output_is_read_as_a_resource_part_by_part(wire: Wire) -> None:
    handle = kept_lines(wire)
    uri, parts = f"overspill://{handle}", []
    while uri:
        part, *more = wire.result("resources/read", {"uri": uri})["contents"]
        assert part["uri"] == uri
        assert part["mimeType"] == "text/plain"
        parts.append(part["text"])
        uri = more[0]["uri"] if more else ""
    assert len(parts) == 3
    assert "".join(parts) == OUTPUT


def test_a_part_ends_between_characters(wire: Wire) -> None:
    text = "x" + "ü🦊" * 5000
    handle = handle_in(wire.call("say", {"result": {"content": [{"type": "text", "text": text}]}}))
    uri, parts = f"overspill://{handle}", []
    while uri:
        part, *more = wire.result("resources/read", {"uri": uri})["contents"]
        parts.append(part["text"])
        uri = more[0]["uri"] if more else ""
    assert "".join(parts) == text


def test_a_binary_output_is_read_as_a_resource_in_parts(wire: Wire) -> None:
    data = bytes(range(256)) * 5000
    block = {"type": "image", "data": base64.b64encode(data).decode(), "mimeType": "image/png"}
    result = wire.call("say", {"result": {"content": [block]}})
    uris = re.findall(r"session-[0-9a-f-]+/[0-9a-f-]+|art_\w+", json.dumps(result))
    uri, parts = f"overspill://{uris[0]}", []
    while uri:
        part, *more = wire.result("resources/read", {"uri": uri})["contents"]
        assert part["mimeType"] == "application/octet-stream"
        parts.append(base64.b64decode(part["blob"]))
        uri = more[0]["uri"] if more else ""
    assert b"".join(parts) == data


@pytest.mark.parametrize(
    "uri",
    [
        "overspill://",
        "overspill://x",
        "overspill://session-x/y",
        "overspill://../../etc/passwd",
        "overspill://%00/%00",
        "overspill://[x",
    ],
)
def test_an_unknown_resource_is_an_error(wire: Wire, uri: str) -> None:
    error = wire.request("resources/read", {"uri": uri})["error"]
    assert error["code"] == -32602
    assert error["data"] == {"uri": uri}


@pytest.mark.parametrize("start", ["x", "-1", "1.5", "９" * 30 + "x"])
def test_a_resource_can_be_read_only_from_a_byte_offset(wire: Wire, start: str) -> None:
    answer = wire.request("resources/read", {"uri": f"overspill://{kept_lines(wire)}?from={start}"})
    assert answer["error"]["code"] == -32602


def test_a_part_past_the_end_is_empty(wire: Wire) -> None:
    (part,) = wire.result("resources/read", {"uri": f"overspill://{kept_lines(wire)}?from=99999999999999999999"})["contents"]
    assert part["text"] == ""


def test_stored_outputs_are_listed_on_request(wire: Wire, tmp_path: Path) -> None:
    handle = kept_lines(wire)
    assert [each["uri"] for each in wire.result("resources/list")["resources"]][:2] == ["file:///notes.txt", "file:///pixel.png"]
    assert f"overspill://{handle}" in [each["uri"] for each in wire.result("resources/list")["resources"]][2:]
    with Served([config(every())], tmp_path) as quiet:
        quiet.hello()
        kept_lines(quiet)
        assert len(quiet.result("resources/list")["resources"]) == 2


def test_a_servers_tool_keeps_its_name_and_the_retrieval_tool_is_renamed(tmp_path: Path) -> None:
    server = config(every("legacy", "clash", "get_tool_output", "overspill_get_tool_output", "overspill_get_artifact"))
    with Served([server], tmp_path) as wire:
        wire.hello()
        assert wire.text("get_tool_output") == "theirs"
        result = wire.call("lines", {"count": LINES})
        note = "Some tools of Overspill have other names here: get_tool_output is overspill_overspill_get_tool_output."
        assert result["content"][-2]["text"] == note or result["content"][-1]["text"] == note
        assert wire.names()[-3 - len(OFFERED) :] == [
            *("get_tool_output", "overspill_get_tool_output", "overspill_get_artifact"),
            "overspill_overspill_get_tool_output",
        ]
        ask = {"id": handle_in(result), "mode": "ask", "query": "line 654"}
        assert wire.text("get_tool_output", ask) == wire.text("overspill_get_tool_output", ask) == "theirs"
        assert "line 654" in wire.text("overspill_overspill_get_tool_output", ask)
        assert "line 3" in wire.text("get_artifact", {"id": ask["id"], "lines": "3-3"})


@pytest.mark.slow
def test_several_servers_work_side_by_side(tmp_path: Path) -> None:
    servers = [config(every("legacy", "one"), "one"), config(every("modern", "two"), "two"), config(["/nonexistent"], "three")]
    settings = {"servers": {"two": {"off": True}}, "refs": {"allow": []}}
    with Served(servers, tmp_path, settings=settings) as wire:
        greeting = wire.hello()
        assert greeting["serverInfo"]["name"] == "overspill"
        said = re.sub(r" \d{6}\]", "]", greeting["instructions"])
        assert said == (
            "[instructions of the server one]\nBe brief.\n[end of instructions of the server one]\n\n"
            "[instructions of the server two]\nBe brief.\n[end of instructions of the server two]\n\n"
            "The server three is not available yet: "
            "The server three cannot be started: no such command '/nonexistent'. Check its command and its folder. "
            "Overspill keeps trying to start it; try again in a moment."
        )
        names = wire.names()
        assert ("one__say" in names, "two__say" in names) == (True, True)
        assert [each["name"] for each in wire.result("prompts/list")["prompts"]] == [
            "one__greet",
            "one__plain",
            "two__greet",
            "two__plain",
        ]
        assert (
            wire.result("prompts/get", {"name": "two__greet", "arguments": {"who": "Bo"}})["messages"][0]["content"]["text"]
            == "Greet Bo."
        )
        complete = {"ref": {"type": "ref/prompt", "name": "two__greet"}, "argument": {"name": "who", "value": "hel"}}
        assert wire.result("completion/complete", complete)["completion"]["values"] == ["hello"]
        assert len(wire.result("resources/list")["resources"]) == 4
        assert wire.result("resources/read", {"uri": "file:///notes.txt"})["contents"][0]["text"] == "notes"
        assert wire.request("resources/read", {"uri": "note:///5"})["error"]["message"] == "Resource not found"
        assert wire.request("tools/call", {"name": "say", "arguments": {}})["error"]["message"] == "Unknown tool: say"
        assert wire.request("x/unknown")["error"]["code"] == -32601
        assert wire.result("logging/setLevel", {"level": "error"}) == {}
        assert wire.text("two__lines", {"count": LINES}) == OUTPUT
        handle = handle_in(wire.call("one__lines", {"count": LINES}))
        reference = {"result": {"content": [{"type": "text", "text": f"{{{{output:{handle}#L7-7}}}}"}]}}
        assert wire.text("one__say", reference) == "line 7: the quick brown fox\n"
        refused = wire.call("two__say", reference)
        assert refused["isError"] is True
        assert refused["content"][0]["text"] == (
            "The argument /result/content/0/text cannot be filled in: outputs of one/lines may not be given to two/say; "
            "the setting refs.allow can permit it. The tool say was not called."
        )
        assert wire.call("three__say")["isError"] is True


def test_outputs_go_from_server_to_server_where_the_user_allows_it(tmp_path: Path) -> None:
    servers = [config(every("legacy", "one"), "one"), config(every("legacy", "two"), "two")]
    with Served(servers, tmp_path, settings={"refs": {"allow": [{"from": "one", "to": "two"}]}}) as wire:
        wire.hello()
        handle = handle_in(wire.call("one__lines", {"count": LINES}))
        reference = {"result": {"content": [{"type": "text", "text": f"{{{{output:{handle}#L7-7}}}}"}]}}
        assert wire.text("two__say", reference) == "line 7: the quick brown fox\n"


def test_a_whole_output_is_handed_to_a_tool_of_the_same_server(wire: Wire) -> None:
    handle = kept_lines(wire)
    reference = {"result": {"content": [], "structuredContent": {"length": f"{{{{output:{handle}}}}}"}}}
    result = wire.call("say", reference)
    assert result["content"][1]["size"] == len(json.dumps({"length": OUTPUT}, separators=(",", ":")))


def test_filled_in_arguments_must_match_the_tools_schema(wire: Wire) -> None:
    wire.result("tools/list")
    handle = kept_lines(wire)
    refused = wire.call("lines", {"count": f"{{{{output:{handle}#L7-7}}}}"})
    assert (refused["isError"], refused["content"][0]["text"]) == (
        True,
        "With the references filled in, the arguments do not suit the tool lines: "
        '$.count breaks the rule {"type":"integer"}. It was not called.',
    )


@pytest.mark.parametrize(
    ("settings", "kept"),
    [
        ({}, True),
        ({"truncation": {"overrides": {"lines": {"off": True}}}}, False),
        ({"servers": {"every": {"off": True}}}, False),
        ({"servers": {"other": {"off": True}}}, True),
        ({"toolResponseMaxBytes": 100_000}, False),
        ({"servers": {"every": {"toolResponseMaxBytes": 100_000}}}, False),
        ({"toolResponseMaxBytes": 100_000, "truncation": {"overrides": {"lines": {"toolResponseMaxBytes": 100}}}}, True),
    ],
)
def test_each_server_and_each_tool_has_its_own_settings(tmp_path: Path, settings: dict[str, Any], kept: bool) -> None:
    with Served([config(every())], tmp_path, settings={"asyncTokenThreshold": None, **settings}) as wire:
        wire.hello()
        assert (wire.text("lines", {"count": LINES}) != OUTPUT) is kept


def test_the_preview_follows_the_tools_strategy(tmp_path: Path) -> None:
    settings = {"truncation": {"overrides": {"lines": {"strategy": "tail"}}}}
    with Served([config(every())], tmp_path, settings=settings) as wire:
        wire.hello()
        text = wire.text("lines", {"count": LINES})
        assert "line 1000:" in text
        assert "line 1:" not in text


def test_a_dry_run_passes_everything_and_reports_what_it_would_keep(tmp_path: Path) -> None:
    with Served([config(every())], tmp_path, dry_run=True) as wire:
        wire.hello()
        assert wire.text("lines", {"count": LINES}) == OUTPUT
        assert wire.text("lines", {"count": 2}) == "line 1: the quick brown fox\nline 2: the quick brown fox\n"
        assert not set(wire.names()) & set(TOOLS)
    count = tokens.count(OUTPUT, None).tokens
    assert wire.log == [f"dry run: lines of every would be stored: {len(OUTPUT)} bytes, {LINES} lines, {count} tokens"]


def test_an_old_handle_works_after_a_restart_for_its_owner_only(tmp_path: Path) -> None:
    with Served([config(every())], tmp_path) as wire:
        wire.hello()
        handle = kept_lines(wire)
    with Served([config(every())], tmp_path) as again:
        again.hello()
        ask = {"id": handle, "mode": "slice", "slice": {"lines": "7-7"}}
        assert "line 7: the quick brown fox" in again.text("get_tool_output", ask)
        assert "line 654" in again.text("tool_output", {"handle": handle, "extract": "line 654"})
        assert again.result("resources/read", {"uri": f"overspill://{handle}"})["contents"][0]["text"] == OUTPUT[:12288]
    with Served([config(every("legacy", "stranger"))], tmp_path) as stranger:
        stranger.hello()
        assert stranger.call("get_tool_output", ask)["isError"] is True
        assert "line 7" not in stranger.text("get_tool_output", ask)
        assert stranger.request("resources/read", {"uri": f"overspill://{handle}"})["error"]["code"] == -32602


def test_a_live_proxy_of_the_same_user_does_not_share_its_outputs(tmp_path: Path) -> None:
    with Served([config(every())], tmp_path) as one, Served([config(every())], tmp_path) as two:
        one.hello()
        two.hello()
        handle = kept_lines(one)
        assert two.call("get_tool_output", {"id": handle, "mode": "raw"})["isError"] is True


def test_only_tools_that_the_configuration_allows_are_available(tmp_path: Path) -> None:
    with Served([config(every(), tools=("say", "lines"))], tmp_path) as wire:
        wire.hello()
        assert wire.names() == ["say", "lines", *OFFERED]
        assert wire.request("tools/call", {"name": "seen", "arguments": {}})["error"]["message"] == "Unknown tool: seen"


def test_stored_files_are_readable_by_their_owner_only(tmp_path: Path) -> None:
    with Served([config(every())], tmp_path / "store") as wire:
        wire.hello()
        kept_lines(wire)
        for folder, _, files in os.walk(tmp_path / "store"):
            assert Path(folder).stat().st_mode & 0o077 == 0
            assert [name for name in files if (Path(folder) / name).stat().st_mode & 0o077] == []


def test_no_wait_of_the_proxy_outlasts_a_clients_timeout() -> None:
    settings = load(usual=[PROXY_DEFAULTS]).settings
    assert settings.wait_max_secs == 45
    assert settings.tool_output.answer_within_secs == 45
    assert settings.async_timeout_secs == 5
    assert settings.tool_timeout is None  # a call that the client still wants may take any time
    assert load(cli={"toolTimeout": 60}, usual=[PROXY_DEFAULTS]).settings.tool_timeout == 60
    assert (settings.retention, settings.keep_days, settings.keep_bytes) == ("keep", 7, 2 * 1024**3)


def test_an_image_inside_a_text_is_listed_and_delivered_as_an_image(wire: Wire) -> None:
    data = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + (1280).to_bytes(4, "big") + (720).to_bytes(4, "big") + bytes(20_000)
    text = json.dumps({"screenshot": base64.b64encode(data).decode()})
    told = wire.call("say", {"result": {"content": [{"type": "text", "text": text}]}})["content"][0]["text"]
    found = re.search(r"\[image/png 1280×720, 20 KB: (out_\w+#/screenshot)\]", told)
    assert found, told
    line, image = wire.call("get_tool_output", {"id": found[1], "mode": "raw"})["content"]
    assert line["text"] == found[0]
    assert image == {"type": "image", "data": base64.b64encode(data).decode(), "mimeType": "image/png"}


def test_an_output_that_comes_again_is_named_unless_conversations_share_the_process(tmp_path: Path) -> None:
    shown: dict[str, list[bool]] = {}
    for repeats in ("stub", "full"):
        settings = {} if repeats == "stub" else {"repeats": repeats}
        with Served([config(every())], tmp_path / repeats, settings=settings) as wire:
            wire.hello()
            texts = [wire.text("lines", {"count": LINES}) for _ in range(2)]
        shown[repeats] = ["line 1: the quick brown fox" in text for text in texts]
    assert shown == {"stub": [True, False], "full": [True, True]}


LONG = "x y z, " * 40_000
LINKS = [{"type": "resource_link", "uri": f"file:///folder/{number}", "name": str(number)} for number in range(2000)]


@pytest.mark.promise("no-answer-over-budget")
@pytest.mark.parametrize("era", ["legacy", "modern"])
def test_nothing_large_comes_with_a_result_but_what_is_for_the_client_alone(tmp_path: Path, era: str) -> None:
    with Served([config(every(era))], tmp_path / "store", modern=era == "modern") as wire:
        wire.hello()
        for result in ({"content": LINKS}, {"content": [], "data": LONG}, {"content": [], "resultType": LONG}):
            answer = wire.call("say", {"result": result})
            assert len(json.dumps(answer)) < 5_000
            handle_in(answer)
        found = wire.call("say", {"result": {"content": LINKS, "_meta": {"widget": LONG}}})
        assert found["_meta"]["widget"] == LONG
        few = wire.call("say", {"result": {"content": LINKS[:3], "x": 1}})
        assert (few["content"], few["x"]) == (LINKS[:3], 1)


def test_a_question_of_a_newer_server_passes_alone_and_only_if_it_is_known(tmp_path: Path) -> None:
    form = {"method": "elicitation/create", "params": {"message": LONG, "requestedSchema": {"type": "object"}}}
    with Served([config(every("modern"))], tmp_path / "store", modern=True) as wire:
        wire.hello()
        asked = {"resultType": "input_required", "inputRequests": {"a": form}, "requestState": "s"}
        found = wire.call("say", {"result": {**asked, "content": [{"type": "text", "text": LONG}], "x": LONG}})
        assert {key: value for key, value in found.items() if key != "_meta"} == asked
        unknown = {"resultType": "input_required", "inputRequests": {"a": {**form, "method": "x/y"}}}
        refused = wire.request("tools/call", {"name": "say", "arguments": {"result": unknown}})
    assert refused["error"]["message"] == "Overspill does not know x/y, and the request is over its limits."
