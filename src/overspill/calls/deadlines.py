"""One timer for the deadlines of many calls: most calls end long before their deadline."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from contextvars import Context
from typing import TypeAlias

import anyio

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
            self._ring(time.monotonic())

    def _ring(self, now: float) -> None:
        due = [(at, key, ring) for key, (at, ring) in self._alarms.items() if at <= now]
        for _, key, ring in sorted(due, key=lambda alarm: alarm[0]):
            if key not in self._alarms:  # an earlier one removed it
                continue
            again = ring()
            if again is None:
                self._alarms.pop(key, None)
            else:
                self._alarms[key] = (now + again, ring)
