"""Wakes open pages when a session in this process does something. Those of other processes are only seen in their journals."""

from __future__ import annotations

import asyncio
from collections.abc import Generator
from contextlib import contextmanager, suppress

import anyio

from overspill.record.events import Entry


class Bell:
    """For one open page, on the event loop that serves it."""

    def __init__(self, session: str) -> None:
        self._session = session
        self._loop = asyncio.get_running_loop()
        self._rung = asyncio.Event()

    def ring(self, session: str) -> None:
        """From any thread."""
        if self._session in ("", session):
            with suppress(RuntimeError):  # the loop has ended
                self._loop.call_soon_threadsafe(self._rung.set)

    async def wait(self, seconds: float) -> None:
        """Until it rings, also if it has rung since the last wait, or so long."""
        with anyio.move_on_after(seconds):
            await self._rung.wait()
        self._rung.clear()


class Bells:
    def __init__(self) -> None:
        self._hung: set[Bell] = set()

    def observe(self, session: str, event: Entry) -> None:
        """An observer of a session."""
        for bell in tuple(self._hung):
            bell.ring(session)

    @contextmanager
    def hang(self, session: str) -> Generator[Bell]:
        """For the pages of one session, or of all if it is empty."""
        bell = Bell(session)
        self._hung.add(bell)
        try:
            yield bell
        finally:
            self._hung.discard(bell)
