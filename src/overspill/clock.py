"""Deadlines of many short calls with one timer, since most calls are over long before theirs would ring."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import TypeAlias

import anyio

from overspill.owner import Owner

Alarm: TypeAlias = tuple[float, float, Callable[[], bool]]
"""When; after how many seconds; and what to do then: it says whether it is over or shall ring again after the same time."""


class Clock:
    def __init__(self, owner: Owner) -> None:
        self._owner = owner
        self._alarms: dict[object, Alarm] = {}
        self._rings_at = math.inf
        self._earlier: anyio.Event | None = None

    @property
    def running(self) -> bool:
        return self._earlier is not None

    async def start(self) -> None:
        """Once, before the first alarm is set."""
        if self._earlier is None:
            self._earlier = anyio.Event()
            await self._owner.start(self._tick)

    def set(self, key: object, seconds: float, ring: Callable[[], bool]) -> None:
        assert self._earlier is not None
        at = time.monotonic() + seconds
        self._alarms[key] = (at, seconds, ring)
        if at < self._rings_at:
            self._rings_at = at
            self._earlier.set()

    def forget(self, key: object) -> None:
        self._alarms.pop(key, None)

    async def _tick(self) -> None:
        while True:
            self._earlier = anyio.Event()
            self._rings_at = min((at for at, _, _ in self._alarms.values()), default=math.inf)
            with anyio.move_on_after(self._rings_at - time.monotonic()):
                await self._earlier.wait()
            self._ring(time.monotonic())

    def _ring(self, now: float) -> None:
        for key, (at, seconds, ring) in list(self._alarms.items()):
            if at > now:
                continue
            if ring():
                self._alarms.pop(key, None)
            else:
                self._alarms[key] = (now + seconds, seconds, ring)
