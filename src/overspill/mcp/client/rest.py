"""Stops a server that has been idle for long, until it is needed again. Decides when, and whether it may."""

from __future__ import annotations

import math
from collections.abc import Callable

import anyio

from overspill.mcp.client.config import ServerConfig
from overspill.mcp.client.connection import ServerConnection
from overspill.mcp.client.handshake import Handshake

_IDLE_MINUTES = 5.0  # for a server whose protocol keeps no session


def find_idle_minutes(config: ServerConfig, handshake: Handshake) -> float:
    """Return how long a server may be idle; 0: forever, as for one with tasks, which would be lost when it stops."""
    if not config.command or "tasks" in handshake.capabilities:
        return 0
    usual = _IDLE_MINUTES if handshake.is_modern else 0
    return usual if config.idle_minutes is None else config.idle_minutes


class Rest:
    """When one server may be stopped. `is_needed`: whether it must keep running while it has no request to answer."""

    def __init__(self, is_needed: Callable[[], bool]) -> None:
        self._is_needed = is_needed
        self._uses = 0
        self._ended: anyio.Event | None = None

    @property
    def is_on(self) -> bool:
        return self._ended is not None

    def note_use(self) -> None:
        """Note that the server is needed now."""
        self._uses += 1
        if self._ended is not None:
            self._ended.set()
            self._ended = None

    async def begin_when_idle(self, connection: ServerConnection) -> anyio.Event | None:
        """Wait until it has been idle for long. The event is set when it is needed again; None if the connection has ended."""
        seconds = find_idle_minutes(connection.config, connection.handshake) * 60 or math.inf
        if math.isinf(seconds):
            await connection.ended.wait()
        began, uses = anyio.current_time(), self._uses
        while not connection.ended.is_set():
            if connection.is_busy or self._is_needed() or uses != self._uses:
                began, uses = anyio.current_time(), self._uses
            left = max(began, connection.last_answer) + seconds - anyio.current_time()
            if left <= 0:
                self._ended = anyio.Event()
                return self._ended
            with anyio.move_on_after(left):
                await connection.ended.wait()
        return None
