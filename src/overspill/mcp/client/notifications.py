"""Deliver a server's notifications one by one, in the order in which they arrived. A slow reader slows the server down."""

from __future__ import annotations

from collections import deque
from collections.abc import Awaitable, Callable, Generator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, TypeAlias

import anyio
import mcp_types
from anyio.abc import ObjectReceiveStream
from mcp.shared.message import SessionMessage

from overspill.mcp.client.framing import Raw
from overspill.text.lenient_json import dumps

_MAX_WAITING_BYTES = 1024 * 1024  # of notifications that are read before the first of them is delivered
_OVERHEAD_BYTES = 300  # of each in memory, however little it says

Admit: TypeAlias = Callable[[SessionMessage | Exception], Awaitable[bool]]
Restore: TypeAlias = Callable[[SessionMessage | Exception], SessionMessage | Exception]
"""A message as the server sent it."""
Deliver: TypeAlias = Callable[[str, Raw], Awaitable[None]]

_delivering: ContextVar[Notifications | None] = ContextVar("delivering", default=None)


class Notifications:
    """What has arrived and is not delivered yet."""

    def __init__(self) -> None:
        self._queue: deque[tuple[str, Raw, int]] = deque()
        self._bytes = 0
        self._arrived_count = self._delivered_count = 0
        self._arrived = anyio.Event()
        self._room = anyio.Event()
        self._waiting: deque[tuple[int, anyio.Event]] = deque()
        """Who waits until how many are delivered, in ascending order."""
        self._questions = 0
        """Requests that the delivery of a notification makes. It ends only when they are answered."""
        self._ended = False
        self.has_failed = False
        """Whether one of them could not be delivered. The connection ends over it."""

    def put(self, method: str, params: Raw) -> None:
        size = len(method) + len(dumps(params)) + _OVERHEAD_BYTES
        self._queue.append((method, params, size))
        self._bytes += size
        self._arrived_count += 1
        self._arrived.set()

    async def relay(self, deliver: Deliver) -> None:
        _delivering.set(self)
        try:
            while True:
                while self._queue:
                    method, params, size = self._queue.popleft()
                    await deliver(method, params)
                    self._bytes -= size
                    self._delivered_count += 1
                    self._wake()
                self._arrived = anyio.Event()
                await self._arrived.wait()
        except Exception:
            self.has_failed = True
            raise
        finally:
            self._ended = True  # nothing more is delivered, so nothing may wait for it
            self._wake()

    async def wait_until_delivered(self) -> None:
        """Wait for those that have arrived so far."""
        # A request made while a notification is being delivered would wait for itself.
        if self._delivered_count < self._arrived_count and not self._ended and _delivering.get() is not self:
            delivered = anyio.Event()
            self._waiting.append((self._arrived_count, delivered))
            await delivered.wait()

    async def wait_for_room(self) -> None:
        """Wait until more may be read from the server, so that what a client does not read stays with the server."""
        while self._bytes > _MAX_WAITING_BYTES and not self._questions and not self._ended:
            self._room = anyio.Event()
            await self._room.wait()

    @contextmanager
    def asking(self) -> Generator[None]:
        """Around a request to the server: its answer has to be read even if there is no room."""
        inside = _delivering.get() is self
        self._questions += inside
        self._room.set()
        try:
            yield
        finally:
            self._questions -= inside

    def _wake(self) -> None:
        while self._waiting and (self._ended or self._waiting[0][0] <= self._delivered_count):
            self._waiting.popleft()[1].set()
        self._room.set()


class IncomingStream(ObjectReceiveStream[SessionMessage | Exception]):
    """Yields what the SDK has to see, as far as `admit` accepts it. It would start a task for each notification, in no certain
    order."""

    def __init__(self, stream: Any, notifications: Notifications, admit: Admit, restore: Restore = lambda item: item) -> None:
        self._stream = stream
        self._notifications = notifications
        self._admit = admit
        self._restore = restore
        self._batch: deque[SessionMessage | Exception] = deque()

    @property
    def last_context(self) -> Any:
        return getattr(self._stream, "last_context", None)

    async def receive(self) -> SessionMessage | Exception:
        while True:
            while self._batch:
                item = self._batch.popleft()
                if not self._take(item) and await self._admit(item):
                    return item
            await self._notifications.wait_for_room()
            received: SessionMessage | Exception | list[SessionMessage] = await self._stream.receive()
            self._batch.extend(map(self._restore, received if isinstance(received, list) else [received]))

    async def aclose(self) -> None:
        await self._stream.aclose()

    def _take(self, item: SessionMessage | Exception) -> bool:
        message = item.message if isinstance(item, SessionMessage) else None
        # The SDK cancels the server's own requests itself.
        if not isinstance(message, mcp_types.JSONRPCNotification) or message.method == "notifications/cancelled":
            return False
        self._notifications.put(message.method, dict(message.params or {}))
        return True
