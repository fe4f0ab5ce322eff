"""Limit connections without a request: how long they may last, and how many there may be.

uvicorn closes a connection that is idle between two requests, but waits forever for the first request, and for the rest of one
that has begun. A request that has arrived whole has all the time it needs: calls may take long, and streams stay open for hours.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from overspill.web.descriptors import max_files

LET_IN = "overspill.let_in"
"""A guard sets this in the scope of a request that it lets in. All others can be closed at any time."""
IS_STREAM = "overspill.is_stream"
"""And this, whether its answer lasts until one side hangs up."""
_MAX_WAITING = 256
_REQUEST_SECONDS = 20.0
_MIN_BYTES_PER_SECOND = 16 * 1024  # slower than any network on which people send megabytes


class HttpConnection(H11Protocol):
    _since = 0.0
    _received = 0
    _timer: asyncio.TimerHandle | None = None
    _was_let_in = False
    _is_hung_up = False

    @property
    def is_waiting(self) -> bool:
        """Whether no request that was let in is being handled, or its answer being sent to a client that is hung up on.

        With TLS, a connection that is closed stays open until the client agrees, which a stranger need not do.
        """
        is_handled = self.cycle and (not self.cycle.response_complete or self.transport.is_closing()) and LET_IN in self.scope
        return not is_handled and not self._is_hung_up

    @property
    def importance(self) -> tuple[bool, float]:
        """A real client sends its request immediately, so those that have waited longest count least."""
        return self._was_let_in, self._since

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
        self._was_let_in |= LET_IN in self.scope
        if not self._was_let_in and self.conn.trailing_data[0]:
            self.hang_up()  # a stranger who queues requests would keep us busy
        super().on_response_complete()
        self._update_timer(begins=True)
        self._make_room()

    def shutdown(self) -> None:
        if not self.transport.is_closing():  # with TLS, what is closed twice can no longer be aborted
            super().shutdown()

    def send_400_response(self, msg: str) -> None:
        """The rest of a request is invalid. It may have an answer already, and otherwise gets none but this."""
        if self.cycle:
            self.cycle.disconnected = True
            self.cycle.message_event.set()
        if self.conn.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            super().send_400_response(msg)
        else:
            self.transport.close()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_timer()
        super().connection_lost(exc)

    def hang_up(self) -> None:
        self._is_hung_up = True  # it is gone soon, and is not counted until then
        self.transport.abort()

    def _make_room(self) -> None:
        for each in find_waiting(self.connections)[: -max_waiting()]:
            each.hang_up()

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
            self.hang_up()


def max_waiting() -> int:
    return min(_MAX_WAITING, max_files() // 4)


def find_waiting(connections: Iterable[object]) -> list[HttpConnection]:
    """The least important ones first."""
    waiting = [each for each in connections if isinstance(each, HttpConnection) and each.is_waiting]
    return sorted(waiting, key=lambda each: each.importance)


def close_longest_waiting(connections: Iterable[object]) -> bool:
    """Whether there was one."""
    waiting = find_waiting(connections)
    for each in waiting[:1]:
        each.hang_up()
    return bool(waiting)
