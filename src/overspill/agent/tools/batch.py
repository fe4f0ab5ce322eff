"""`agent__batch`: several calls in one, run in parallel. One JSON object holds all their results."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from typing import Any, TypeAlias, cast

import anyio
import msgspec
from msgspec import Struct

from overspill.agent import wording
from overspill.agent.internal import BATCH, REPORT
from overspill.errors import BadRequest
from overspill.types import Reply, ToolCall

Answer: TypeAlias = Callable[[ToolCall], Awaitable[Reply]]


class _Entry(Struct, frozen=True):
    tool: str
    id: str | int = ""
    parameters: dict[str, Any] = {}


class _Batch(Struct, frozen=True):
    calls: tuple[_Entry, ...]


class BatchResult(Struct, frozen=True):
    """If the call went to the background, `output` says how to get its result."""

    id: str
    tool: str
    ok: bool
    elapsed_ms: int
    output: str
    reply: Reply | None = None

    def to_json(self) -> dict[str, Any]:
        base = {"id": self.id, "tool": self.tool, "ok": self.ok, "elapsedMs": self.elapsed_ms}
        return {**base, "output": self.output} if self.ok else {**base, "error": {"message": self.output}}


def count_calls(call: ToolCall) -> int:
    """How many calls a batch would make."""
    calls: object = call.args.get("calls")
    return len(cast("list[object]", calls)) if isinstance(calls, list) else 0


async def run_batch(call: ToolCall, answer: Answer, quota: int, limit: int) -> list[BatchResult]:
    """Run at most `quota` of its calls. `limit` is how many calls a turn allows.

    Raises BadRequest if the batch itself cannot be read. A mistake in one of its calls becomes the result of that call.
    """
    try:
        batch = msgspec.convert(dict(call.args), _Batch)
    except msgspec.ValidationError as error:
        raise BadRequest(wording.bad_arguments(BATCH, str(error))) from None
    results: dict[int, BatchResult] = {}

    async def run_one(index: int, entry: _Entry) -> None:
        id = str(entry.id or index + 1)
        started = time.perf_counter()
        try:
            if entry.tool in (BATCH, REPORT):
                raise BadRequest(wording.not_in_batch(entry.tool))
            if index >= quota:
                raise BadRequest(wording.too_many_calls(limit))
            reply = await answer(ToolCall(f"{call.id}/{id}", entry.tool, entry.parameters))
            ok, text = not reply.is_error, reply.text
        except BadRequest as error:
            reply, ok, text = None, False, str(error)
        results[index] = BatchResult(id, entry.tool, ok, round((time.perf_counter() - started) * 1000), text, reply)

    async with anyio.create_task_group() as group:
        for index, entry in enumerate(batch.calls):
            group.start_soon(run_one, index, entry)
    return [results[index] for index in range(len(batch.calls))]
