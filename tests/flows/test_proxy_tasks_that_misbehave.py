"""Servers whose tasks break the rules: each call ends soon, with a sentence that says what was wrong."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from task_server import TaskFolder, text
from waiting import wait_until
from wire import CAPABILITIES, META, Served, Wire

QUESTION = {"method": "elicitation/create", "params": {"message": "Which?", "requestedSchema": {"type": "object"}}}
SAID = {"action": "accept", "content": {"which": "this"}}
DECLARED = {**CAPABILITIES, "extensions": {META + "tasks": {}}}
SLOW_TO_GIVE_UP = {"asyncTimeoutSecs": 600, "toolTimeout": 600}


@pytest.fixture
def tasks(tmp_path: Path) -> TaskFolder:
    return TaskFolder(tmp_path / "s")


def call(wire: Wire, name: str = "a") -> str:
    wire.hello()
    return ask(wire, name)


def ask(wire: Wire, name: str) -> str:
    """Everything that the client gets for a call that ends as it may."""
    return json.dumps(wire.request("tools/call", {"name": "work", "arguments": {"name": name, "task": {"pollIntervalMs": 100}}}))


UNCLEAR: list[Any] = [None, 5, "q1", [], [QUESTION], {}, {"q1": None}, {"q1": "Which?"}, {"q1": {}}, {"q1": {"method": 5}}]


@pytest.mark.promise("failures-are-answers")
def test_a_task_that_does_not_say_what_it_asks_fails_soon(tasks: TaskFolder, tmp_path: Path) -> None:
    with Served([tasks.server()], tmp_path / "store", settings=SLOW_TO_GIVE_UP) as wire:
        wire.hello()
        for number, asked in enumerate(UNCLEAR):
            name = f"a{number}"
            tasks.set(name, status="input_required", inputRequests=asked)
            assert "it is not clear what the server asks" in ask(wire, name), asked
            wait_until(lambda name=name: tasks.count("tasks/cancel", name) == 1)


LATER: list[Any] = [{"q1": {**QUESTION, "params": {"message": "Really?"}}}, {"q1": 5}, 5, [QUESTION], {"q2": {}}]


@pytest.mark.parametrize("later", LATER, ids=lambda later: str(later)[:30])
def test_a_task_that_asks_something_else_under_a_key_that_has_its_answer_fails_soon(
    tasks: TaskFolder, tmp_path: Path, later: Any
) -> None:
    after = {"status": "input_required", "inputRequests": later}
    tasks.set("a", status="input_required", inputRequests={"q1": QUESTION}, after=after)
    with Served([tasks.server()], tmp_path / "store", settings=SLOW_TO_GIVE_UP) as wire:
        wire.asked["elicitation/create"] = {"result": SAID}
        assert "it is not clear what the server asks" in call(wire)
    assert tasks.said("tasks/update", "a") == [[{"q1": SAID}]]


@pytest.mark.parametrize("rest", [{"inputRequests": {"q1": QUESTION}}, {"inputRequests": {}}, {}])
def test_a_server_may_take_a_while_to_see_an_answer(tasks: TaskFolder, tmp_path: Path, rest: dict[str, Any]) -> None:
    tasks.set("a", status="input_required", inputRequests={"q1": QUESTION}, after={"status": "input_required", **rest})
    with Served([tasks.server()], tmp_path / "store", settings=SLOW_TO_GIVE_UP) as wire:
        wire.asked["elicitation/create"] = {"result": SAID}
        wire.hello()
        asked = wire.begin("tools/call", {"name": "work", "arguments": {"name": "a", "task": {"pollIntervalMs": 100}}})
        wait_until(lambda: tasks.count("tasks/update", "a"))
        before = tasks.count("tasks/get", "a")
        wait_until(lambda: tasks.count("tasks/get", "a") > before + 1)
        tasks.set("a", status="completed", result=text("thanks"))
        assert wire.answer(asked)["result"]["content"] == text("thanks")["content"]
    assert tasks.said("tasks/update", "a") == [[{"q1": SAID}]]


@pytest.mark.promise("failures-are-answers")
@pytest.mark.parametrize("able", [{}, {"sampling": {}}], ids=str)
def test_a_task_that_asks_a_client_that_cannot_be_asked_says_so(tasks: TaskFolder, tmp_path: Path, able: dict[str, Any]) -> None:
    tasks.set("a", status="input_required", inputRequests={"q1": QUESTION})
    with Served([tasks.server()], tmp_path / "store", modern=True, settings=SLOW_TO_GIVE_UP) as wire:
        wire.capabilities = able
        said = call(wire)
    assert "asked for input and got none, so its task was cancelled" in said
    assert "The client does not declare elicitation" in said
    assert tasks.count("tasks/cancel", "a") == 1


def test_a_task_that_a_person_does_not_answer_says_what_the_client_said(tasks: TaskFolder, tmp_path: Path) -> None:
    tasks.set("a", status="input_required", inputRequests={"q1": QUESTION})
    with Served([tasks.server()], tmp_path / "store", settings=SLOW_TO_GIVE_UP) as wire:
        wire.asked["elicitation/create"] = {"error": {"code": -1, "message": "nobody is here"}}
        said = call(wire)
    assert "asked for input and got none, so its task was cancelled: nobody is here." in said


@pytest.mark.promise("nobody-elses")
@pytest.mark.parametrize("id", ["task-b", "", 5, None])
def test_what_a_server_says_of_another_task_is_not_taken_for_this_one(tasks: TaskFolder, tmp_path: Path, id: object) -> None:
    tasks.set("a", taskId=id, status="completed", result=text("of somebody else"))
    with Served([tasks.server()], tmp_path / "store", settings=SLOW_TO_GIVE_UP) as wire:
        said = call(wire)
    assert "answered about another task" in said
    assert "somebody else" not in said
