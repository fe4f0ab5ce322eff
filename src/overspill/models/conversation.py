"""One step: ask, call tools, answer. Who runs the tools, and what becomes of their outputs, is the caller's business."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Protocol, TypeAlias

import anyio
from msgspec import Struct
from msgspec.structs import replace

from overspill.models.protocol import Message, Request, Response, ToolChoice
from overspill.models.written import UNREADABLE, find_written_calls
from overspill.text.humanize import one_line
from overspill.types import ToolCall


class AskModel(Protocol):
    async def ask(self, request: Request) -> Response: ...


RunCalls: TypeAlias = Callable[[Sequence[ToolCall]], Awaitable[Sequence[Message]]]
"""Answers the calls of one step: as many messages as calls, in their order."""


class Step(Struct, frozen=True):
    response: Response
    messages: tuple[Message, ...]
    """What the conversation grows by: the response, then an answer to each of its calls."""


async def take_step(model: AskModel, request: Request, run_calls: RunCalls) -> Step:
    """Calls of tools that were not offered, or without what they need, are answered with what is wrong and not run."""
    response = await model.ask(request)
    if request.tool_choice == "none":
        response = replace(response, calls=())
    else:
        response = find_written_calls(response, [tool["name"] for tool in request.tools])
    answers: dict[int, Message] = {}
    sound: dict[int, ToolCall] = {}
    for place, call in enumerate(response.calls):
        if said := describe_bad_call(call, request.tools):
            answers[place] = Message("tool", said, call_id=call.id, is_error=True)
        else:
            sound[place] = call
    if sound:
        answers.update(zip(sound, await run_calls(list(sound.values())), strict=True))
    in_order = (answers[place] for place in range(len(response.calls)))
    return Step(response, (Message("assistant", response.text, response.calls), *in_order))


async def converse(
    model: AskModel,
    request: Request,
    run_calls: RunCalls,
    *,
    max_turns: int,
    final_hint: str,
    insist: Callable[[], str] = lambda: "",
) -> Response:
    """Steps until the model answers without calling anything; in the last turn it cannot call, and is told so.

    While `insist` has words, an answer comes too soon: they are said and the model has to call. If it still does not, that is it.
    """
    for _ in range(1, max_turns):
        taken = await take_step(model, request, run_calls)
        choice: ToolChoice = "auto"
        said: tuple[Message, ...] = ()
        if not taken.response.calls:
            urgent = insist() if request.tool_choice == "auto" and taken.response.text.strip() else ""
            if not urgent:
                return taken.response
            choice, said = "required", (Message("user", urgent),)
        request = replace(request, messages=(*request.messages, *taken.messages, *said), tool_choice=choice)
    # The tools stay listed: some providers reject a conversation with calls of tools that are not.
    last = replace(request, messages=(*request.messages, Message("user", final_hint)), tool_choice="none")
    return (await take_step(model, last, run_calls)).response


def run_in_parallel(run: Callable[[ToolCall], Awaitable[Message]]) -> RunCalls:
    """The calls of a step at the same time, answered in their order."""

    async def run_calls(calls: Sequence[ToolCall]) -> Sequence[Message]:
        answers: dict[int, Message] = {}

        async def answer(place: int, call: ToolCall) -> None:
            answers[place] = await run(call)

        async with anyio.create_task_group() as group:
            for place, call in enumerate(calls):
                group.start_soon(answer, place, call)
        return [answers[place] for place in range(len(calls))]

    return run_calls


def describe_bad_call(call: ToolCall, tools: Sequence[dict[str, Any]]) -> str:
    """Empty for a call that can be run."""
    tool = next((tool for tool in tools if tool["name"] == call.name), None)
    if tool is None:
        return f"There is no tool {one_line(call.name)!r}. Known tools: {', '.join(tool['name'] for tool in tools) or 'none'}."
    if UNREADABLE in call.args:
        return f"The arguments of {call.name} are not a JSON object. {_describe_usage(tool)}"
    missing = [name for name in tool["parameters"].get("required", ()) if name not in call.args]
    return f"{call.name} was called without {', '.join(missing)}. {_describe_usage(tool)}" if missing else ""


def _describe_usage(tool: dict[str, Any]) -> str:
    parameters = tool["parameters"]
    required = parameters.get("required", ())
    described = [name if name in required else f"{name} (optional)" for name in parameters.get("properties", {})]
    return f"It takes: {', '.join(described) or 'no arguments'}."
