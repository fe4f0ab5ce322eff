"""Notify open pages of changes, by server-sent events. A page then requests itself again: no event has content.

A session in this process wakes open pages itself. Changes in other processes show only in their journals.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Generator
from contextlib import contextmanager, suppress

import anyio
import anyio.to_thread
from starlette.requests import Request
from starlette.responses import PlainTextResponse, StreamingResponse
from starlette.types import Receive, Scope, Send

from overspill.errors import OverspillError
from overspill.record.events import Entry
from overspill.view.library import Library

POLL_SECONDS = 0.5
"""How often to poll the journals of other processes. A pause is at least ten times as long as the last check took."""
_BACK_OFF = 10
_MAX_LISTENERS = 16
_ALIVE_SECONDS = 15


class Bell:
    """Wakes one open page, on the event loop that serves it."""

    def __init__(self, session: str) -> None:
        self.session = session
        self._loop = asyncio.get_running_loop()
        self._rung = asyncio.Event()

    def ring(self) -> None:
        """May be called from any thread."""
        with suppress(RuntimeError):  # the loop has ended
            self._loop.call_soon_threadsafe(self._rung.set)

    async def wait(self, seconds: float) -> None:
        """Wait until it rings, or has rung since the last wait, for at most `seconds`."""
        with anyio.move_on_after(seconds):
            await self._rung.wait()
        self._rung.clear()


class LivePages:
    """Serves the event streams of all open pages. Polls only while a page is open."""

    def __init__(self, library: Library, poll_seconds: float = POLL_SECONDS) -> None:
        self._bells: set[Bell] = set()
        self._library = library
        self._poll_seconds = poll_seconds
        self._listeners = 0

    def observe(self, session: str, event: Entry) -> None:
        for bell in tuple(self._bells):
            if bell.session in ("", session):
                bell.ring()

    @contextmanager
    def hang(self, session: str) -> Generator[Bell]:
        """Add a bell that rings for changes in one session, or in all sessions if `session` is empty."""
        bell = Bell(session)
        self._bells.add(bell)
        try:
            yield bell
        finally:
            self._bells.discard(bell)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a stream. It counts as open until it has ended for any reason."""
        if self._listeners >= _MAX_LISTENERS:
            refusal = PlainTextResponse("Too many pages are open for all of them to be kept up to date.", 503)
            await refusal(scope, receive, send)
            return
        request = Request(scope, receive)
        session = request.query_params.get("session", "")
        self._listeners += 1
        try:
            if session:
                await anyio.to_thread.run_sync(self._library.session, session)  # raises if it does not exist
            await StreamingResponse(self._tell(request, session), media_type="text/event-stream")(scope, receive, send)
        finally:
            self._listeners -= 1

    async def _tell(self, request: Request, session: str) -> AsyncIterator[str]:
        with self.hang(session) as bell:
            seen, told = await anyio.to_thread.run_sync(self._look, session), time.monotonic()
            yield ": watching\n\n"
            while not await request.is_disconnected():
                began = time.monotonic()
                found = await anyio.to_thread.run_sync(self._look, session)
                took = time.monotonic() - began
                if found != seen:
                    seen, told = found, time.monotonic()
                    yield "event: changed\ndata: \n\n"
                elif time.monotonic() - told > _ALIVE_SECONDS:
                    told = time.monotonic()
                    yield ": still here\n\n"  # a closed browser is noticed only when something is sent
                await anyio.sleep(_BACK_OFF * took)
                await bell.wait(self._poll_seconds - _BACK_OFF * took)

    def _look(self, session: str) -> object:
        """Return a value that changes whenever something is written."""
        try:
            records = [self._library.session(session)] if session else self._library.sessions()
        except OverspillError:  # the session has ended and was removed
            return None
        return [(record.session, record.label.live, record.events) for record in records]
