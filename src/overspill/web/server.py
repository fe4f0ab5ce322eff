"""A web server that accepts connections itself and limits those without a request.

uvicorn closes a connection that is idle between two requests, but waits forever for the first request, and for the rest of one
that has begun. A request that has arrived whole has all the time it needs: calls may take long, and streams stay open for hours.
"""

from __future__ import annotations

import asyncio
import errno
import os
import resource
import socket
import sys
from collections.abc import Callable, Generator, Iterable
from contextlib import contextmanager, suppress
from typing import Any, cast

import anyio
import anyio.abc
import anyio.lowlevel
import h11
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from overspill.errors import SettingsError

LET_IN = "overspill.let_in"
"""A guard sets this in the scope of a request that it lets in. All others can be closed at any time."""
IS_STREAM = "overspill.is_stream"
"""And this, whether its answer lasts until one side hangs up."""
_REQUEST_SECONDS = 20.0
_MIN_BYTES_PER_SECOND = 16 * 1024  # slower than any network on which people send megabytes
USED_UP = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)
_LAST_SECONDS = 1.0  # for requests to end after their clients were disconnected
_PAUSE_SECONDS = 0.1  # until the next try, when a connection could not be accepted


class HttpConnection(H11Protocol):
    _since = 0.0
    _received = 0
    _timer: asyncio.TimerHandle | None = None
    _was_let_in = False
    _is_hung_up = False

    @property
    def is_waiting(self) -> bool:
        """Whether no admitted request is being handled, and no answer is being sent to a client that was hung up on.

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
        if not self.transport.is_closing():  # with TLS, a connection that is closed twice can no longer be aborted
            super().shutdown()

    def send_400_response(self, msg: str) -> None:
        """Called if the rest of a request is invalid. Answers only if the request has no answer yet."""
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
    return min(256, max_files() // 4)


def find_waiting(connections: Iterable[object]) -> list[HttpConnection]:
    """The least important ones first."""
    waiting = [each for each in connections if isinstance(each, HttpConnection) and each.is_waiting]
    return sorted(waiting, key=lambda each: each.importance)


def close_longest_waiting(connections: Iterable[object]) -> bool:
    """Returns whether one was waiting."""
    waiting = find_waiting(connections)
    for each in waiting[:1]:
        each.hang_up()
    return bool(waiting)


def max_files() -> int:
    """How many files the process may currently have open."""
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    return sys.maxsize if limit == resource.RLIM_INFINITY else limit


class Descriptors:
    """Whether the process can open more files and connections. Keeps some in reserve for clients that it already serves."""

    def __init__(self, log: Callable[[str], None]) -> None:
        self.are_short = False
        self._log = log

    def is_reserved(self, number: int) -> bool:
        """Whether a new file's number is so high that only the reserve is left. The system assigns the lowest free number."""
        if number >= max_files() - _reserve():
            self._note(short=True)
            return True
        return False

    def look(self) -> bool:
        """Count open files, and report when almost all are in use, and when that is over."""
        try:
            left = max_files() - len(os.listdir("/dev/fd"))
        except OSError as problem:
            left = 0 if problem.errno in USED_UP else max_files()
        self._note(short=left <= _reserve() * (2 if self.are_short else 1))
        return self.are_short

    def _note(self, *, short: bool) -> None:
        if short and not self.are_short:
            self._log(
                f"Overspill has almost all of the {max_files():,} files open that it may have. Until some are closed, it serves "
                "the clients it has and refuses new ones. To allow more, raise `ulimit -n` before you start it."
            )
        elif self.are_short and not short:
            self._log("Overspill can open enough files again, and lets new clients in.")
        self.are_short = short


def _reserve() -> int:
    return min(64, max_files() // 8)


class WebServer(uvicorn.Server):
    """asyncio would log a traceback for each connection that it has no descriptor for, and immediately try dozens more."""

    def __init__(self, app: Any, listener: socket.socket, descriptors: Descriptors | None = None, **options: Any) -> None:
        super().__init__(uvicorn.Config(app, ws="none", proxy_headers=False, access_log=False, **options))
        self._listener = listener
        self._descriptors = descriptors or Descriptors(lambda _: None)
        self._opening: dict[socket.socket, anyio.CancelScope] = {}  # connections being set up, which may take long with TLS

    @contextmanager
    def capture_signals(self) -> Generator[None]:
        """Leave signals to the program."""
        yield

    async def serve_until(self, stop: anyio.Event) -> None:
        async def end() -> None:
            await stop.wait()
            self.should_exit = True

        async with anyio.create_task_group() as group:
            group.start_soon(end)
            await self.serve(sockets=[])
            group.cancel_scope.cancel()

    async def main_loop(self) -> None:
        async with anyio.create_task_group() as group:
            group.start_soon(self._accept, group)
            await super().main_loop()
            group.cancel_scope.cancel()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Streams never end by themselves. uvicorn would cancel any that have not ended in time, and log a traceback for each."""
        self._listener.close()

        async def hang_up() -> None:
            self.hang_up(IS_STREAM, True)
            await anyio.sleep(max(0, (self.config.timeout_graceful_shutdown or 0) - _LAST_SECONDS))
            self.hang_up()

        async with anyio.create_task_group() as group:
            group.start_soon(hang_up)
            await super().shutdown(sockets)
            group.cancel_scope.cancel()

    def hang_up(self, key: str = "", value: object = None) -> None:
        """Hang up on all clients, or on those whose last request has this value in its scope."""
        for each in list(cast("set[HttpConnection]", self.server_state.connections)):
            if not key or (each.cycle and each.scope.get(key) == value):
                each.hang_up()

    async def on_tick(self, counter: int) -> bool:
        if self._descriptors.are_short and counter % 10 == 0:  # once a second
            self._descriptors.look()
        return await super().on_tick(counter)

    async def _accept(self, group: anyio.abc.TaskGroup) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except BlockingIOError:
                await anyio.wait_readable(self._listener)
            except ConnectionAbortedError:
                await anyio.lowlevel.checkpoint()
            except OSError as problem:
                if problem.errno in USED_UP:
                    self._descriptors.look()
                    close_longest_waiting(self.server_state.connections)
                await anyio.sleep(_PAUSE_SECONDS)
            else:
                is_reserved = self._descriptors.is_reserved(connection.fileno())
                if is_reserved and not close_longest_waiting(self.server_state.connections):
                    connection.close()
                else:
                    group.start_soon(self._open, connection)
                await anyio.lowlevel.checkpoint()  # closed connections are gone now, and new ones are counted

    async def _open(self, connection: socket.socket) -> None:
        connection.setblocking(False)
        secure = self.config.ssl
        with anyio.CancelScope() as scope, suppress(OSError):
            self._opening[connection] = scope
            if len(self._opening) > max_waiting():
                next(iter(self._opening.values())).cancel()
            try:
                loop = asyncio.get_running_loop()
                await loop.connect_accepted_socket(
                    lambda: HttpConnection(self.config, self.server_state, self.lifespan.state, loop),
                    connection,
                    ssl=secure,
                    ssl_handshake_timeout=20.0 if secure else None,
                )
            finally:
                del self._opening[connection]


def open_listener(host: str, port: int, advice: str = "") -> socket.socket:
    """Raises SettingsError, with the advice, if nothing can listen there."""
    try:
        listener = socket.create_server((host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET, backlog=1024)
    except OSError as problem:
        why = str(problem.strerror).partition(" (while")[0]  # the rest repeats the address
        raise SettingsError(f"Cannot listen on {host}:{port}: {why}.{advice}") from None
    # Every connection inherits it. Without it, an answer in two parts waits 40 ms for the client's acknowledgement.
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    listener.setblocking(False)
    return listener


def bracket(host: str) -> str:
    return f"[{host}]" if ":" in host and not host.startswith("[") else host
