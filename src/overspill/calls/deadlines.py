"""Deadlines of many short calls with one timer, since most calls are over long before theirs would ring."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import TypeAlias

import anyio

from overspill.calls.tasks import TaskOwner

Ring: TypeAlias = Callable[[], float | None]
"""What to do when time is up. It says after how many seconds it shall ring again; None: it is over."""


class Deadlines:
    """Goes by the monotonic clock: whoever sets the system's time moves no deadline."""

    def __init__(self) -> None:
        self._alarms: dict[object, tuple[float, Ring]] = {}
        self._rings_at = math.inf
        self._earlier = anyio.Event()

    def start(self, owner: TaskOwner) -> None:
        owner.start(self._tick)

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
            if key not in self._alarms:  # one that rang before had this one forgotten
                continue
            again = ring()
            if again is None:
                self._alarms.pop(key, None)
            else:
                self._alarms[key] = (now + again, ring)
