"""The streams between a server and the SDK. What the server sends unprompted keeps its order and never fills the memory.

Notifications are delivered one by one, as they arrived: the SDK would start a task for each, in no certain order. A slow reader
slows the server down. If a server asks too much, its requests are refused.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Awaitable, Callable, Generator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from typing import Any, TypeAlias

import anyio
import mcp_types
from anyio.abc import ObjectReceiveStream, ObjectSendStream
from mcp.shared.message import SessionMessage

from overspill.mcp.client.framing import Raw
from overspill.text.lenient_json import dumps

MAX_REQUESTS = 1_000  # from the server that have no answer yet
MAX_BYTES = 16 * 1024 * 1024  # of all these requests together, although a single request may be larger
_MAX_WAITING_BYTES = 1024 * 1024  # of notifications that are not delivered yet
_OVERHEAD_BYTES = 300  # of each notification in memory, even if it is empty
_TOO_MANY = mcp_types.ErrorData(
    code=mcp_types.INTERNAL_ERROR, message="Too many of your requests have no answer yet. Wait for some before you send more."
)

Incoming: TypeAlias = SessionMessage | Exception

_NAMES = ("mcp.client.streamable_http", "mcp.client.auth.oauth2", "httpcore2.http11", "httpcore2.http2", "httpcore2.proxy")
_sdk_loggers = [logging.getLogger(name) for name in _NAMES]
_is_ours: ContextVar[bool] = ContextVar("overspill_connection", default=False)
_delivering: ContextVar[Notifications | None] = ContextVar("delivering", default=None)


def _belongs_to_others(record: logging.LogRecord) -> bool:
    return not _is_ours.get()


@contextmanager
def drop_records() -> Generator[None]:
    """Keep the SDK from logging what our connections carry: it logs whole messages and tokens, and at DEBUG all headers.

    Applies to what runs inside and to tasks started inside, because the SDK handles each message in the context of its sender.
    A program that also uses the SDK itself keeps its own log records.
    """
    for logger in _sdk_loggers:
        logger.addFilter(_belongs_to_others)  # `logging` adds the same function only once
    before = _is_ours.set(True)
    try:
        yield
    finally:
        _is_ours.reset(before)


class Notifications:
    """Notifications that have arrived but are not delivered yet."""

    def __init__(self) -> None:
        self._queue: deque[tuple[str, Raw, int] | anyio.Event] = deque()
        """Notifications, and events of callers that wait until everything before the event is delivered."""
        self._bytes = 0
        self._arrived = anyio.Event()
        self._room = anyio.Event()
        self._questions = 0
        """How many requests made by the delivery of a notification have no answer yet. It ends only after the answers."""
        self._ended = self._drops = False
        self.has_failed = False
        """Whether a notification could not be delivered, which ends the connection."""

    def drop_when_full(self) -> None:
        """Let nobody wait for room from now on."""
        self._drops = True
        self._room.set()

    def put(self, method: str, params: Raw) -> bool:
        """Return whether there was room. There always is, unless this drops what does not fit."""
        if self._drops and self._bytes > _MAX_WAITING_BYTES:
            return False
        size = len(method) + len(dumps(params)) + _OVERHEAD_BYTES
        self._queue.append((method, params, size))
        self._bytes += size
        self._arrived.set()
        return True

    async def relay(self, deliver: Callable[[str, Raw], Awaitable[None]]) -> None:
        _delivering.set(self)
        try:
            while True:
                while self._queue:
                    first = self._queue[0]  # stays until it is delivered
                    if isinstance(first, tuple):
                        await deliver(first[0], first[1])
                        self._bytes -= first[2]
                        self._room.set()
                    else:
                        first.set()
                    self._queue.popleft()
                self._arrived = anyio.Event()
                await self._arrived.wait()
        except Exception:
            self.has_failed = True
            raise
        finally:
            self._ended = True  # nothing more is delivered, so release everything that waits
            self._room.set()
            for each in self._queue:
                if not isinstance(each, tuple):
                    each.set()

    async def wait_until_delivered(self) -> None:
        """Wait until all notifications that have arrived so far are delivered."""
        # A request made while a notification is being delivered would wait for itself.
        if self._queue and not self._ended and _delivering.get() is not self:
            delivered = anyio.Event()
            self._queue.append(delivered)
            await delivered.wait()

    async def wait_for_room(self) -> None:
        """Wait until more may be read from the server. Messages that the client does not read stay with the server."""
        while self._bytes > _MAX_WAITING_BYTES and not (self._questions or self._ended or self._drops):
            self._room = anyio.Event()
            await self._room.wait()

    @contextmanager
    def asking(self) -> Generator[None]:
        """Use this around a request to the server: its answer must be read even when the buffer is full."""
        inside = _delivering.get() is self
        self._questions += inside
        self._room.set()
        try:
            yield
        finally:
            self._questions -= inside


class AnswerStream(ObjectSendStream[SessionMessage]):
    """What we send to a server. Once an answer is sent, or cannot be sent, there is room for another request of the server."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream
        self._unanswered: dict[object, deque[int]] = {}
        """The sizes of requests by id. A server may use an id twice."""
        self._count = self._bytes = 0

    async def send(self, item: SessionMessage) -> None:
        try:
            with drop_records():
                await self._stream.send(item)
        finally:
            if isinstance(item.message, mcp_types.JSONRPCResponse | mcp_types.JSONRPCError):
                self.forget(item.message.id)

    async def admit(self, item: Incoming) -> bool:
        """Return whether there is room for what the server has sent. Refuses a request that does not fit.

        Waits until the server reads the refusal. Everything the server has sent since waits as well.
        """
        request = item.message if isinstance(item, SessionMessage) else None
        if not isinstance(request, mcp_types.JSONRPCRequest):
            return True
        size = len(dumps(request.params or {}))
        if self._count < MAX_REQUESTS and (not self._count or self._bytes + size <= MAX_BYTES):
            self._unanswered.setdefault(request.id, deque()).append(size)
            self._count += 1
            self._bytes += size
            return True
        with suppress(anyio.ClosedResourceError, anyio.BrokenResourceError), drop_records():
            await self._stream.send(SessionMessage(mcp_types.JSONRPCError(jsonrpc="2.0", id=request.id, error=_TOO_MANY)))
        return False

    def forget(self, id: object) -> None:
        """Make room again: this request of the server no longer needs an answer."""
        if sizes := self._unanswered.get(id):
            self._bytes -= sizes.popleft()
            self._count -= 1
            if not sizes:
                del self._unanswered[id]

    async def aclose(self) -> None:
        await self._stream.aclose()


class IncomingStream(ObjectReceiveStream[Incoming]):
    """Yields the messages for the SDK that `admit` accepts. `restore` turns a message back into what the server sent."""

    def __init__(
        self,
        stream: Any,
        wait_for_room: Callable[[], Awaitable[None]],
        admit: Callable[[Incoming], Awaitable[bool]],
        restore: Callable[[Incoming], Incoming] = lambda item: item,
    ) -> None:
        self._stream = stream
        self._wait_for_room = wait_for_room
        self._admit = admit
        self._restore = restore
        self._batch: deque[Incoming] = deque()

    @property
    def last_context(self) -> Any:
        return getattr(self._stream, "last_context", None)

    async def receive(self) -> Incoming:
        while True:
            while self._batch:
                if await self._admit(item := self._batch.popleft()):
                    return item
            await self._wait_for_room()
            received: Incoming | list[SessionMessage] = await self._stream.receive()
            self._batch.extend(map(self._restore, received if isinstance(received, list) else [received]))

    async def aclose(self) -> None:
        await self._stream.aclose()
