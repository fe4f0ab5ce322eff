"""A client's model says what it is looking for, in an argument that the proxy adds and the server never sees."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from wire import Served, Wire, config, every

from overspill.gate.intent import LOOKING_FOR

ARGUMENT = {
    "type": "string",
    "description": "What you need from the result, then in parentheses other words for it; used only if the result is too large.",
}
WANTED = "line 777: the quick brown fox"


def serve(folder: Path, *servers: list[str], dry_run: bool = False, **settings: Any) -> Served:
    given = {"intent": "ask", "intentWithinSecs": 30, **settings}
    configs = [config(command, command[4]) for command in servers or (every(),)]
    return Served(configs, folder, settings=given, dry_run=dry_run)


def list_tools(wire: Wire) -> list[dict[str, Any]]:
    tools, page = [], wire.result("tools/list")
    while True:
        tools += page["tools"]
        if "nextCursor" not in page:
            return tools
        page = wire.result("tools/list", {"cursor": page["nextCursor"]})


@pytest.fixture(scope="module")
def wire(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Wire]:
    with serve(tmp_path_factory.mktemp("store")) as wire:
        wire.hello()
        yield wire


@pytest.mark.promise("cache-safe")
def test_the_argument_is_there_from_the_first_list_to_the_last(wire: Wire) -> None:
    first = list_tools(wire)
    theirs = [tool for tool in first if tool["description"].startswith("The tool ")]
    assert len(theirs) > 10
    assert all(tool["inputSchema"]["properties"][LOOKING_FOR] == ARGUMENT for tool in theirs)
    wire.call("lines", {"count": 999, LOOKING_FOR: "line 777"})
    assert json.dumps(list_tools(wire)) == json.dumps(first)


def test_by_default_the_lists_of_servers_stay_as_they_are(tmp_path: Path) -> None:
    with serve(tmp_path, intent="implicit") as wire:
        wire.hello()
        assert LOOKING_FOR not in json.dumps(list_tools(wire))


def test_the_reply_shows_what_the_model_is_looking_for_and_the_server_never_hears_of_it(wire: Wire) -> None:
    """The server refuses a call of `lines` with an argument it does not know."""
    text = wire.text("lines", {"count": 1000, LOOKING_FOR: "line 777"})
    assert 'Passages found for "line 777"' in text
    assert WANTED in text


def test_a_small_result_is_the_servers_own(wire: Wire) -> None:
    result = {"content": [{"type": "text", "text": "short", "x-block": 1}], "x-result": 2}
    assert wire.call("say", {"result": result, LOOKING_FOR: "anything"}) == result


def test_what_is_no_text_is_taken_off_too(wire: Wire) -> None:
    assert wire.text("lines", {"count": 1, LOOKING_FOR: {"a": [1]}}) == "line 1: the quick brown fox\n"


def test_it_is_in_no_file(tmp_path: Path) -> None:
    with serve(tmp_path) as wire:
        wire.hello()
        wire.call("lines", {"count": 1000, LOOKING_FOR: "line 777 xylophone"})
        wire.end()
        files = [file.read_bytes() for file in tmp_path.rglob("*") if file.is_file()]
        assert any(b'"quotes"' in each for each in files)
        assert not any(b"xylophone" in each for each in files)
        assert "xylophone" not in "".join(wire.log)


def test_a_client_that_has_listed_nothing_is_served_too(tmp_path: Path) -> None:
    with serve(tmp_path, every(), every("legacy", "other")) as wire:
        wire.hello()
        assert WANTED in wire.text("other__lines", {"count": 1000, LOOKING_FOR: "line 777"})


@pytest.mark.slow
def test_where_nothing_is_known_of_a_tool_the_call_is_refused_instead_of_leaking(tmp_path: Path) -> None:
    with serve(tmp_path, every("legacy", "stuck")) as wire:
        wire.hello()
        answer = wire.call("lines", {"count": 1, LOOKING_FOR: "line 777"})
        assert answer["isError"]
        assert answer["content"][0]["text"] == (
            "The server stuck has not listed its tools yet, so it is not clear what looking_for means to lines. "
            "Call it again without looking_for."
        )
        assert wire.text("lines", {"count": 1}) == "line 1: the quick brown fox\n"


def test_a_dry_run_does_not_send_it_either(tmp_path: Path) -> None:
    with serve(tmp_path, dry_run=True) as wire:
        wire.hello()
        assert WANTED in wire.text("lines", {"count": 1000, LOOKING_FOR: "line 777"})
        assert "error" in wire.request("tools/call", {"name": "lines", "arguments": {"count": 1, "other": 2}})


def test_one_server_can_be_left_out(tmp_path: Path) -> None:
    with serve(tmp_path, every(), every("legacy", "other"), servers={"other": {"intent": "off"}}) as wire:
        wire.hello()
        tools = {tool["name"]: tool for tool in list_tools(wire)}
        assert LOOKING_FOR in tools["every__lines"]["inputSchema"]["properties"]
        assert LOOKING_FOR not in tools["other__lines"]["inputSchema"]["properties"]
        refused = wire.request("tools/call", {"name": "other__lines", "arguments": {"count": 1, LOOKING_FOR: "theirs"}})
        assert refused["error"]["message"] == "Those are no parameters for that"  # it was not ours, so the server got it
