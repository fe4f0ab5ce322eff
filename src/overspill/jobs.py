"""Race a tool against the clock; let it go on in the background when the clock wins. Knows only callables: no gate, no store."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Coroutine, Generator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, TypeAlias

import anyio
import anyio.abc

from overspill import ids
from overspill.errors import SessionClosed
from overspill.types import JobInfo, JobState

Body: TypeAlias = Callable[["Job"], Awaitable[None]]
"""What a job does. It reports by setting `error`; it raises only to be cancelled."""

_LAST_WORDS = 1.0  # seconds a cancelled tool has to clean up before its caller goes on without it


class Job:
    """One tool call that may outlive its answer."""

    def __init__(self, tool: str) -> None:
        self.id = ids.new()
        self.tool = tool
        self.state: JobState = "queued"
        self.error = ""
        self.result: Any = None
        self.background = False
        self.told = False
        self.threads = 0
        """Worker threads of this job that are still running: they cannot be interrupted."""
        self.asked_ms = time.time_ns() // 1_000_000
        self.done = anyio.Event()
        self.scope = anyio.CancelScope()
        self._started = self._asked = time.monotonic()
        self._ended: float | None = None
        self._holds = 0
        self._released = anyio.Event()

    @property
    def artifact_id(self) -> str:
        return ids.artifact_id(self.id)

    @property
    def seconds(self) -> float:
        """Since it started; of a queued job, since it was asked for."""
        return (self._ended or time.monotonic()) - (self._asked if self.state == "queued" else self._started)

    @property
    def info(self) -> JobInfo:
        return JobInfo(self.artifact_id, self.tool, self.state)

    def start(self) -> None:
        self.state = "running"
        self._started = time.monotonic()

    def end(self) -> None:
        self.state = "failed" if self.error else "ready"
        self._ended = time.monotonic()

    @contextmanager
    def held(self) -> Generator[None]:
        """While a person is being asked for input the call is not slow: the clock waits too."""
        self._holds += 1
        try:
            yield
        finally:
            self._holds -= 1
            if not self._holds:
                self._released.set()
                self._released = anyio.Event()

    async def race(self, seconds: float) -> None:
        """Returns when it is done or the time is over. After the race look at the job, not at the clock."""
        while True:
            with anyio.move_on_after(seconds):
                await self.done.wait()
            if self.done.is_set() or not self._holds:
                return
            async with anyio.create_task_group() as group:
                group.start_soon(_end_with, self.done, group.cancel_scope)
                group.start_soon(_end_with, self._released, group.cancel_scope)


current: ContextVar[Job | None] = ContextVar("overspill_job", default=None)


class Jobs:
    """All jobs of a session. They live in one owner task, so that no caller's scope has to stay open for them."""

    def __init__(self, max_running: int, changed: Callable[[Job], None]) -> None:
        self.background: dict[str, Job] = {}
        self.open = True
        self._changed = changed
        self._places = anyio.Semaphore(max_running)
        self._owner: anyio.abc.TaskGroup | None = None
        self._gone = anyio.Event()
        self._news = anyio.Event()

    async def run(self, tool: str, body: Body, seconds: float) -> Job:
        """Start, and wait at most that long. A cancelled caller cancels the job as long as it has not gone to the background."""
        job = await self._start(Job(tool), body)
        try:
            await job.race(seconds)
        except anyio.get_cancelled_exc_class():
            job.scope.cancel()
            with anyio.move_on_after(_LAST_WORDS, shield=True):
                await job.done.wait()
            raise
        if not job.done.is_set():
            self._to_background(job)
        return job

    async def start(self, tool: str, body: Body) -> Job:
        """In the background from the beginning."""
        job = Job(tool)
        self._to_background(job)
        return await self._start(job, body)

    def pending(self) -> list[Job]:
        return [job for job in self.background.values() if not job.done.is_set()]

    def news(self) -> list[Job]:
        """Completed jobs nobody was told of yet."""
        return [job for job in self.background.values() if job.done.is_set() and not job.told]

    async def wait(self, seconds: float) -> list[Job]:
        """Everything newly completed; if there is nothing, wait for the first, at most that long. Tells of each job once."""
        with anyio.move_on_after(seconds):
            while not self.news() and self.pending():
                await self._news.wait()
        found = self.news()
        for job in found:
            job.told = True
        return found

    async def wait_any(self) -> None:
        """Until a job in the background completes, if one is there; marks nothing as told."""
        if self.pending():
            await self._news.wait()

    async def stop(self) -> None:
        """Take no new jobs; let those that are there finish."""
        self.open = False
        while self.pending():
            await self._news.wait()

    async def abort(self) -> list[Job]:
        """Cancel everything at once. Returns the jobs whose worker threads go on, since a thread cannot be interrupted."""
        self.open = False
        if self._owner is not None:
            self._owner.cancel_scope.cancel()
            with anyio.CancelScope(shield=True):
                await self._gone.wait()
            self._owner = None
        return [job for job in self.background.values() if job.threads]

    def _to_background(self, job: Job) -> None:
        job.background = True
        self.background[job.id] = job
        self._changed(job)

    async def _start(self, job: Job, body: Body) -> Job:
        if not self.open:
            raise SessionClosed("The session takes no new tool calls: it is ending.")
        if self._owner is None:
            await self._open_owner()
        assert self._owner is not None
        self._owner.start_soon(self._run, job, body)
        return job

    async def _run(self, job: Job, body: Body) -> None:
        current.set(job)
        try:
            with job.scope:
                async with self._places:
                    job.start()
                    if job.background:
                        self._changed(job)
                    await body(job)
            if job.scope.cancelled_caught:
                job.error = job.error or "cancelled"
        except anyio.get_cancelled_exc_class():
            job.error = job.error or "cancelled: the session ended"
            raise
        finally:
            job.end()
            job.done.set()
            if job.background:
                self._changed(job)
                self._news.set()
                self._news = anyio.Event()

    async def _open_owner(self) -> None:
        ready = anyio.Event()

        async def own() -> None:
            try:
                async with anyio.create_task_group() as group:
                    self._owner = group
                    ready.set()
                    await anyio.sleep_forever()
            finally:
                self._gone.set()

        _spawn(own)
        await ready.wait()


_owners: set[asyncio.Task[None]] = set()  # asyncio itself keeps only weak references


def _spawn(own: Callable[[], Coroutine[Any, Any, None]]) -> None:
    """The one task outside a task group: it is a task group's home. It must not belong to whichever caller came first."""
    try:
        loop = asyncio.get_running_loop()
    except RuntimeError:
        import trio  # noqa: PLC0415 - there only when the program runs on it

        trio.lowlevel.spawn_system_task(own)
    else:
        task = loop.create_task(own())
        _owners.add(task)
        task.add_done_callback(_owners.discard)


async def _end_with(event: anyio.Event, scope: anyio.CancelScope) -> None:
    await event.wait()
    scope.cancel()
