"""Limit connections without a request: how long they may last, and how many there may be.

uvicorn closes a connection that is idle between two requests, but waits forever for the first request, and for the rest of one
that has begun. A request that has arrived whole has all the time it needs: calls may take long, and streams stay open for hours.
"""

from __future__ import annotations

import asyncio

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

ACCEPT_BATCH = 64
"""So many are accepted before a request is read. Fewer than may wait, or a crowd of good clients would evict each other."""
_MAX_WAITING = 4 * ACCEPT_BATCH
_REQUEST_SECONDS = 20.0
_MIN_BYTES_PER_SECOND = 16 * 1024  # slower than any network on which people send megabytes


class HttpConnection(H11Protocol):
    _since = 0.0
    _received = 0
    _timer: asyncio.TimerHandle | None = None

    @property
    def is_waiting(self) -> bool:
        """Whether no request of it is being handled. A client without a token is answered before anything handles it."""
        return (not self.cycle or self.cycle.response_complete) and not self.transport.is_closing()

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._start_timer()
        self._make_room()

    def data_received(self, data: bytes) -> None:
        was_idle = self.conn.their_state is h11.IDLE
        self._received += len(data)
        super().data_received(data)
        self._update_timer(begins=not was_idle and self.conn.their_state is h11.IDLE)

    def on_response_complete(self) -> None:
        super().on_response_complete()
        self._update_timer(begins=True)
        self._make_room()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_timer()
        super().connection_lost(exc)

    def _make_room(self) -> None:
        waiting = [each for each in self.connections if isinstance(each, HttpConnection) and each.is_waiting]
        # A real client sends its request immediately, so close those that have waited longest.
        for each in sorted(waiting, key=lambda each: each._since)[:-_MAX_WAITING]:
            each.transport.abort()

    def _update_timer(self, *, begins: bool) -> None:
        if self.transport.is_closing() or self.conn.their_state not in (h11.IDLE, h11.SEND_BODY):
            self._stop_timer()
        elif begins or self._timer is None:
            self._start_timer()

    def _start_timer(self) -> None:
        self._stop_timer()
        self._since, self._received = self.loop.time(), 0
        self._timer = self.loop.call_later(_REQUEST_SECONDS, self._close_if_late)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _close_if_late(self) -> None:
        ends = self._since + _REQUEST_SECONDS + self._received / _MIN_BYTES_PER_SECOND
        if self.loop.time() < ends:
            self._timer = self.loop.call_at(ends, self._close_if_late)
        else:
            self.transport.abort()
