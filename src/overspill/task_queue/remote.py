"""Tools that a session does not have itself: their calls go to the workers that have them."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

import anyio
import anyio.to_thread
from msgspec.structs import replace

from overspill.calls.invoke import RemoteTool, StoredElsewhere
from overspill.calls.job import Job, current
from overspill.errors import BadRequest, MissingPackage, OverspillError, QueueError, RemoteFailure
from overspill.gate.decide import Keep, decide
from overspill.retrieval.group import JobRecord, SessionGroup
from overspill.settings import Settings
from overspill.task_queue.address import QueueAddress
from overspill.task_queue.payload import MAX_ARGUMENT_BYTES, QueuedCall, encode_arguments
from overspill.text import encoding
from overspill.text.humanize import one_line
from overspill.types import ENDED, Kept, Output, OutputForm
from overspill.wording.slow_tools import INTERRUPTED

if TYPE_CHECKING:
    from overspill.task_queue.queue import JobQueue


def find_end(record: JobRecord | None, *, is_queued: bool) -> JobRecord | None:
    """The record if the job is over. Raises RemoteFailure for a job that cannot finish.

    `is_queued`: whether the queue still has it, so that a worker may take it, or take it again.
    """
    if record is not None and record.change.state in ENDED:
        return record
    if (record is not None and record.is_live) or (is_queued and (record is None or record.change.is_repeatable)):
        return None
    if record is None:
        raise RemoteFailure("the queue has lost the call before a worker took it. Call the tool again.")
    raise RemoteFailure(INTERRUPTED)


def restore_result(form: OutputForm, data: bytes, *, is_error: bool) -> Any:
    match form:
        case "none":
            return None
        case "bytes":
            result: Any = data
        case "json":
            result = json.loads(data)
        case "blocks":
            return Output(json.loads(data), is_error=is_error)
        case "text":
            result = encoding.decode(data)
    return Output(encoding.decode(data), is_error=True) if is_error else result  # pyright: ignore[reportArgumentType]


_FIRST_PAUSE_SECONDS = 0.02
_MAX_PAUSE_SECONDS = 1.0
_LONGER = 1.3
_SECONDS_BETWEEN_LOOKS = 5.0  # between checks of the store, while the queue says that the job is not over
_PATIENCE_SECONDS = 10.0  # how long to wait while the queue does not know the job
_CANCEL_SECONDS = 3.0
_MAX_NAMES_SHOWN = 20

KeepArguments: TypeAlias = Callable[[bytes, str], Awaitable[Kept]]


Queue: TypeAlias = "JobQueue"


class RemoteTools:
    """The tools on the workers. `keep` stores arguments that are too large for the queue."""

    def __init__(self, queue: Queue, group: SessionGroup, keep: KeepArguments, settings: Settings) -> None:
        self.is_leaving = False
        """Whether the session is ending. Background jobs then keep running on their workers."""
        self._queue, self.close = queue, queue.close
        self._group = group
        self._keep = keep
        self._settings = settings
        self._known: set[str] = set()

    def find(self, name: str) -> RemoteTool:
        return RemoteTool(partial(self.run, name))

    async def cancel(self, job: str) -> bool:
        """Cancel a job. Returns False if the queue does not have it, or does not answer."""
        try:
            if await self._queue.find_state(job) not in ("queued", "running"):
                return False
            await self._queue.cancel(job)
        except QueueError:
            return False
        return True

    async def run(self, tool: str, args: dict[str, Any]) -> Any:
        job = current.get()
        assert job is not None
        try:
            await self._put(tool, args, job)
            return await self._finish(job, await self._wait(job.id))
        except anyio.get_cancelled_exc_class():
            if self.is_leaving and job.background and not job.unwanted:
                job.is_handed_over = True
            else:
                with anyio.move_on_after(_CANCEL_SECONDS, shield=True), suppress(QueueError):
                    await self._queue.cancel(job.id)  # if this fails, the worker stops the job when its time is up
            raise
        except OverspillError as error:
            raise RemoteFailure(str(error)) from error

    async def _put(self, tool: str, args: dict[str, Any], job: Job) -> None:
        if tool not in self._known:
            self._known |= await self._queue.list_tools()
        if tool not in self._known:
            names = ", ".join(sorted(map(one_line, self._known))[:_MAX_NAMES_SHOWN]) or "none"
            raise RemoteFailure(f"no worker has a tool named {one_line(tool)}. Tools that workers have: {names}.")
        may_take = self._settings.for_tool(tool, job.server).tool_timeout
        call = QueuedCall(job.id, self._group.name, tool, args, server=job.server, may_take=may_take)
        written = encode_arguments(tool, args)
        if len(written) > MAX_ARGUMENT_BYTES:
            call = replace(call, args={}, args_in=(await self._keep(written, "arguments")).handle)
        await self._queue.put(call)

    async def _wait(self, id: str) -> JobRecord:
        """Wait for a job. Checks the store if the queue says that the job is over, does not know it, or does not answer."""
        pause, looked, known = _FIRST_PAUSE_SECONDS, time.monotonic(), time.monotonic()
        while True:
            try:
                state = await self._queue.find_state(id)
            except QueueError:
                state = "away"
            now = time.monotonic()
            known = now if state != "unknown" else known
            if state not in ("queued", "running") or now - looked > _SECONDS_BETWEEN_LOOKS:
                looked = now
                record = await anyio.to_thread.run_sync(self._group.read_job, id)
                is_queued = state in ("queued", "running", "away") or (state == "unknown" and now - known < _PATIENCE_SECONDS)
                if end := find_end(record, is_queued=is_queued):
                    return end
            await anyio.sleep(pause)
            pause = min(pause * _LONGER, _MAX_PAUSE_SECONDS)

    async def _finish(self, job: Job, record: JobRecord) -> Any:
        change, kept = record.change, record.kept
        if kept is None:
            raise RemoteFailure(change.error or "its worker has stored nothing. Call the tool again.")
        settings = self._settings.for_tool(kept.tool, kept.server)
        stays = kept.missing or kept.media == "binary" or isinstance(decide(kept.size, settings), Keep)
        if job.background or stays:
            return StoredElsewhere(kept, change.error)
        data = await anyio.to_thread.run_sync(self._group.read_output, kept)
        return restore_result(change.form, data, is_error=bool(change.error))


def open_queue(address: QueueAddress) -> Queue:
    """The queue at this address. Call it on the event loop that uses the queue."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        raise BadRequest("A session with `jobs` runs on asyncio only, because pydocket does.") from None
    try:
        from overspill.task_queue.queue import JobQueue  # noqa: PLC0415  # most sessions have no queue
    except ImportError as missing:
        raise MissingPackage(f"The queue {address.shown}", "docket") from missing
    return JobQueue(address)
