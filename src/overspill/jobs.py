"""Race a tool against the clock; let it go on in the background when the clock wins. Knows only callables: no gate, no store."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Generator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cached_property, partial
from typing import Any, TypeAlias

import anyio

from overspill import ids
from overspill.clock import Clock
from overspill.errors import SessionClosed
from overspill.owner import Owner
from overspill.types import JobInfo, JobState

Body: TypeAlias = Callable[["Job"], Awaitable[None]]
"""What a job does, inside `job.scope` as far as it can be cancelled. It reports by setting `error` and never raises."""

_LAST_WORDS = 0.5  # seconds a cancelled tool has to clean up before we go on without it


class Job:
    """One tool call that may outlive its answer."""

    def __init__(self, tool: str) -> None:
        self.tool = tool
        self.state: JobState = "queued"
        self.error = ""
        self.result: Any = None
        self.background = False
        self.done = False
        self.told = False
        self.threads = 0
        """Worker threads of this job that are still running: they cannot be interrupted."""
        self.scope = anyio.CancelScope()
        """To be entered once, by whatever runs the tool."""
        self.cancelled = False
        self.answered = anyio.Event()
        """Set when the race is over, whoever won it."""
        self._since = time.monotonic()
        self._ended: float | None = None
        self._holds = 0

    @cached_property
    def id(self) -> str:
        return ids.new()

    @property
    def artifact_id(self) -> str:
        return ids.artifact_id(self.id)

    @property
    def seconds(self) -> float:
        """Since it started; of a queued job, since it was asked for."""
        return (time.monotonic() if self._ended is None else self._ended) - self._since

    @property
    def info(self) -> JobInfo:
        return JobInfo(self.artifact_id, self.tool, self.state)

    @contextmanager
    def held(self) -> Generator[None]:
        """While a person is asked for input the call is not slow: it does not go to the background meanwhile."""
        self._holds += 1
        try:
            yield
        finally:
            self._holds -= 1

    def time_is_up(self) -> bool:
        """The race is over, unless a person is being asked."""
        if not self._holds:
            self.answered.set()
        return not self._holds

    def cancel(self) -> None:
        self.cancelled = True
        self.scope.cancel()

    def start(self) -> None:
        self.state = "running"
        self._since = time.monotonic()

    def end(self) -> None:
        if self.cancelled and not self.error:
            self.error = "cancelled"
        self.state = "failed" if self.error else "ready"
        self._ended = time.monotonic()
        self.done = True
        self.answered.set()


current: ContextVar[Job | None] = ContextVar("overspill_job", default=None)


class Jobs:
    """All jobs of a session."""

    def __init__(self, max_running: int, changed: Callable[[Job], None]) -> None:
        self.background: dict[str, Job] = {}
        self.open = True
        self._changed = changed
        self._places = anyio.Semaphore(max_running)
        self._owner = Owner()
        self._active: set[Job] = set()
        self.clock = Clock(self._owner)
        self._news = anyio.Event()

    async def run(self, tool: str, body: Body, seconds: float) -> Job:
        """Start, and wait at most that long. A cancelled caller cancels the job as long as it has not gone to the background."""
        job = await self._start(Job(tool), body)
        await self.clock.start()
        self.clock.set(job, seconds, job.time_is_up)
        try:
            await job.answered.wait()
        except anyio.get_cancelled_exc_class():
            job.cancel()
            with anyio.move_on_after(_LAST_WORDS, shield=True):
                await job.answered.wait()
            raise
        finally:
            self.clock.forget(job)
        # After the race the job is looked at, not the clock: one that ended on the deadline has its answer.
        if not job.done:
            self._to_background(job)
        return job

    async def start(self, tool: str, body: Body) -> Job:
        """In the background from the beginning."""
        job = Job(tool)
        self._to_background(job)
        return await self._start(job, body)

    def check_open(self) -> None:
        if not self.open:
            raise SessionClosed("The session takes no new tool calls: it is ending.")

    def pending(self) -> list[Job]:
        return [job for job in self.background.values() if not job.done]

    def news(self) -> list[Job]:
        """Completed jobs nobody was told of yet."""
        return [job for job in self.background.values() if job.done and not job.told]

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
        """Cancel everything at once. Returns the jobs that go on all the same: threads, and tools that will not be cancelled."""
        self.open = False
        for job in self._active:
            job.cancel()
        with anyio.move_on_after(_LAST_WORDS, shield=True):
            while self._active:
                await self._news.wait()
        await self._owner.cancel(_LAST_WORDS)
        return [job for job in self.background.values() if job.threads or not job.done]

    def _to_background(self, job: Job) -> None:
        job.background = True
        self.background[job.id] = job
        self._changed(job)

    async def _start(self, job: Job, body: Body) -> Job:
        self.check_open()
        self._active.add(job)
        await self._owner.start(partial(self._run, job, body))
        return job

    async def _run(self, job: Job, body: Body) -> None:
        current.set(job)
        try:
            if await self._got_a_place(job):
                try:
                    job.start()
                    if job.background:
                        self._changed(job)
                    await body(job)
                finally:
                    self._places.release()
        finally:
            job.end()
            self._active.discard(job)
            if job.background:
                self._changed(job)
            if job.background or not self.open:
                self._news.set()
                self._news = anyio.Event()

    async def _got_a_place(self, job: Job) -> bool:
        """At once while there are any; a job may be cancelled while it waits for one."""
        try:
            self._places.acquire_nowait()
        except anyio.WouldBlock:
            running, job.scope = job.scope, anyio.CancelScope()
            with job.scope:
                await self._places.acquire()
            job.scope = running
        return not job.cancelled
