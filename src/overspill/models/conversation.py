"""A conversation with a model that calls tools. The caller runs the tools and decides what happens to their outputs."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Protocol, TypeAlias, TypeVar

import anyio
from msgspec import Struct
from msgspec.structs import replace

from overspill.models.protocol import Message, Request, Response
from overspill.models.written import UNREADABLE, find_written_calls
from overspill.text.humanize import one_line
from overspill.types import ToolCall

A = TypeVar("A")
T = TypeVar("T")


class AskModel(Protocol):
    async def ask(self, request: Request) -> Response: ...


RunCalls: TypeAlias = Callable[[Sequence[ToolCall]], Awaitable[Sequence[Message]]]
"""Answers the calls of one step: one message per call, in the same order."""


class ModelStep(Struct, frozen=True):
    response: Response
    messages: tuple[Message, ...]
    """What to add to the conversation: the response, then an answer to each of its calls."""


async def take_step(
    model: AskModel, request: Request, run_calls: RunCalls, find_problem: Callable[[ToolCall], str] | None = None
) -> ModelStep:
    """Ask, and run the calls. If a call cannot run because the tool or an argument is missing, the answer says so.

    `find_problem` returns that reason or an empty string. Without it, the tools of the request can run.
    """
    response = await model.ask(request)
    if request.tool_choice == "none":
        response = replace(response, calls=())
    else:
        response = find_written_calls(response, [tool["name"] for tool in request.tools])
    answers: dict[int, Message] = {}
    runnable: dict[int, ToolCall] = {}
    for place, call in enumerate(response.calls):
        if problem := find_problem(call) if find_problem else describe_bad_call(call, request.tools):
            answers[place] = Message("tool", problem, call_id=call.id, is_error=True)
        else:
            runnable[place] = call
    if runnable:
        answers.update(zip(runnable, await run_calls(list(runnable.values())), strict=True))
    in_order = (answers[place] for place in range(len(response.calls)))
    return ModelStep(response, (Message("assistant", response.text, response.calls), *in_order))


async def converse(
    model: AskModel,
    request: Request,
    run_calls: RunCalls,
    *,
    max_turns: int,
    final_hint: str,
    insist: Callable[[], str] = lambda: "",
) -> Response:
    """Take steps until the model answers without calling a tool. In the last turn, it learns that it cannot call any.

    While `insist` returns text, an answer is premature: the model reads that text in place of its answer and must call a tool. If
    it answers again, that is the answer.
    """
    has_insisted = False
    for _ in range(1, max_turns):
        taken = await take_step(model, request, run_calls)
        if taken.response.calls:
            request = replace(request, messages=(*request.messages, *taken.messages), tool_choice="auto")
            continue
        premature = insist() if taken.response.text.strip() and not has_insisted else ""
        if not premature:
            return taken.response
        has_insisted = True
        # Leave out the premature answer: a model that reads it again repeats it.
        request = replace(request, messages=(*request.messages, Message("user", premature)), tool_choice="required")
    # The tools stay listed, because some providers reject a conversation with calls of tools that are not listed.
    last = replace(request, messages=(*request.messages, Message("user", final_hint)), tool_choice="none")
    return (await take_step(model, last, run_calls)).response


async def run_in_parallel(run: Callable[[A], Awaitable[T]], given: Sequence[A]) -> list[T]:
    """The results, in order. The first failure ends the others, and is raised without wrapping it."""
    results: dict[int, T] = {}
    failures: list[Exception] = []

    async def run_one(place: int, each: A) -> None:
        try:
            results[place] = await run(each)
        except Exception as error:
            failures.append(error)
            group.cancel_scope.cancel()

    async with anyio.create_task_group() as group:
        for place, each in enumerate(given):
            group.start_soon(run_one, place, each)
    if failures:
        raise failures[0]
    return [results[place] for place in range(len(given))]


def describe_bad_call(call: ToolCall, tools: Sequence[dict[str, Any]]) -> str:
    """Why a call cannot run; empty if it can."""
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
