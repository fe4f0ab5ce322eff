"""Tell an open page that something changed, by server-sent events. The page then asks for itself again: no event has content."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator

import anyio
import anyio.to_thread
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response, StreamingResponse

from overspill.errors import OverspillError
from overspill.view.bells import Bell, Bells
from overspill.view.library import Library

POLL_SECONDS = 0.5
"""Sessions of other processes show only in their journals, so somebody has to look. The next look waits as long as ten of the
last took."""
_BACK_OFF = 10
_MAX_LISTENERS = 16
_ALIVE_SECONDS = 15


class LivePages:
    """One for all open pages. Looks only while a page is open."""

    def __init__(self, library: Library, poll_seconds: float = POLL_SECONDS) -> None:
        self.bells = Bells()
        self._library = library
        self._poll_seconds = poll_seconds
        self._listeners = 0

    async def listen(self, request: Request) -> Response:
        if self._listeners >= _MAX_LISTENERS:
            return PlainTextResponse("Too many pages are open for all of them to be kept up to date.", 503)
        session = request.query_params.get("session", "")
        if session:
            await anyio.to_thread.run_sync(self._library.session, session)  # raises if there is none
        return StreamingResponse(self._listen(request, session), media_type="text/event-stream")

    async def _listen(self, request: Request, session: str) -> AsyncIterator[str]:
        with self.bells.hang(session) as bell:
            async for said in self._tell(request, session, bell):
                yield said

    async def _tell(self, request: Request, session: str, bell: Bell) -> AsyncIterator[str]:
        self._listeners += 1
        try:
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
                    yield ": still here\n\n"  # a browser that is gone shows only when something is sent
                await anyio.sleep(_BACK_OFF * took)
                await bell.wait(self._poll_seconds - _BACK_OFF * took)
        finally:
            self._listeners -= 1

    def _look(self, session: str) -> object:
        """What differs as soon as something was written."""
        try:
            records = [self._library.session(session)] if session else self._library.sessions()
        except OverspillError:  # the session has ended and was removed
            return None
        return [(record.session, record.label.live, record.events) for record in records]
