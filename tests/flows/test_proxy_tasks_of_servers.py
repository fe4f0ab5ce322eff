"""A server makes tasks of calls, and its clients know none: Overspill follows each task, and the call is any slow call."""

from __future__ import annotations

import itertools
import json
import os
import signal
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from task_server import LARGE, TaskFolder, text
from waiting import wait_until
from wire import Served, Wire

FAST = {"pollIntervalMs": 100}
AT_ONCE = {"asyncTimeoutSecs": 0.05}


def start(wire: Wire, name: str, tool: str = "work", **task: Any) -> dict[str, Any]:
    return wire.call(tool, {"name": name, "task": {**FAST, **task}})


def find_id(said: Mapping[str, Any]) -> str:
    return said["content"][0]["text"].split("Tool Output ID: ")[1].split()[0]


def begin(wire: Wire, tasks: TaskFolder) -> tuple[int, str]:
    """Start a task that is followed. Returns the process of its server, and its id."""
    wire.hello()
    pid, id = int(wire.text("pid")), find_id(start(wire, "a"))
    wait_until(lambda: tasks.count("tasks/get", "a"))
    return pid, id


@pytest.fixture
def tasks(tmp_path: Path) -> TaskFolder:
    return TaskFolder(tmp_path / "s")


@pytest.fixture(params=["legacy", "modern"])
def modern(request: pytest.FixtureRequest) -> bool:
    return request.param == "modern"


@pytest.mark.promise("small-things-untouched")
def test_a_small_result_of_a_task_is_the_result_of_the_call(tasks: TaskFolder, tmp_path: Path, modern: bool) -> None:
    result = {**text("done"), "structuredContent": {"rows": [1]}, "_meta": {"x": 1}}
    tasks.set("a", status="completed", result=result)
    with Served([tasks.server()], tmp_path / "store", modern=modern) as wire:
        wire.hello()
        found = start(wire, "a")
    assert {key: found[key] for key in result} == result


@pytest.mark.promise("nothing-lost")
@pytest.mark.parametrize("count", [1, 2])
def test_a_large_result_is_stored_and_answered_small(tmp_path: Path, modern: bool, count: int) -> None:
    folders = [TaskFolder(tmp_path / f"s{number}") for number in range(count)]
    for number, tasks in enumerate(folders):
        tasks.set("same", status="completed", result=text(f"server {number}\n{LARGE}"))
    with Served([tasks.server() for tasks in folders], tmp_path / "store", modern=modern) as wire:
        wire.hello()
        for number in range(count):
            found = start(wire, "same", "work" if count == 1 else f"s{number}__work")
            assert len(json.dumps(found)) < 20_000
            link = next(block for block in found["content"] if block["type"] == "resource_link")
            part = wire.result("resources/read", {"uri": link["uri"]})["contents"][0]["text"]
            assert part.startswith(f"server {number}\n")


@pytest.mark.promise("no-turn-blocked")
def test_a_slow_task_runs_in_the_background_and_its_output_is_read_later(tasks: TaskFolder, tmp_path: Path, modern: bool) -> None:
    with Served([tasks.server()], tmp_path / "store", modern=modern, settings=AT_ONCE) as wire:
        wire.hello()
        wire.stay()
        id = find_id(start(wire, "a", statusMessage="3 of 10 parts"))
        wait_until(lambda: "3 of 10 parts" in wire.text("get_tool_output", {"id": id, "mode": "raw"}))
        tasks.set("a", status="completed", result=text(LARGE))
        assert id in wire.text("wait_for_tool_output")
        assert LARGE[:50] in wire.text("get_tool_output", {"id": id, "mode": "slice", "slice": {"start": 0, "length": 50}})


def test_a_failed_task_is_a_failure_that_says_why(tasks: TaskFolder, tmp_path: Path) -> None:
    tasks.set("a", status="failed", error={"code": -32050, "message": "no more coal", "data": {"left": 0}})
    with Served([tasks.server()], tmp_path / "store", modern=True) as wire:
        wire.hello()
        answer = wire.request("tools/call", {"name": "work", "arguments": {"name": "a"}})
    assert answer["error"] == {"code": -32050, "message": "no more coal", "data": {"left": 0}}


ENDS: list[tuple[dict[str, Any], str]] = [
    ({"status": "cancelled", "statusMessage": "maintenance"}, "cancelled the task: maintenance"),
    ({"status": "completed"}, "without a result"),
    ({"status": "completed", "result": 5}, "without a result"),
    ({"status": "completed", "result": {"resultType": "task", "taskId": "b"}}, "without a result"),
    ({"status": "exploded"}, "the status exploded"),
    ({"status": 7}, "the status 7"),
    ({"status": "failed"}, "The task failed"),
    ({"status": "failed", "error": "why", "statusMessage": "out of paper"}, "out of paper"),
]


@pytest.mark.promise("failures-are-answers")
def test_a_task_that_ends_without_a_result_says_so(tasks: TaskFolder, tmp_path: Path) -> None:
    with Served([tasks.server()], tmp_path / "store") as wire:
        wire.hello()
        for number, (state, said) in enumerate(ENDS):
            tasks.set(f"a{number}", **state)
            answer = wire.request("tools/call", {"name": "work", "arguments": {"name": f"a{number}", "task": FAST}})
            assert said in json.dumps(answer), state


ODD: list[dict[str, Any]] = [
    *({"ttlMs": each} for each in (0, 10**12, -5, None, "soon")),
    *({"pollIntervalMs": each} for each in (0, -1, "often", None, True, [])),
]


def test_an_odd_time_to_live_or_interval_harms_nothing(tasks: TaskFolder, tmp_path: Path) -> None:
    with Served([tasks.server()], tmp_path / "store") as wire:
        wire.hello()
        for number, odd in enumerate(ODD):
            tasks.set(f"a{number}", status="completed", result=text("done"))
            assert wire.text("work", {"name": f"a{number}", "task": odd}) == "done", odd


@pytest.mark.parametrize(("wanted", "at_least"), [(0, 0.1), (31_536_000_000, 0.25), (300, 0.3)])
def test_a_task_is_polled_once_in_an_interval_or_less_often(
    tasks: TaskFolder, tmp_path: Path, wanted: int, at_least: float
) -> None:
    with Served([tasks.server()], tmp_path / "store", settings=AT_ONCE) as wire:
        wire.hello()
        wire.stay()
        start(wire, "a", pollIntervalMs=wanted)
        wait_until(lambda: tasks.count("tasks/get", "a") >= (1 if wanted > 60_000 else 5))
        times = tasks.times("tasks/get", "a")
    assert all(later - earlier >= at_least for earlier, later in itertools.pairwise(times))
    assert len(times) < 50


def test_what_a_server_says_of_a_task_that_has_ended_is_not_asked_again(tasks: TaskFolder, tmp_path: Path) -> None:
    tasks.set("a", status="completed", result=text(LARGE))
    with Served([tasks.server()], tmp_path / "store", settings=AT_ONCE) as wire:
        wire.hello()
        wire.stay()
        id = find_id(start(wire, "a"))
        assert id in wire.text("wait_for_tool_output")
        asked = tasks.count("tasks/get", "a")
        tasks.set("a", status="working")
        tasks.set("a", status="completed", result=text("something else"))
        assert LARGE[:20] in wire.text("get_tool_output", {"id": id, "mode": "slice", "slice": {"start": 0, "length": 20}})
        assert tasks.count("tasks/get", "a") == asked


def test_a_client_that_cancels_its_call_cancels_the_task(tasks: TaskFolder, tmp_path: Path) -> None:
    with Served([tasks.server()], tmp_path / "store", settings={"asyncTimeoutSecs": 60}) as wire:
        wire.hello()
        call = wire.begin("tools/call", {"name": "work", "arguments": {"name": "a", "task": FAST}})
        wait_until(lambda: tasks.count("tasks/get", "a"))
        wire.notify("notifications/cancelled", {"requestId": call})
        wait_until(lambda: tasks.count("tasks/cancel", "a"))


def test_a_time_limit_cancels_the_task(tasks: TaskFolder, tmp_path: Path) -> None:
    with Served([tasks.server()], tmp_path / "store", settings={**AT_ONCE, "toolTimeout": 1}) as wire:
        wire.hello()
        wire.stay()
        id = find_id(start(wire, "a"))
        assert f"{id}, failed: TimeoutError: not finished after 1 s" in wire.text("wait_for_tool_output")
        wait_until(lambda: tasks.count("tasks/cancel", "a"))


ASKED = {"q1": {"method": "elicitation/create", "params": {"message": "Which?", "requestedSchema": {"type": "object"}}}}
SAID = {"action": "accept", "content": {"which": "this"}}


def test_a_task_that_asks_gets_the_answer_of_an_older_client(tasks: TaskFolder, tmp_path: Path) -> None:
    tasks.set("a", status="input_required", inputRequests=ASKED, after={"status": "completed", "result": text("thanks")})
    with Served([tasks.server()], tmp_path / "store") as wire:
        wire.hello()
        wire.asked["elicitation/create"] = {"result": SAID}
        assert start(wire, "a")["content"] == text("thanks")["content"]
    assert tasks.said("tasks/update", "a") == [[{"q1": SAID}]]


def test_a_task_that_asks_gets_the_answer_of_a_newer_client_with_its_next_call(tasks: TaskFolder, tmp_path: Path) -> None:
    tasks.set("a", status="input_required", inputRequests=ASKED, after={"status": "completed", "result": text("thanks")})
    with Served([tasks.server()], tmp_path / "store", modern=True) as wire:
        wire.hello()
        asked = start(wire, "a")
        assert [each["method"] for each in asked["inputRequests"].values()] == ["elicitation/create"]
        given = dict.fromkeys(asked["inputRequests"], SAID)
        again = {"name": "work", "arguments": {"name": "a", "task": FAST}, "requestState": asked["requestState"]}
        done = wire.result("tools/call", {**again, "inputResponses": given})
    assert done["content"] == text("thanks")["content"]
    assert tasks.said("tasks/update", "a") == [[{"q1": SAID}]]
    assert tasks.count("call", "a") == 1


def test_a_task_that_asks_when_nobody_can_answer_is_cancelled_and_says_so(tasks: TaskFolder, tmp_path: Path) -> None:
    with Served([tasks.server()], tmp_path / "store", modern=True, settings=AT_ONCE) as wire:
        wire.hello()
        wire.stay()
        id = find_id(start(wire, "a"))
        tasks.set("a", status="input_required", inputRequests=ASKED)
        said = wire.text("wait_for_tool_output")
        assert f"{id}, failed: ServerError: The server s asked for input and got none, so its task was cancelled" in said
        assert "The client can be asked only while it waits for an answer" in said
        wait_until(lambda: tasks.count("tasks/cancel", "a"))


def test_a_killed_server_that_kept_its_tasks_is_followed_again(tasks: TaskFolder, tmp_path: Path) -> None:
    with Served([tasks.server()], tmp_path / "store", settings=AT_ONCE) as wire:
        pid, id = begin(wire, tasks)
        os.kill(pid, signal.SIGKILL)
        tasks.set("a", status="completed", result=text("after all"))
        assert id in wire.text("wait_for_tool_output")
        assert "after all" in wire.text("get_tool_output", {"id": id, "mode": "raw"})
        assert tasks.count("call", "a") == 1


@pytest.mark.promise("failures-are-answers")
def test_why_a_task_cannot_be_followed_at_the_moment_is_its_progress(tasks: TaskFolder, tmp_path: Path) -> None:
    with Served([tasks.server()], tmp_path / "store", settings=AT_ONCE) as wire:
        pid, id = begin(wire, tasks)
        tasks.start_as("away")
        os.kill(pid, signal.SIGKILL)
        wait_until(lambda: "gone to lunch" in wire.text("get_tool_output", {"id": id, "mode": "raw"}))
        tasks.start_as("")
        tasks.set("a", status="completed", result=text("after all"))
        assert id in wire.text("wait_for_tool_output")
        assert "after all" in wire.text("get_tool_output", {"id": id, "mode": "raw"})


@pytest.mark.parametrize(("lost", "said"), [(True, "no longer has the task"), (False, "no longer offers tasks")])
def test_a_killed_server_that_lost_its_tasks_ends_the_call_and_says_why(
    tasks: TaskFolder, tmp_path: Path, lost: bool, said: str
) -> None:
    with Served([tasks.server()], tmp_path / "store", settings=AT_ONCE) as wire:
        pid, id = begin(wire, tasks)
        if lost:
            (tasks.folder / "a.known").unlink()
        else:
            tasks.start_as("dropped")
        os.kill(pid, signal.SIGKILL)
        done = wire.text("wait_for_tool_output")
    assert f"(id: {id}, failed: " in done
    assert said in done


@pytest.mark.parametrize("count", [1_000, pytest.param(100_000, marks=pytest.mark.slow)])
def test_many_notifications_of_tasks_reach_no_client(tasks: TaskFolder, tmp_path: Path, modern: bool, count: int) -> None:
    with Served([tasks.server()], tmp_path / "store", modern=modern, settings={"asyncTimeoutSecs": 600}) as wire:
        wire.hello()
        assert wire.text("flood", {"count": count}) == "done"
        assert [each for each in wire.received if "tasks" in each.get("method", "")] == []
        assert len(wire.log) < 10
