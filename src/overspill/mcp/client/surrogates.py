"""Lone surrogates, which the SDK cannot read: hidden in the bytes before it, restored in the messages after it."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable
from contextlib import aclosing
from typing import Any
from uuid import uuid4

import httpx2
import mcp_types
from mcp.shared.message import SessionMessage

from overspill.text.lenient_json import loads
from overspill.text.regex import Match, regex

_SUSPECT = regex(rb"\\u[dD][89a-fA-F]")
# Match every escape as a whole: after an escaped backslash, `u` is only a letter.
_ESCAPE = regex(rb"(?s)\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|u([dD][89a-fA-F][0-9a-fA-F]{2})|.)")


class Surrogates:
    """For one connection. The mark that replaces a surrogate is random, so no server can send it."""

    def __init__(self) -> None:
        self._seal = uuid4().hex
        self._any = False

    def hide(self, data: bytes) -> bytes:
        """Replace them in whole lines of JSON."""
        return _ESCAPE.sub(self._hide_escape, data) if _SUSPECT.search(data) else data

    def restore(self, item: SessionMessage | Exception) -> SessionMessage | Exception:
        if self._any and isinstance(item, SessionMessage):
            message = item.message
            if isinstance(message, mcp_types.JSONRPCResponse):
                message.result = self._restore_value(message.result)
            elif isinstance(message, mcp_types.JSONRPCError):
                error = message.error
                error.message, error.data = self._restore_value([error.message, error.data])
            elif message.params is not None:
                message.params = self._restore_value(message.params)
        return item

    def _hide_escape(self, escape: Match[bytes]) -> bytes:
        if escape[1] is None:
            return escape[0]
        self._any = True
        return self._seal.encode() + escape[1]

    def _restore_value(self, value: Any) -> Any:
        spelled = json.dumps(value)
        return loads(spelled.replace(self._seal, "\\u")) if self._seal in spelled else value


class RewritingStream(httpx2.AsyncByteStream):
    """Rewrites a stream of events, in whole lines. A line that is too long passes, and the SDK refuses it."""

    def __init__(self, response: httpx2.Response, rewrite: Callable[[bytes], bytes], limit: int) -> None:
        self._response = response
        self._rewrite = rewrite
        self._limit = limit

    async def __aiter__(self) -> AsyncIterator[bytes]:
        held, size = list[bytes](), 0
        async with aclosing(self._response.aiter_bytes()) as chunks:
            async for chunk in chunks:
                end = max(chunk.rfind(b"\n"), chunk.rfind(b"\r")) + 1
                if end or size > self._limit:
                    yield self._rewrite(b"".join((*held, chunk[:end])))
                    held, size = [], 0
                held.append(chunk[end:])
                size += len(chunk) - end
        yield b"".join(held)

    async def aclose(self) -> None:
        await self._response.aclose()
