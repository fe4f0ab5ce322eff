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

from overspill.hub import frames

_READ_BYTES = 1 << 16
_MAX_ERROR_BYTES = 1 << 20  # that a front has not read
_MAX_CONFIRMATION_BYTES = 1024  # small enough to be sent as a whole or not at all

served_front: ContextVar[FrontLink | None] = ContextVar("overspill_front", default=None)


class FrontLink:
    """Posted frames are sent in order, immediately if the front reads. The event loop watches the connection all the time:
    beginning and ending that would take as long as a read."""

    def __init__(self, connection: socket.socket) -> None:
        connection.setblocking(False)
        self._connection = connection
        self._received, self._unsent = bytearray(), bytearray()
        self._arrived, self._sent = asyncio.Event(), asyncio.Event()
        self._sent.set()
        self._confirmations: socket.socket | None = None
        """Where a front that works on nothing else finds what was taken, without being woken up for it."""
        self._has_begun = self._is_watched = self._has_ended = self._is_gone = False
        self._loop, self._thread = asyncio.get_running_loop(), threading.get_ident()

    async def receive(self, limit: int = frames.MAX_FRAME_BYTES) -> tuple[bytes, bytes] | None:
        """Return the next frame; None if the front is gone, even within a frame. Raises ValueError for a frame over the limit."""
        while (frame := frames.unpack(self._received, limit)) is None and not self._has_ended:
            if not self._is_watched:
                self._is_watched = True
                self._loop.add_reader(self._connection, self._read)
            self._arrived.clear()
            await self._arrived.wait()
        return frame

    def put_back(self, data: bytes) -> None:
        """Put frames in front of those that wait to be received."""
        self._received[:0] = data

    def post(self, kind: bytes, payload: bytes = b"") -> None:
        self.post_frames(frames.pack(kind, payload))

    def confirm(self, flags: int, id: bytes = b"") -> bool:
        """Tell the front that a line was taken, before anything acts on it. Returns whether the front can read that already."""
        frame = frames.pack(frames.TAKEN, bytes([flags]) + id)
        if self._confirmations is not None:
            try:
                if len(frame) <= _MAX_CONFIRMATION_BYTES and self._confirmations.send(frame, socket.MSG_DONTWAIT):
                    return True
            except OSError:
                pass  # the front has left many unread or is gone, so this one goes over the connection
            self._confirmations.close()  # later ones must not overtake this one
            self._confirmations = None
        self.post_frames(frame)
        return self._sent.is_set()

    def post_frames(self, data: bytes) -> None:
        if self._is_gone:
            return
        is_waiting = bool(self._unsent)
        self._unsent += data
        if not is_waiting:
            self._push()

    def post_errors(self, data: bytes) -> None:
        """Post bytes for the front's standard error, from any thread. Drops them if the front has left too much unread."""
        if threading.get_ident() != self._thread:
            self._loop.call_soon_threadsafe(self.post_errors, data)
        elif len(self._unsent) < _MAX_ERROR_BYTES:
            self.post(frames.ERRORS, data)

    async def write(self, data: bytes) -> None:
        """Post frames, and wait until the front has all of them. Raises OSError once the front is gone."""
        self.post_frames(data)
        await self.wait_sent()
        if self._is_gone:
            raise BrokenPipeError

    async def wait_sent(self) -> None:
        """Wait until the front has all that was posted, or is gone."""
        await self._sent.wait()

    def close(self) -> None:
        if not self._is_gone:
            self._lose()
        self._loop.remove_reader(self._connection)
        self._connection.close()
        if self._confirmations is not None:
            self._confirmations.close()

    def _read(self) -> None:
        try:
            data = self._connection.recv(_READ_BYTES) if self._has_begun else self._receive_first()
        except BlockingIOError:
            return
        except OSError:
            data = b""
        self._received += data
        self._has_ended = not data
        if self._has_ended or len(self._received) >= _READ_BYTES:  # more is read when this has been received
            self._is_watched = False
            self._loop.remove_reader(self._connection)
        self._arrived.set()

    def _receive_first(self) -> bytes:
        data, given, *_ = socket.recv_fds(self._connection, _READ_BYTES, 1)
        self._has_begun = True
        for each in given:
            try:
                os.set_inheritable(each, False)
                self._confirmations = socket.socket(fileno=each)
            except OSError:  # it is not a socket
                os.close(each)
        return data

    def _push(self) -> None:
        try:
            del self._unsent[: self._connection.send(self._unsent)]
        except BlockingIOError:
            pass  # the front is slow to read, so the rest is sent once it can take more
        except OSError:
            self._lose()
        if self._unsent and self._sent.is_set():
            self._sent.clear()
            self._loop.add_writer(self._connection, self._push)
        elif not self._unsent and not self._sent.is_set():
            self._loop.remove_writer(self._connection)
            self._sent.set()

    def _lose(self) -> None:
        """Drop what the front has not taken. What it sent before it left is still received."""
        self._is_gone = True
        self._unsent.clear()
        self._loop.remove_writer(self._connection)
        self._sent.set()


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
