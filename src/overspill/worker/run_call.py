"""Run one queued call, in a part of its session that only one worker can hold: no two workers run it at the same time."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import partial
from inspect import isgenerator
from typing import Any, Literal, TypeAlias, cast

import anyio
import anyio.to_thread
import msgspec

from overspill import handles
from overspill.calls.background import find_last_change
from overspill.calls.invoke import Threads, invoke_tool
from overspill.calls.job import Job, current
from overspill.errors import BadRequest, HandleError, StoreError
from overspill.gate.collect import is_blocks
from overspill.gate.serialise import to_json
from overspill.record.events import Entry, JobChanged, OutputStored, now_ms
from overspill.redaction.policy import Redaction
from overspill.retrieval.group import SessionGroup, name_part
from overspill.session.opening import open_parts
from overspill.session.parts import SessionOpening, SessionParts
from overspill.settings import Settings
from overspill.store.protocols import Store
from overspill.task_queue.payload import QueuedCall
from overspill.types import ENDED, Output, OutputForm, ToolCall
from overspill.wording.slow_tools import INTERRUPTED
from overspill.worker.tools import WorkerTool


def prepare_result(result: Any) -> tuple[Any, OutputForm]:
    """What to store, and its form. Blocks are stored as JSON unless they are all plain text."""
    if result is None:
        return None, "none"
    if isinstance(result, str | AsyncIterator) or isgenerator(result):
        return cast("Any", result), "text"
    if isinstance(result, bytes | bytearray | memoryview):
        return cast("Any", result), "bytes"
    if isinstance(result, Output):
        only = cast("Mapping[str, Any] | object", result.content[0]) if len(result.content) == 1 else None
        if isinstance(only, Mapping) and set(cast("Mapping[str, Any]", only)) == {"type", "text"} and only["type"] == "text":
            return result, "text"
        return Output(to_json(result.content), is_error=result.is_error), "blocks"  # pyright: ignore[reportArgumentType]
    if is_blocks(result):
        return to_json(result), "blocks"
    return result, "json"


MAX_ATTEMPTS = 3
"""How often a repeatable tool is run if each of its workers dies: the tool may be what kills them."""
_SECONDS_BETWEEN_LOOKS = 2.0  # between checks of the store for a cancellation whose message was lost

Ending: TypeAlias = Literal["over", "busy", "handed over"]
"""`busy`: another worker has it, or the store does not answer. `handed over`: another worker must run it again."""


class CallRunner:
    def __init__(self, store: Store, settings: Settings, secrets: Mapping[str, str]) -> None:
        """`secrets` are as for `Session`."""
        self._store, self._redaction = store, Redaction(settings, secrets)
        self._settings = settings
        self._threads = Threads(settings.max_running)

    async def run(
        self, call: QueuedCall, tool: WorkerTool, is_wanted: Callable[[], Awaitable[bool]], hurry: anyio.Event
    ) -> Ending:
        """Run a queued call. `is_wanted` returns whether the job is not cancelled. `hurry` is set when the worker must end."""
        try:
            async with self._open_part(call) as parts:
                earlier = list(parts.ledger.events_about(call.job))
                last = find_last_change(earlier, call.job)
                if last is not None and last.state in ENDED:
                    return "over"
                if (end := _find_end(call, tool, earlier)) is None:
                    return await self._run_tool(parts, call, tool, is_wanted, hurry)
                parts.ledger.record(end)
                return "over"
        except StoreError:
            return "busy"

    @asynccontextmanager
    async def _open_part(self, call: QueuedCall) -> AsyncGenerator[SessionParts]:
        """Open the session of this call. If its worker dies, another opens it by its name, which the store gives to only one."""
        id, name = handles.new(), name_part(call.family, call.job)
        try:
            await anyio.to_thread.run_sync(self._store.label, call.job)
        except HandleError:  # the session is new
            id = call.job
        # Record that the tool runs before it starts: otherwise, if this worker dies, another might run it again.
        opening = SessionOpening(
            settings=self._settings, store=self._store, name=name, writes_off_loop=False, redaction=self._redaction
        )
        parts = await open_parts(opening, id)
        try:
            yield parts
        finally:
            await parts.end(abort=True, remove_empty=None)

    async def _run_tool(
        self,
        parts: SessionParts,
        call: QueuedCall,
        tool: WorkerTool,
        is_wanted: Callable[[], Awaitable[bool]],
        hurry: anyio.Event,
    ) -> Ending:
        async def cancel_unwanted() -> None:
            while await is_wanted():  # noqa: ASYNC110  # another process cancels it
                await anyio.sleep(_SECONDS_BETWEEN_LOOKS)
            job.cancel()

        async def hand_over() -> None:
            await hurry.wait()
            job.is_handed_over = job.is_repeatable
            job.cancel()

        job = Job(call.tool, call.may_take, parts.calls.jobs.new_scope, server=call.server)
        job.id, job.is_repeatable = call.job, tool.is_repeatable
        try:
            args = await anyio.to_thread.run_sync(self._read_arguments, call)
        except BadRequest as error:
            parts.ledger.record(JobChanged(now_ms(), call.job, call.tool, "failed", error=str(error), server=call.server))
            return "over"
        named = ToolCall("", call.tool, args, call.server)
        parts.calls.start_job(job, named, args, partial(self._call_tool, tool))
        async with anyio.create_task_group() as group:
            group.start_soon(cancel_unwanted)
            group.start_soon(hand_over)
            await job.answered.wait()
            group.cancel_scope.cancel()
        return "handed over" if job.is_handed_over else "over"

    async def _call_tool(self, tool: WorkerTool, /, **args: Any) -> Any:
        job = current.get()
        assert job is not None
        result = await invoke_tool(tool.function, args, job, self._threads)
        prepared, job.form = prepare_result(result)
        return prepared

    def _read_arguments(self, call: QueuedCall) -> Mapping[str, Any]:
        """The arguments of a call. Stored arguments are read only from the session's own family."""
        if not call.args_in:
            return call.args
        group = SessionGroup(self._store, call.family, shared_by=call.job)
        try:
            found = group.find(call.args_in)
            return msgspec.json.decode(group.read_output(found) if found else b"", type=dict[str, Any])
        except (HandleError, msgspec.DecodeError):
            raise BadRequest(f"the arguments of {call.tool} were stored and are gone. Call the tool again.") from None


def _find_end(call: QueuedCall, tool: WorkerTool, earlier: Sequence[Entry]) -> JobChanged | None:
    """How to record a job that another worker began but did not finish; None if it must be run."""
    attempts = sum(isinstance(each, JobChanged) and each.state == "running" for each in earlier)
    if not attempts:
        return None
    if any(isinstance(each, OutputStored) and each.kept.id == call.job for each in earlier):
        return JobChanged(now_ms(), call.job, call.tool, "ready", server=call.server, kept=True)
    if tool.is_repeatable and attempts < MAX_ATTEMPTS:
        return None
    return JobChanged(now_ms(), call.job, call.tool, "failed", error=INTERRUPTED, server=call.server)
