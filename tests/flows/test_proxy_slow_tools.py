"""A slow tool is answered in time and goes on; what became of it is asked for, or mentioned."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from wire import SOON, Served, Wire, config, every

from overspill.wording import retrieval as wording

ID = re.compile(r"art_\w+")
FORM = {"method": "elicitation/create", "params": {"message": "Name?", "requestedSchema": {"type": "object", "properties": {}}}}


@pytest.fixture(params=[pytest.param("legacy", marks=pytest.mark.slow), "modern"])
def wire(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Wire]:
    with Served([config(every("legacy"))], tmp_path, modern=request.param == "modern", settings=SOON) as wire:
        wire.hello()
        wire.stay()
        yield wire


def in_background(wire: Wire, until: str, **more: object) -> str:
    text = wire.text("wait", {"until": until, "then": f"the output of {until}"}, **more)
    id = ID.findall(text)[0]
    assert text == (
        f"Tool Output ID: {id}\nTool: wait\n\n"
        f'It keeps running in the background. Wait for it with get_tool_output(id="{id}", mode="wait").'
    )
    return id


def test_a_slow_tool_is_answered_in_time_and_read_when_it_has_ended(wire: Wire) -> None:
    id = in_background(wire, "later")
    assert wire.call("get_tool_output", {"id": id, "mode": "raw"})["isError"] is True
    assert wire.text("wait_for_tool_output").startswith("Still running:\n")
    wire.call("release", {"word": "later"})
    assert wire.text("wait_for_tool_output") == f"Completed tools:\n- wait (id: {id}, size: 19B)"
    assert wire.text("get_tool_output", {"id": id, "mode": "raw"}) == "the output of later"


def test_the_resource_of_a_tool_that_is_still_running_is_refused_with_what_to_do(wire: Wire) -> None:
    uri = f"overspill://{in_background(wire, 'later')}"
    error = wire.request("resources/read", {"uri": uri})["error"]
    assert (error["code"], error["message"], error["data"]) == (-32602, wording.not_ready(), {"uri": uri})


def test_waiting_ends_as_soon_as_the_tool_does(tmp_path: Path) -> None:
    with Served([config(every())], tmp_path, settings={"asyncTimeoutSecs": 0.3, "waitMaxSecs": 20}) as wire:
        wire.hello()
        wire.stay()
        id = in_background(wire, "later")
        waiting = wire.begin("tools/call", {"name": "wait_for_tool_output", "arguments": {}})
        wire.call("release", {"word": "later"})
        assert id in wire.answer(waiting)["result"]["content"][0]["text"]


def test_progress_flows_while_the_client_waits_and_then_is_the_jobs_status(wire: Wire) -> None:
    start = wire.mark
    id = in_background(wire, "never", _meta={"progressToken": "p"})
    assert wire.told("notifications/progress", start)["params"] == {
        "progressToken": "p",
        "progress": 1,
        "total": 4,
        "message": "warming up",
    }
    status = wire.text("wait_for_tool_output")
    assert id in status
    assert "1 of 4: warming up" in status


def test_completed_jobs_are_mentioned_once_in_later_retrieval_answers(wire: Wire) -> None:
    first = in_background(wire, "later")
    wire.call("release", {"word": "later"})
    mentions = []
    while not mentions:
        result = wire.call("lines", {"count": 1000})
        mentions = [block["text"] for block in result["content"][1:] if block["type"] == "text"]
    assert mentions[0].startswith("Completed tools:\n- wait (id: " + first)
    again = wire.call("lines", {"count": 1000})
    assert [block["type"] for block in again["content"]] == ["text", "resource_link"]


def test_nothing_is_added_to_a_servers_answer(wire: Wire) -> None:
    in_background(wire, "later")
    wire.call("release", {"word": "later"})
    for _ in range(3):
        assert wire.call("lines", {"count": 1})["content"] == [{"type": "text", "text": "line 1: the quick brown fox\n"}]


def test_the_clock_stops_while_a_person_is_asked(tmp_path: Path) -> None:
    with Served([config(every())], tmp_path, settings=SOON) as wire:
        wire.hello()
        wire.stay()
        asking = wire.begin("tools/call", {"name": "ask", "arguments": {"requests": [FORM]}})
        question = wire.told("elicitation/create")
        in_background(wire, "never")  # the same time has passed for this one, which began later
        wire.send({"id": question["id"], "result": {"action": "decline"}})
        assert json.loads(wire.answer(asking)["result"]["content"][0]["text"]) == [{"action": "decline"}]


def test_the_clock_also_stops_for_a_paused_call(tmp_path: Path) -> None:
    with Served([config(every())], tmp_path, modern=True, settings=SOON) as wire:
        wire.hello()
        wire.stay()
        asked = wire.call("ask", {"requests": [FORM]})
        in_background(wire, "never")
        (key,) = asked["inputRequests"]
        done = wire.call("ask", inputResponses={key: {"action": "decline"}}, requestState=asked["requestState"])
        assert json.loads(done["content"][0]["text"]) == [{"action": "decline"}]


def test_progress_of_a_paused_call_goes_to_the_clients_latest_request(tmp_path: Path) -> None:
    with Served([config(every())], tmp_path, modern=True) as wire:
        wire.hello()
        start = wire.mark
        requests = [FORM, {"method": "elicitation/create", "params": {**FORM["params"], "message": "Sure?"}}]
        asked = wire.call("ask", {"requests": requests}, _meta={"progressToken": "one"})
        for token in ("two", "three"):
            (key,) = asked["inputRequests"]
            again = {"inputResponses": {key: {"action": "accept"}}, "requestState": asked["requestState"]}
            asked = wire.call("ask", **again, _meta={"progressToken": token})
        assert [each["params"]["progressToken"] for each in wire.received[start:] if "method" in each] == ["one", "two", "three"]


def test_a_background_job_that_asks_gets_an_error(tmp_path: Path) -> None:
    with Served([config(every())], tmp_path, modern=True, settings=SOON) as wire:
        wire.hello()
        wire.stay()
        text = wire.text("ask", {"requests": [FORM], "after": "later"})
        wire.call("release", {"word": "later"})
        told = [wire.text("wait_for_tool_output")]
        while "Completed" not in told[-1] and len(told) < 20:  # a wait is shorter than what a busy machine may take
            told.append(wire.text("wait_for_tool_output"))
        (error,) = json.loads(wire.text("get_tool_output", {"id": ID.findall(text)[0], "mode": "raw"}))
        assert error["message"] == "The client can be asked only while it waits for an answer."


@pytest.mark.parametrize("era", [pytest.param("legacy", marks=pytest.mark.slow), "modern"])
def test_a_tool_that_asks_for_input_in_the_background_fails_with_the_reason(tmp_path: Path, era: str) -> None:
    with Served([config(every("modern"))], tmp_path, modern=era == "modern", settings=SOON) as wire:
        wire.hello()
        wire.stay()
        text = wire.text("ask", {"requests": [FORM], "after": "later"})
        assert text.startswith("Tool Output ID: art_")
        wire.call("release", {"word": "later"})
        assert ID.findall(text)[0] in wire.text("wait_for_tool_output")


def test_a_tool_can_be_barred_from_the_background(tmp_path: Path) -> None:
    settings = {**SOON, "truncation": {"overrides": {"wait": {"async": False}}}}
    with Served([config(every())], tmp_path, settings=settings) as wire:
        wire.hello()
        waiting = wire.begin("tools/call", {"name": "wait", "arguments": {"until": "later"}})
        in_time = wire.begin("tools/call", {"name": "ask", "arguments": {"requests": [], "after": "never"}})
        assert "Tool Output ID" in wire.answer(in_time)["result"]["content"][0]["text"]
        wire.call("release", {"word": "later"})
        assert wire.answer(waiting)["result"]["content"][0]["text"] == "released"


def test_a_client_that_leaves_during_a_call_leaves_nothing_running(tmp_path: Path) -> None:
    with Served([config(every())], tmp_path, settings=SOON) as wire:
        wire.hello()
        pid = int(wire.text("pid"))
        in_background(wire, "never")
        wire.begin("tools/call", {"name": "wait", "arguments": {"until": "never"}})
        wire.end()
        assert not Path(f"/proc/{pid}").exists()
