"""One request of a client: who asked, in which version, and how to send messages back."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from contextlib import nullcontext
from typing import Any, TypeAlias

import mcp_types
from mcp.server.connection import Connection
from mcp.server.context import ServerRequestContext
from mcp.shared.dispatcher import DispatchContext
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from overspill.calls.job import Job
from overspill.mcp.client.connection import Raw, as_mapping
from overspill.mcp.client.results import format_progress
from overspill.mcp.proxy.tasks import drop_from_request
from overspill.text.lenient_json import clean_value

Context: TypeAlias = "ServerRequestContext[Any, Any]"
Ask: TypeAlias = Callable[[str, Raw], Awaitable[Raw]]


class ClientRequest:
    def __init__(self, ctx: Context) -> None:
        self.id = ctx.request_id
        self.method = ctx.method
        self.params: Raw = drop_from_request(ctx.method, dict(ctx.params or {}))
        self.version = ctx.protocol_version
        self.meta: Raw = as_mapping(self.params.get("_meta"))
        self.is_answered = False
        """The client has its answer, so nothing more can be sent for this request."""
        self.ask_later: Ask | None = None
        """Set for a client that can be asked only between two of its calls."""
        self.job: Job | None = None
        # The typed session would drop fields that its models do not know. Its two channels carry anything.
        self._channel: DispatchContext[Any] = ctx.session._request_outbound  # pyright: ignore[reportPrivateUsage]
        self.http_request: Any = ctx.request
        """The HTTP request it came in, if any."""
        self.connection: Connection = ctx.session._connection  # pyright: ignore[reportPrivateUsage]

    @property
    def is_modern(self) -> bool:
        return self.version in MODERN_PROTOCOL_VERSIONS

    @property
    def log_level(self) -> str | None:
        return self.meta.get(mcp_types.LOG_LEVEL_META_KEY)

    @property
    def can_ask(self) -> bool:
        return not self.is_answered and (self.ask_later is not None or not self.is_modern)

    def continue_as(self, later: ClientRequest) -> None:
        """Send everything with the client's later request for the same call from now on."""
        self.meta, self._channel = later.meta, later._channel

    async def notify(self, method: str, params: Mapping[str, Any] | None) -> None:
        await self._channel.notify(method, self.make_sendable(params))

    async def progress(self, params: Raw) -> None:
        """Pass progress on under the client's own token."""
        if "progressToken" in self.meta:
            await self.notify("notifications/progress", {**params, "progressToken": self.meta["progressToken"]})
        if self.job is not None:
            self.job.progress = format_progress(params)

    async def ask(self, method: str, params: Raw) -> Raw:
        """Pass a server's request on to the client. A person may have to answer, so the call's clocks stop."""
        with self.job.pause_clocks() if self.job else nullcontext():
            if self.ask_later is not None:
                return await self.ask_later(method, params)
            channel = self._channel if self._channel.can_send_request else self.connection.outbound
            return await channel.send_raw_request(method, self.make_sendable(params))

    def make_sendable(self, value: Any) -> Any:
        """Remove lone surrogates where the SDK cannot write them: for the older protocol over HTTP."""
        return value if self.is_modern or self.http_request is None else clean_value(value)


class ClientChannel:
    """Sends a client messages that belong to none of its requests."""

    def __init__(self, request: ClientRequest) -> None:
        self._make_sendable = request.make_sendable
        self._outbound = request.connection.outbound

    async def notify(self, method: str, params: Raw) -> None:
        await self._outbound.notify(method, self._make_sendable(params) or None)

    async def ask(self, method: str, params: Raw) -> Raw:
        return await self._outbound.send_raw_request(method, self._make_sendable(params))
