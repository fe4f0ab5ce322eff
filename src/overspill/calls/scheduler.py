"""Race a tool against the clock; if the clock wins, the tool keeps running in the background. Knows no gate and no store."""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator, Callable, Coroutine
from contextlib import asynccontextmanager
from functools import partial
from typing import Any, Protocol, TypeAlias

import anyio

from overspill.calls.background import BackgroundJobs
from overspill.calls.job import Job, NewScope, current, requester
from overspill.calls.limits import Deadlines, RunningPlaces
from overspill.calls.tasks import TaskOwner, Work
from overspill.errors import BadRequest, SessionClosed
from overspill.wording import replies, slow_tools

_CLEANUP_SECONDS = 0.4  # how long to wait for a cancelled tool to clean up
_RECHECK_SECONDS = 0.25  # between two checks for a client that has not come back yet
MAX_LEFT_JOBS = 32
"""Jobs of absent clients of one kind. While that many run, no other client of that kind can call a tool."""

Attend: TypeAlias = Callable[[Job], Coroutine[Any, Any, None]]


class Body(Protocol):
    """What a job does. Neither method raises anything but cancellation."""

    async def run(self, job: Job) -> None:
        """Run the tool. The parts that can be cancelled run inside `job.scope`."""
        ...

    async def conclude(self, job: Job) -> None:
        """Called once, when the tool has ended or was given up: set `error`, keep the result. Does not yield before promotion."""
        ...


class JobScheduler:
    """All jobs of a session. `attend` runs alongside each background job. It must not raise."""

    def __init__(
        self, max_running: int, changed: Callable[[Job], None], background: BackgroundJobs, attend: Attend | None = None
    ) -> None:
        self.background = background
        self.accepting = True
        self.clock = Deadlines()
        self.new_scope: NewScope = type(anyio.CancelScope())
        """The event loop's own class: anyio's wrapper looks for the loop each time, and takes three times as long."""
        self._attend = attend
        self._changed = changed
        self._places = RunningPlaces(max_running)
        self._owner = TaskOwner()
        self._active: set[Job] = set()
        self._unfinished: dict[str, Job] = {}
        self._finished: list[Job] = []
        self._left: set[Job] = set()
        self._news = anyio.Event()
        self._new_event = type(self._news)

    async def open(self) -> None:
        await self._owner.open()
        self.clock.start(self._owner)

    def start_work(self, work: Work) -> None:
        """Run something that is not a job. It must not raise."""
        self._owner.start(work)

    async def run(self, job: Job, body: Body, seconds: float) -> None:
        """Start the job and wait at most `seconds`. Cancelling the caller cancels a job that is not in the background yet."""
        callers = None if job.caller is None else self._callers()
        if callers:
            self._places.lend(callers)
        try:
            self._start(job, body)
            deadline = time.monotonic() + seconds
            self.clock.set(job, seconds, lambda: self._race_over(job, deadline))
            await job.answered.wait()
        except anyio.get_cancelled_exc_class():
            job.unwanted = True
            job.cancel()
            with anyio.move_on_after(_CLEANUP_SECONDS, shield=True):
                await job.answered.wait()
            raise
        else:
            # Look at the job, not at the clock: a job that ended on the deadline has its answer.
            if not job.done:
                self._to_background(job)
        finally:
            self.clock.forget(job)
            if callers:
                await self._places.take_back(callers)

    def start(self, job: Job, body: Body) -> None:
        """Run a job in the background from the start."""
        self._start(job, body)
        self._to_background(job)

    async def block(self, job: Job, body: Body) -> None:
        """Run a job in the caller's task, to its end. It takes no place: a call made by a tool runs in that tool's place."""
        self.check_open()
        self._active.add(job)
        before = current.set(job)
        self._begin(job)
        try:
            await body.run(job)
        finally:
            current.reset(before)
            job.running = False
            self._end(job)

    def pending(self) -> list[Job]:
        return list(filter(_is_told_about, self._unfinished.values()))

    def ended(self) -> list[Job]:
        """The finished jobs in memory."""
        return [job for job in self.background.values() if job.done and _is_told_about(job)]

    def take_finished(self) -> list[Job]:
        """Finished jobs that the model does not know about yet, in the order they finished."""
        self._finished = [job for job in self._finished if not job.is_announced]
        return list(filter(_is_told_about, self._finished))

    async def wait(self, seconds: float) -> list[Job]:
        """Return the newly finished jobs, or wait up to `seconds` for the first one. Each job is returned once."""
        async with self._lend_places() as callers:
            with anyio.move_on_after(seconds):
                await self._wait_for_finished(callers)
        found = self.take_finished()
        for job in found:
            job.is_announced = True
        return found

    async def wait_any(self) -> None:
        """Wait until a job has finished or none is left to wait for. Does not mark any job as announced."""
        async with self._lend_places() as callers:
            await self._wait_for_finished(callers)

    async def _wait_for_finished(self, callers: set[Job]) -> None:
        while not self.take_finished() and not callers.issuperset(self.pending()):
            await self._news.wait()

    async def stop(self) -> None:
        """Take no new jobs, and wait for the others to finish, except for one whose tool called this."""
        self.accepting = False
        async with self._lend_places() as callers:
            while self._active - callers:
                await self._news.wait()

    async def abort(self) -> list[Job]:
        """Cancel all jobs. Returns those that keep running: threads, and tools that ignore cancellation."""
        self.accepting = False
        callers = self._callers()
        for job in list(self._active):
            job.cancel()
        with anyio.move_on_after(_CLEANUP_SECONDS, shield=True):
            while self._active - callers:
                await self._news.wait()
        await self._owner.cancel(_CLEANUP_SECONDS)
        for job in self._active - callers:
            job.concluded, job.error = True, job.error or "cancelled"
            self._end(job)
            if job.needs_place:
                job.answered.set()
        return [job for job in sorted(self._left | self._active, key=lambda job: job.id) if job.is_pending]

    def _race_over(self, job: Job, deadline: float) -> float | None:
        if (rest := job.rest(deadline)) > 0:
            return rest
        if job.requester is not None and not job.requester.comes_back:
            return _RECHECK_SECONDS
        job.answered.set()
        return None

    def _to_background(self, job: Job) -> None:
        job.background, job.record = True, self._changed
        if job.requester is not None:
            job.requester.add(job)
        self.background.add(job)
        self._unfinished[job.id] = job
        self._changed(job)
        if self._attend is not None:
            self._owner.start(partial(self._attend, job))

    def check_open(self) -> None:
        if not self.accepting:
            raise SessionClosed("The session takes no new tool calls because it is ending.")

    def check_may_call(self) -> None:
        """Raise an error if no call may be made: a client that keeps leaving and coming back must not pile up jobs."""
        client = requester.get()
        if not self.accepting:
            self.check_open()
        elif client is not None and sum(map(client.inherits, self._unfinished.values())) >= MAX_LEFT_JOBS:
            raise BadRequest(slow_tools.too_many_left_jobs(MAX_LEFT_JOBS))

    def _start(self, job: Job, body: Body) -> None:
        self.check_open()
        self._active.add(job)
        job.needs_place, job.answered = True, self._new_event()
        self._places.take_now(job)
        self._owner.start(partial(self._run, job, body))

    async def _run(self, job: Job, body: Body) -> None:
        current.set(job)
        try:
            if not job.has_place:
                running, job.scope = job.scope, anyio.CancelScope()
                with job.scope:
                    await self._places.take(job)
                job.scope = running
            if job.has_place and not job.is_ending:
                self._begin(job, partial(self._conclude, job, body))
                await body.run(job)
        except anyio.get_cancelled_exc_class():
            job.error = job.error or "cancelled"
            raise
        finally:
            job.running = False
            await self._conclude(job, body)

    async def _conclude(self, job: Job, body: Body) -> None:
        if job.concluded:
            return
        job.concluded = True
        try:
            await body.conclude(job)
        except anyio.get_cancelled_exc_class():
            job.error = job.error or "cancelled"
            raise
        finally:
            self._end(job)
            job.answered.set()

    def _begin(self, job: Job, give_up: Work | None = None) -> None:
        deadline = job.start() + job.may_take
        self.clock.set(job.scope, job.may_take, lambda: self._time_out(job, deadline, give_up))
        if job.background:
            self._changed(job)

    def _time_out(self, job: Job, deadline: float, give_up: Work | None) -> float | None:
        if (rest := job.rest(deadline)) > 0:
            return rest
        if not job.timed_out:
            job.time_out(replies.timeout_reason(job.may_take))
            return _CLEANUP_SECONDS
        if give_up is not None:
            self._owner.start(give_up)
        return None

    def _end(self, job: Job) -> None:
        if job.done:  # an abort does not wait for a job that is still being concluded
            return
        self.clock.forget(job.scope)
        self._places.leave(job)
        job.end()
        self._active.discard(job)
        if job.running or job.threads:
            self._left = {other for other in self._left if other.is_pending} | {job}
        if job.background:
            if job.requester is not None:
                job.requester.remove(job)
            self._finished.append(self._unfinished.pop(job.id))
            self._changed(job)
            if (forgotten := self.background.finish(job)) is not None and not forgotten.is_announced:
                self._finished.remove(forgotten)
        if job.background or not self.accepting:
            self._news.set()
            self._news = anyio.Event()

    @asynccontextmanager
    async def _lend_places(self) -> AsyncGenerator[set[Job]]:
        """Let other jobs use the places of the tool that runs this, and of its callers, while that tool waits."""
        callers = self._callers()
        self._places.lend(callers)
        try:
            yield callers
        finally:
            await self._places.take_back(callers)

    def _callers(self) -> set[Job]:
        """The jobs whose tools called this, which therefore must not wait for them."""
        found: set[Job] = set()
        job = current.get()
        while job is not None:
            if job in self._active:
                found.add(job)
            job = job.caller
        return found


def _is_told_about(job: Job) -> bool:
    client = requester.get()
    return client is None or client.is_told_about(job)
