"""The hub's end of the connection to a front. Routes standard error to the front that is being served."""

from __future__ import annotations

import asyncio
import io
import os
import socket
import sys
import threading
from contextlib import suppress
from contextvars import ContextVar

import anyio

from overspill.hub import frames

_READ_BYTES = 1 << 16
_MAX_ERROR_BYTES = 1 << 20  # that a front has not read

served_front: ContextVar[FrontLink | None] = ContextVar("overspill_front", default=None)


class FrontLink:
    """Run `flush` in a task. Posted frames are sent in order, immediately if the front reads."""

    def __init__(self, connection: socket.socket) -> None:
        connection.setblocking(False)
        self.connection = connection
        self._received, self._unsent = bytearray(), bytearray()
        self._changed = anyio.Event()
        self._is_gone = False
        self._loop, self._thread = asyncio.get_running_loop(), threading.get_ident()

    async def receive(self, limit: int = frames.MAX_FRAME_BYTES) -> tuple[bytes, bytes] | None:
        """Return the next frame; None if the front is gone, even within a frame. Raises ValueError for a frame over the limit."""
        while (frame := frames.unpack(self._received, limit)) is None:
            try:
                await anyio.wait_readable(self.connection)
                data = self.connection.recv(_READ_BYTES)
            except BlockingIOError:
                continue
            except OSError:
                data = b""
            if not data:
                return None
            self._received += data
        return frame

    def put_back(self, data: bytes) -> None:
        """Put frames in front of those that wait to be received."""
        self._received[:0] = data

    def post(self, kind: bytes, payload: bytes = b"") -> None:
        self.post_frames(frames.pack(kind, payload))

    def post_frames(self, data: bytes) -> None:
        if not self._is_gone:
            self._unsent += data
            self._push()
            if self._unsent:
                self._announce_change()

    def post_errors(self, data: bytes) -> None:
        """Post bytes for the front's standard error, from any thread. Drops them if the front has left too much unread."""
        if threading.get_ident() != self._thread:
            self._loop.call_soon_threadsafe(self.post_errors, data)
        elif len(self._unsent) < _MAX_ERROR_BYTES:
            self.post(frames.ERRORS, data)

    async def write(self, data: bytes) -> None:
        """Post frames, and wait until the front has all of them. Raises OSError once the front is gone."""
        self.post_frames(data)
        while self._unsent and not self._is_gone:
            await self._changed.wait()
        if self._is_gone:
            raise BrokenPipeError

    async def flush(self) -> None:
        while not self._is_gone:
            while not self._unsent:
                await self._changed.wait()
            try:
                await anyio.wait_writable(self.connection)
            except OSError:
                self._is_gone = True
            self._push()

    def close(self) -> None:
        self._is_gone = True
        self.connection.close()
        self._announce_change()

    def _push(self) -> None:
        try:
            while self._unsent and not self._is_gone:
                del self._unsent[: self.connection.send(self._unsent)]
        except BlockingIOError:
            return
        except OSError:
            self._is_gone = True
            self._unsent.clear()
        self._announce_change()

    def _announce_change(self) -> None:
        changed, self._changed = self._changed, anyio.Event()
        changed.set()


class RoutedErrors(io.RawIOBase):
    """Standard error of a hub: goes to the front that is being served, or else to the hub's own log."""

    def writable(self) -> bool:
        return True

    def fileno(self) -> int:
        return 2

    def write(self, data: object, /) -> int:
        piece = bytes(memoryview(data))  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
        front = served_front.get()
        if front is None:
            with suppress(OSError):  # its disk may be full
                os.write(2, piece)
        else:
            front.post_errors(piece)
        return len(piece)


def route_errors() -> None:
    sys.stderr = io.TextIOWrapper(
        io.BufferedWriter(RoutedErrors(), 1), encoding="utf-8", errors="backslashreplace", write_through=True
    )
