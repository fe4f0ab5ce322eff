"""A server's requests that have no answer yet. One that asks without end is refused, so that it cannot fill the memory."""

from __future__ import annotations

from collections import deque
from contextlib import suppress
from typing import Any

import anyio
import mcp_types
from anyio.abc import ObjectSendStream
from mcp.shared.message import SessionMessage

from overspill.mcp.client.sdk_log import drop_records
from overspill.text.lenient_json import dumps

MAX_REQUESTS = 1_000
MAX_BYTES = 16 * 1024 * 1024  # of all together, except that a single one may be larger
_TOO_MANY = mcp_types.ErrorData(
    code=mcp_types.INTERNAL_ERROR, message="Too many of your requests have no answer yet. Wait for some before you send more."
)


class UnansweredRequests:
    def __init__(self) -> None:
        self._sizes: dict[object, deque[int]] = {}
        """By id. A server may use an id twice."""
        self._count = self._bytes = 0

    def add(self, request: mcp_types.JSONRPCRequest) -> bool:
        """Whether there was room for one more."""
        size = len(dumps(request.params or {}))
        if self._count >= MAX_REQUESTS or (self._count and self._bytes + size > MAX_BYTES):
            return False
        self._sizes.setdefault(request.id, deque()).append(size)
        self._count += 1
        self._bytes += size
        return True

    def remove(self, id: object) -> None:
        sizes = self._sizes.get(id)
        if sizes is None:
            return
        self._bytes -= sizes.popleft()
        self._count -= 1
        if not sizes:
            del self._sizes[id]


class AnswerStream(ObjectSendStream[SessionMessage]):
    """What we send to a server. An answer makes room once it is sent, or never will be."""

    def __init__(self, stream: Any, unanswered: UnansweredRequests) -> None:
        self._stream = stream
        self._unanswered = unanswered

    async def send(self, item: SessionMessage) -> None:
        try:
            with drop_records():
                await self._stream.send(item)
        finally:
            if isinstance(item.message, mcp_types.JSONRPCResponse | mcp_types.JSONRPCError):
                self._unanswered.remove(item.message.id)

    async def admit(self, item: SessionMessage | Exception) -> bool:
        """Whether there is room for what the server has sent. A request that there is none for is refused.

        Waits until the server reads that, and so does all else that the server has sent since.
        """
        request = item.message if isinstance(item, SessionMessage) else None
        if not isinstance(request, mcp_types.JSONRPCRequest) or self._unanswered.add(request):
            return True
        with suppress(anyio.ClosedResourceError, anyio.BrokenResourceError):
            refusal = mcp_types.JSONRPCError(jsonrpc="2.0", id=request.id, error=_TOO_MANY)
            with drop_records():
                await self._stream.send(SessionMessage(refusal))
        return False

    async def aclose(self) -> None:
        await self._stream.aclose()
