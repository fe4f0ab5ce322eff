"""One timer for the deadlines of many calls: most calls end long before their deadline."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable
from contextvars import Context
from typing import TypeAlias

import anyio
import anyio.lowlevel

from overspill.calls.job import Job
from overspill.calls.tasks import TaskOwner

Ring: TypeAlias = Callable[[], float | None]
"""Called when time is up. Returns the seconds until it should be called again, or None."""


class Deadlines:
    """Uses the monotonic clock: changing the system's time moves no deadline."""

    def __init__(self) -> None:
        self._alarms: dict[object, tuple[float, Ring]] = {}
        self._rings_at = math.inf
        self._earlier = anyio.Event()

    def start(self, owner: TaskOwner) -> None:
        Context().run(owner.start, self._tick)  # the caller's context would live as long as the session

    def set(self, key: object, seconds: float, ring: Ring) -> None:
        at = time.monotonic() + seconds
        self._alarms[key] = (at, ring)
        if at < self._rings_at:
            self._rings_at = at
            self._earlier.set()

    def forget(self, key: object) -> None:
        self._alarms.pop(key, None)

    async def _tick(self) -> None:
        while True:
            self._earlier = anyio.Event()
            self._rings_at = min((at for at, _ in self._alarms.values()), default=math.inf)
            with anyio.move_on_after(self._rings_at - time.monotonic()):
                await self._earlier.wait()
            now = time.monotonic()
            due = [(at, key, ring) for key, (at, ring) in self._alarms.items() if at <= now]
            for _, key, ring in sorted(due, key=lambda alarm: alarm[0]):
                if key not in self._alarms:  # the function of an earlier alarm removed this one
                    continue
                again = ring()
                if again is None:
                    self._alarms.pop(key, None)
                else:
                    self._alarms[key] = (now + again, ring)


class RunningPlaces:
    """A job takes a place before its tool starts and leaves it when the tool ends.

    A tool that calls another one and waits for it gives up its place: the other one may need the last place. It takes a
    place again before it continues, unless it still waits for another call, since then that one may need the last place.
    """

    def __init__(self, count: int) -> None:
        self._free = anyio.Semaphore(count)

    def take_now(self, job: Job) -> None:
        """Take a place if one is free."""
        try:
            self._free.acquire_nowait()
        except anyio.WouldBlock:
            return
        job.has_place = True

    async def take(self, job: Job) -> None:
        await self._free.acquire()
        job.has_place = True

    def leave(self, job: Job) -> None:
        if job.has_place:
            job.has_place = False
            self._free.release()

    def lend(self, jobs: Iterable[Job]) -> None:
        for job in jobs:
            job.waits += 1
            self.leave(job)

    async def take_back(self, jobs: Iterable[Job]) -> None:
        """Take places for tools that stopped waiting for their calls. A tool continues without one only if its job is over."""
        waiting = list(jobs)
        for job in waiting:
            job.waits -= 1
        for job in waiting:
            if _lacks_place(job):
                await self._take_back(job)
            if job.is_ending:
                await anyio.lowlevel.checkpoint()  # raises the cancellation in a tool whose job is over

    async def _take_back(self, job: Job) -> None:
        with anyio.CancelScope(shield=True) as scope:
            job.taking_back.add(scope)
            await self._free.acquire()
            if _lacks_place(job):
                job.has_place = True
            else:  # another task of the tool took a place or began to wait again
                self._free.release()
        job.taking_back.discard(scope)


def _lacks_place(job: Job) -> bool:
    return job.needs_place and not (job.has_place or job.waits or job.is_ending)
