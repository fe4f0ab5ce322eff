from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import anyio
import pytest

from overspill.models.conversation import RunCalls, converse, run_in_parallel, take_step
from overspill.models.protocol import Message, ModelError, Request, Response
from overspill.models.written import UNREADABLE
from overspill.testing import ScriptedModel
from overspill.types import ToolCall

GREP = {
    "name": "Grep",
    "description": "Searches.",
    "parameters": {
        "type": "object",
        "properties": {"pattern": {"type": "string"}, "context": {"type": "integer"}},
        "required": ["pattern"],
    },
}
STATUS = {"name": "Status", "description": "Says how things are.", "parameters": {"type": "object"}}
HINT = "Answer now."
QUESTION = Request("sys", (Message("user", "Where is the moon?"),), (GREP, STATUS))


def grep(id: str, **args: object) -> ToolCall:
    return ToolCall(id, "Grep", args or {"pattern": "moon"})


async def echo(call: ToolCall) -> Message:
    return Message("tool", f"ran {call.id}", call_id=call.id)


async def nothing_to_run(calls: Sequence[ToolCall]) -> Sequence[Message]:
    raise AssertionError(f"{calls} were run")


ECHO: RunCalls = partial(run_in_parallel, echo)


@pytest.mark.anyio
async def test_a_step_without_calls_is_the_answer() -> None:
    taken = await take_step(ScriptedModel(["There."]), QUESTION, nothing_to_run)
    assert taken.response.text == "There."
    assert taken.messages == (Message("assistant", "There."),)


@pytest.mark.anyio
async def test_every_call_of_a_step_is_answered_in_order() -> None:
    calls = (grep("1"), ToolCall("2", "Delete"), grep("3"), ToolCall("4", "Grep"), grep("5", **{UNREADABLE: "pattern="}))
    taken = await take_step(ScriptedModel([calls]), QUESTION, ECHO)
    assert taken.messages == (
        Message("assistant", "", calls),
        Message("tool", "ran 1", call_id="1"),
        Message("tool", "There is no tool 'Delete'. Known tools: Grep, Status.", call_id="2", is_error=True),
        Message("tool", "ran 3", call_id="3"),
        Message("tool", "Grep was called without pattern. It takes: pattern, context (optional).", call_id="4", is_error=True),
        Message(
            "tool",
            "The arguments of Grep are not a JSON object. It takes: pattern, context (optional).",
            call_id="5",
            is_error=True,
        ),
    )


@pytest.mark.anyio
async def test_a_runner_that_leaves_a_call_unanswered_is_an_error() -> None:
    async def forgets(calls: Sequence[ToolCall]) -> Sequence[Message]:
        return [await echo(calls[0])]

    with pytest.raises(ValueError, match="shorter"):
        await take_step(ScriptedModel([(grep("1"), grep("2"))]), QUESTION, forgets)


@pytest.mark.anyio
async def test_only_calls_that_can_run_are_run() -> None:
    calls = (ToolCall("1", "Delete"), ToolCall("2", "Status", {UNREADABLE: "?"}))
    taken = await take_step(ScriptedModel([calls]), QUESTION, nothing_to_run)
    assert [message.text for message in taken.messages[1:]] == [
        "There is no tool 'Delete'. Known tools: Grep, Status.",
        "The arguments of Status are not a JSON object. It takes: no arguments.",
    ]


@pytest.mark.anyio
async def test_a_call_when_no_tool_was_offered_is_answered_too() -> None:
    taken = await take_step(ScriptedModel([grep("1")]), Request("", QUESTION.messages), nothing_to_run)
    assert taken.messages[1].text == "There is no tool 'Grep'. Known tools: none."


@pytest.mark.anyio
async def test_a_call_written_as_text_is_run() -> None:
    text = '```json\n{"name": "Grep", "arguments": {"pattern": "moon"}}\n```'
    taken = await take_step(ScriptedModel([text]), QUESTION, ECHO)
    (call,) = taken.response.calls
    assert (call.name, call.args, taken.messages[1].text) == ("Grep", {"pattern": "moon"}, f"ran {call.id}")


@pytest.mark.anyio
async def test_the_calls_of_a_step_run_at_the_same_time() -> None:
    arrived = [anyio.Event(), anyio.Event()]

    async def meet(call: ToolCall) -> Message:
        mine = int(call.id)
        arrived[mine].set()
        await arrived[1 - mine].wait()
        return await echo(call)

    with anyio.fail_after(30):
        taken = await take_step(ScriptedModel([(grep("0"), grep("1"))]), QUESTION, partial(run_in_parallel, meet))
    assert [message.text for message in taken.messages[1:]] == ["ran 0", "ran 1"]


@pytest.mark.anyio
async def test_a_conversation_continues_until_the_model_answers() -> None:
    model = ScriptedModel([grep("1"), (grep("2"), grep("3")), "There."])
    said = await converse(model, QUESTION, ECHO, max_turns=15, final_hint=HINT)
    assert said == Response("There.", model="test/scripted")
    assert [message.text for message in model.requests[-1].messages] == ["Where is the moon?", "", "ran 1", "", "ran 2", "ran 3"]
    assert all(request.tool_choice == "auto" for request in model.requests)


@pytest.mark.anyio
async def test_a_premature_answer_is_followed_by_a_call() -> None:
    seen: list[str] = []

    async def look(call: ToolCall) -> Message:
        seen.append(call.id)
        return await echo(call)

    def insist() -> str:
        return "" if seen else "Look first."

    model = ScriptedModel(["Nowhere.", grep("1"), "There."])
    said = await converse(model, QUESTION, partial(run_in_parallel, look), max_turns=15, final_hint=HINT, insist=insist)
    assert said == Response("There.", model="test/scripted")
    assert [request.tool_choice for request in model.requests] == ["auto", "required", "auto"]
    conversation = ["Where is the moon?", "Look first.", "", "ran 1"]
    assert [message.text for message in model.requests[-1].messages] == conversation


@pytest.mark.anyio
async def test_a_model_that_answers_even_when_it_has_to_call_has_answered() -> None:
    model = ScriptedModel(["Nowhere.", "As I said."])
    said = await converse(model, QUESTION, nothing_to_run, max_turns=15, final_hint=HINT, insist=lambda: "Look first.")
    assert said == Response("As I said.", model="test/scripted")


@pytest.mark.anyio
async def test_in_the_last_turn_the_model_can_only_answer_and_is_told_so() -> None:
    model = ScriptedModel([grep("1"), "From what I saw: there."])
    said = await converse(model, QUESTION, ECHO, max_turns=2, final_hint=HINT)
    assert said == Response("From what I saw: there.", model="test/scripted")
    assert model.requests[1].tool_choice == "none"
    assert model.requests[1].messages[-1] == Message("user", HINT)


@pytest.mark.anyio
async def test_calls_of_the_last_turn_are_not_run() -> None:
    answer = Response('There. {"tool": "Status"}', (grep("1"),))
    said = await converse(ScriptedModel([answer]), QUESTION, nothing_to_run, max_turns=1, final_hint=HINT)
    assert said == Response('There. {"tool": "Status"}')


@pytest.mark.anyio
@pytest.mark.parametrize(("replies", "text"), [([" \n"], " \n"), ([grep("1"), grep("2")], "")])
async def test_a_model_that_says_nothing_in_the_end_is_not_asked_for_ever(replies: list[str | ToolCall], text: str) -> None:
    said = await converse(ScriptedModel(replies), QUESTION, ECHO, max_turns=2, final_hint=HINT)
    assert (said.text, said.calls) == (text, ())


@pytest.mark.anyio
async def test_a_model_that_fails_ends_the_conversation_with_its_error() -> None:
    with pytest.raises(ModelError, match="down"):
        await converse(
            ScriptedModel([grep("1"), ModelError("down", is_transient=True)]), QUESTION, ECHO, max_turns=5, final_hint=HINT
        )
