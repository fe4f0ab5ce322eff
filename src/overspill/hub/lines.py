"""The messages of a front's client, as the SDK serves them. Each line is taken before anything acts on it."""

from __future__ import annotations

import os
from contextlib import AbstractAsyncContextManager, suppress
from typing import Any

import anyio
import mcp_types
from mcp.shared.message import SessionMessage
from mcp.shared.subscriptions import SUBSCRIPTION_ID_META_KEY

from overspill.hub import frames
from overspill.hub.first_answers import LISTEN, Asked
from overspill.hub.process import Front
from overspill.mcp.client.connection import as_mapping
from overspill.mcp.client.framing import encode
from overspill.mcp.proxy.stdio import Line, OutgoingStream, Streams, message_streams
from overspill.mcp.proxy.subscriptions import CHANGES
from overspill.text.lenient_json import dumps

_STATE_METHODS = (
    "initialize", "logging/setLevel", "notifications/initialized", "resources/subscribe", "resources/unsubscribe",
)  # fmt: skip
"""Messages that stay in force until the client leaves, so they are repeated to another hub."""


class PostedStream(OutgoingStream):
    """Lines that each sender sends itself: a task in between would have to wake up for every one."""

    async def send(self, item: SessionMessage) -> None:
        if self._is_closed:
            raise anyio.ClosedResourceError
        with suppress(OSError):  # the front is gone, which ends the input too
            await self._write(self._encode(item.message))

    async def write_all(self) -> None:
        await super().write_all()
        await self._write(b"")  # senders that were cancelled have not waited


class FrontLines:
    """The messages of one client. `requests` are the ids of requests that have no answer yet, other than subscriptions."""

    def __init__(self, front: Front) -> None:
        self._link, self._first, self._pid = front.link, front.first, front.pid
        self._asked: dict[bytes, Asked] = {}
        self._replayed = 0  # lines that another hub has answered
        self._unanswered_replay: object = None
        self._heard = anyio.Event()
        self.requests: set[bytes] = set()
        self._subscribed: dict[str, Any] = {}
        """The last acknowledged subscription of a client of the newer protocol."""
        self._is_draining = False

    def open(self) -> AbstractAsyncContextManager[Streams]:
        return message_streams(self._receive, PostedStream(self._link.write, self._encode), self._take)

    def drain(self) -> None:
        """Take no more lines. They are left for the next hub."""
        self._is_draining = True

    async def _receive(self) -> bytes:
        try:
            while (frame := await self._link.receive()) is not None and frame[0] != frames.END:
                kind, payload = frame
                self._replayed += payload.count(b"\n") if kind == frames.REPLAY else 0
                if kind in (frames.DATA, frames.REPLAY) and payload:
                    return payload
        except ValueError as problem:
            os.write(2, f"overspill: process {self._pid} is not listened to any more: it sent {problem}\n".encode())
        return b""

    async def _take(self, line: Line) -> None:
        while self._unanswered_replay is not None:  # later lines may depend on the repeated request
            await self._heard.wait()
        if self._is_draining:
            await anyio.sleep_forever()
        message: Any = line.message if isinstance(line, SessionMessage) else None
        is_request = isinstance(message, mcp_types.JSONRPCRequest)
        id = dumps(message.id) if is_request else b""
        if is_request and (asked := self._first.find_asked(message.method, message.params)):
            self._asked[id] = asked
        if self._replayed:
            self._replayed -= 1
            self._unanswered_replay = message.id if is_request and message.method != LISTEN else None
            return
        if is_request and message.method != LISTEN:  # a subscription ends with its client, so no hub waits for its answer
            self.requests.add(id)
        is_state = getattr(message, "method", "") in _STATE_METHODS
        flags = (frames.IS_REQUEST if is_request else 0) | (frames.IS_STATE if is_state else 0)
        if not self._link.confirm(flags, id):
            await self._link.wait_sent()  # what the front does not know was taken, it sends again if the hub dies

    def _encode(self, message: mcp_types.JSONRPCMessage) -> bytes:
        line = encode(message)
        if not isinstance(message, mcp_types.JSONRPCResponse | mcp_types.JSONRPCError):
            return frames.pack(frames.LINES, (b"" if self._is_known(message) else line) + self._tell())
        id = dumps(message.id)
        asked = self._asked.pop(id, None)
        change = self._first.note(asked, id, message.result) if asked and isinstance(message, mcp_types.JSONRPCResponse) else b""
        if message.id is not None and message.id == self._unanswered_replay:
            self._unanswered_replay = None
            heard, self._heard = self._heard, anyio.Event()
            heard.set()
            change += self._tell()
            return frames.pack(frames.LINES, change) if change else b""
        self.requests.discard(id)
        return frames.pack_answer(id, line)

    def _is_known(self, message: mcp_types.JSONRPCRequest | mcp_types.JSONRPCNotification) -> bool:
        """Note that a subscription has begun. Returns whether the client knows that already."""
        if message.method != "notifications/subscriptions/acknowledged":
            return False
        self._subscribed = dict(as_mapping(message.params))
        id = dumps(as_mapping(self._subscribed.get("_meta")).get(SUBSCRIPTION_ID_META_KEY))
        asked = self._asked.get(id)
        return asked is not None and self._first.note_acknowledged(asked, id, self._subscribed)

    def _tell(self) -> bytes:
        """Return the notices for a client that has subscribed to changes: which lists differ from its first ones."""
        accepted, about = as_mapping(self._subscribed.get("notifications")), {"_meta": self._subscribed.get("_meta")}
        kinds = [kind for kind in sorted(self._first.changed) if accepted.get(CHANGES[kind][1])]
        self._first.changed.difference_update(kinds)
        notices = [mcp_types.JSONRPCNotification(jsonrpc="2.0", method=CHANGES[kind][0], params=about) for kind in kinds]
        return b"".join(map(encode, notices))
