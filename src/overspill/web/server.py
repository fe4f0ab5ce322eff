"""A web server that accepts connections itself, until told to stop."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Generator
from contextlib import contextmanager, suppress
from typing import cast

import anyio
import anyio.abc
import anyio.lowlevel
import uvicorn

from overspill.web.connections import (
    IS_STREAM,
    USED_UP,
    Descriptors,
    HttpConnection,
    close_longest_waiting,
    max_waiting,
)

_HANDSHAKE_SECONDS = 20.0
_LAST_SECONDS = 1.0  # for requests to end after their clients were hung up on
_PAUSE_SECONDS = 0.1  # until the next try, when a connection could not be accepted


class WebServer(uvicorn.Server):
    """asyncio would log a traceback for each connection that it has no descriptor for, and try dozens more at once."""

    def __init__(self, config: uvicorn.Config, listener: socket.socket, descriptors: Descriptors) -> None:
        super().__init__(config)
        self._listener = listener
        self._descriptors = descriptors
        self._opening: dict[socket.socket, anyio.CancelScope] = {}
        """With TLS, it may take long until a connection has one."""

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
        self._listener.close()
        async with anyio.create_task_group() as group:
            group.start_soon(self._hang_up)
            await super().shutdown(sockets)
            group.cancel_scope.cancel()

    async def _hang_up(self) -> None:
        """Streams never end by themselves. uvicorn would cancel what has not ended in time, and log a traceback for each."""
        connections = cast("set[HttpConnection]", self.server_state.connections)
        for each in list(connections):
            if each.cycle and each.scope.get(IS_STREAM):
                each.hang_up()
        await anyio.sleep(max(0, (self.config.timeout_graceful_shutdown or 0) - _LAST_SECONDS))
        for each in list(connections):
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
                await anyio.lowlevel.checkpoint()  # what was closed is gone, and what was opened is counted

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
                    ssl_handshake_timeout=_HANDSHAKE_SECONDS if secure else None,
                )
            finally:
                del self._opening[connection]
