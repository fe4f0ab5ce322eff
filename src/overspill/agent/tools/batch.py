"""`agent__batch`: several calls in one, run at the same time; one JSON object holds all their results."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, TypeAlias, cast

import anyio
import msgspec
from msgspec import Struct

from overspill.agent import wording
from overspill.agent.internal import BATCH, REPORT
from overspill.errors import BadRequest
from overspill.text.lenient_json import dumps
from overspill.types import Reply, ToolCall

Answer: TypeAlias = Callable[[ToolCall], Awaitable[Reply]]


class _Entry(Struct, frozen=True):
    tool: str
    id: str | int = ""
    parameters: dict[str, Any] = {}


class _Batch(Struct, frozen=True):
    calls: tuple[_Entry, ...]


class BatchResult(Struct, frozen=True):
    """`ok` without an output: the call went to the background, and `output` says how to get it."""

    id: str
    tool: str
    ok: bool
    elapsed_ms: int
    output: str
    reply: Reply | None = None

    def to_json(self) -> dict[str, Any]:
        base = {"id": self.id, "tool": self.tool, "ok": self.ok, "elapsedMs": self.elapsed_ms}
        return {**base, "output": self.output} if self.ok else {**base, "error": {"message": self.output}}


def size(call: ToolCall) -> int:
    """How many calls it would make."""
    calls: object = call.args.get("calls")
    return len(cast("list[object]", calls)) if isinstance(calls, list) else 0


async def run_batch(call: ToolCall, answer: Answer, most: int, allowed: int) -> list[BatchResult]:
    """At most `most` of its calls are run, of `allowed` a turn.

    BadRequest where the batch itself cannot be read; what is wrong with one of its calls stands in its result.
    """
    try:
        asked = msgspec.convert(dict(call.args), _Batch)
    except msgspec.ValidationError as error:
        raise BadRequest(wording.bad_arguments(BATCH, str(error))) from None
    results: dict[int, BatchResult] = {}

    async def one(place: int, entry: _Entry) -> None:
        id = str(entry.id or place + 1)
        started = time.perf_counter()
        try:
            if entry.tool in (BATCH, REPORT):
                raise BadRequest(wording.not_in_batch(entry.tool))
            if place >= most:
                raise BadRequest(wording.too_many_calls(allowed))
            reply = await answer(ToolCall(f"{call.id}/{id}", entry.tool, entry.parameters))
            ok, text = not reply.is_error, reply.text
        except BadRequest as error:
            reply, ok, text = None, False, str(error)
        results[place] = BatchResult(id, entry.tool, ok, round((time.perf_counter() - started) * 1000), text, reply)

    async with anyio.create_task_group() as group:
        for place, entry in enumerate(asked.calls):
            group.start_soon(one, place, entry)
    return [results[place] for place in range(len(asked.calls))]


def render_results(results: Sequence[BatchResult]) -> str:
    return dumps({"results": [result.to_json() for result in results]}).decode()


def anything_new(results: Sequence[BatchResult]) -> bool:
    return any(result.reply is None or result.reply.new for result in results)
