"""One connection to one server, in the protocol version that both speak. What passes over it is not looked into."""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from contextvars import ContextVar
from typing import Any, Protocol, TypeAlias, cast

import anyio
import mcp_types
from mcp.shared.dispatcher import CallOptions, DispatchContext
from mcp.shared.exceptions import MCPError
from mcp.shared.inbound import (
    MCP_METHOD_HEADER,
    MCP_NAME_HEADER,
    MCP_PROTOCOL_VERSION_HEADER,
    NAME_BEARING_METHODS,
    encode_header_value,
    find_invalid_x_mcp_header,
    mcp_param_headers,
    x_mcp_header_map,
)
from mcp.shared.jsonrpc_dispatcher import JSONRPCDispatcher

from overspill.errors import Ended, ServerError, Unheard
from overspill.mcp.client.config import ServerConfig
from overspill.mcp.client.handshake import ClientIdentity, Handshake, Raw, add_identity, as_mapping, shake_hands
from overspill.mcp.client.http import RedactingTransport, open_transport
from overspill.mcp.client.process import ServerProcess, start_process
from overspill.text.humanize import quote_line

__all__ = ["ClientIdentity", "Handshake", "Peer", "Progress", "Raw", "ServerConnection", "as_mapping", "connect", "list_pages"]

Progress: TypeAlias = Callable[[Raw], Awaitable[None]]

_END = 1.0
_PAGES = 1000
_ENVELOPE = (
    mcp_types.PROTOCOL_VERSION_META_KEY,
    mcp_types.CLIENT_INFO_META_KEY,
    mcp_types.CLIENT_CAPABILITIES_META_KEY,
    mcp_types.LOG_LEVEL_META_KEY,
)
_relayed_by: ContextVar[ServerConnection | None] = ContextVar("relayed_by", default=None)


class Peer(Protocol):
    """Whoever hears what a server says by itself."""

    async def on_request(self, server: str, method: str, params: Raw) -> Raw:
        """Answer it, or raise MCPError."""
        ...

    async def on_notification(self, server: str, method: str, params: Raw) -> None: ...


class ServerConnection:
    """Open while `connected` is entered. `ended` is set when the server has gone."""

    def __init__(
        self,
        config: ServerConfig,
        client: ClientIdentity,
        peer: Peer,
        dispatcher: JSONRPCDispatcher,
        transport: ServerProcess | RedactingTransport,
    ) -> None:
        self.config = config
        self.handshake = Handshake("", {}, {}, None)
        self.ended = anyio.Event()
        self.param_headers: dict[str, Mapping[tuple[str, ...], str]] = {}
        """Of tools that want arguments mirrored in headers, where."""
        self._client = client
        self._peer = peer
        self._dispatcher = dispatcher
        self._transport = transport
        self._asking = 0
        self._quiet = anyio.Event()
        self._tokens = itertools.count(1)
        self._progress: dict[str, Progress] = {}
        self._news: deque[tuple[str, Raw]] = deque()
        self._arrived = anyio.Event()
        self._told = anyio.Event()
        self._heard = self._relayed = 0

    @property
    def problem(self) -> str:
        return self._transport.problem

    @property
    def garbage(self) -> int:
        """Lines that a server which was started has written and that are no messages."""
        return self._transport.garbage if isinstance(self._transport, ServerProcess) else 0

    async def request(self, method: str, params: Mapping[str, Any] | None = None, *, progress: Progress | None = None) -> Raw:
        """MCPError is the server's own answer; ServerError where there is none. Notifications that came before the answer have
        been handed on before it is returned."""
        data: Raw = dict(params or {})
        token = None
        if progress is not None:
            token = f"overspill-{next(self._tokens)}"
            self._progress[token] = progress
            data["_meta"] = {**as_mapping(data.get("_meta")), "progressToken": token}
        self._asking += 1
        try:
            result = await self._dispatcher.send_raw_request(method, *self._add_identity(method, data))
            await self._wait_for_notifications()
        except MCPError as error:
            if failure := await self._find_failure(error):
                if isinstance(failure, Unheard) and (failure.gone or self._asking == 1):
                    self.ended.set()
                raise failure from None
            await self._wait_for_notifications()
            raise
        finally:
            self._asking -= 1
            self._quiet.set()
            if token is not None:
                self._progress.pop(token, None)
        return result

    async def notify(self, method: str, params: Mapping[str, Any] | None = None) -> None:
        await self._dispatcher.notify(method, params, {"headers": {MCP_PROTOCOL_VERSION_HEADER: self.handshake.version}})

    def learn_headers(self, tool: Mapping[str, Any]) -> None:
        """Of a tool in a list: which of its arguments go into headers too."""
        schema = tool.get("inputSchema")
        if self.handshake.is_modern and self.config.url and find_invalid_x_mcp_header(schema) is None:
            self.param_headers[str(tool.get("name"))] = x_mcp_header_map(schema)

    async def run(self, *, task_status: anyio.abc.TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        try:
            await self._dispatcher.run(self._on_request, _ignore, self._intercept, task_status=task_status)
        finally:
            self.ended.set()

    def mark_lost(self) -> None:
        """The server seems to be gone. Those who wait for an answer will learn it by themselves, or yet get one."""
        if not self._asking:
            self.ended.set()

    async def wait_until_idle(self) -> None:
        """Until those who still wait have their answer or their error, a moment at most."""
        with anyio.move_on_after(_END):
            while self._asking:
                self._quiet = anyio.Event()
                await self._quiet.wait()

    async def relay_notifications(self) -> None:
        """Hands notifications on one by one, in the order they came."""
        _relayed_by.set(self)
        try:
            while True:
                while self._news:
                    await self._deliver(*self._news.popleft())
                    self._relayed += 1
                    self._announce_delivery()
                self._arrived = anyio.Event()
                await self._arrived.wait()
        finally:
            self._relayed = self._heard + 1  # nothing is handed on any more, so nobody shall wait for it
            self._announce_delivery()

    async def shake_hands(self) -> None:
        self.handshake = await shake_hands(self._ask, self._client, self.config.name)
        if not self.handshake.is_modern:
            await self.notify("notifications/initialized")

    async def _ask(self, method: str, params: Raw, opts: CallOptions) -> Raw:
        try:
            return await self._dispatcher.send_raw_request(method, params, opts)
        except MCPError as error:
            failure = await self._find_failure(error)
            if failure is not None and (self.ended.is_set() or isinstance(failure, Unheard)):
                raise failure from None
            raise

    async def _find_failure(self, error: MCPError) -> ServerError | None:
        """None when the error is the server's own."""
        if error.code == mcp_types.CONNECTION_CLOSED and error.message == "Connection closed":
            # A server may send this very error itself, and then the connection stays up. Otherwise it is about to end.
            with anyio.move_on_after(_END):
                await self.ended.wait()
            return Ended(self.problem) if self.ended.is_set() else None
        if not isinstance(self._transport, RedactingTransport):
            return None
        if failure := self._transport.find_failure(error):
            return failure
        if error.code == mcp_types.CONNECTION_CLOSED and error.message.startswith("SSE stream"):
            return ServerError(f"The server {self.config.name} broke off its answer: {quote_line(error.message)}.")
        if error.code == mcp_types.PARSE_ERROR and error.message.startswith("Failed to parse"):
            return ServerError(f"The server {self.config.name} answered with something that is no message of the protocol.")
        return None

    def _add_identity(self, method: str, params: Raw) -> tuple[Raw | None, CallOptions]:
        """Each version has its own place for who asks and in which version."""
        version = self.handshake.version
        if not self.handshake.is_modern:
            if "_meta" in params:
                params["_meta"] = {key: value for key, value in as_mapping(params["_meta"]).items() if key not in _ENVELOPE}
            return params or None, {"headers": {MCP_PROTOCOL_VERSION_HEADER: version}}
        params = add_identity(params, self._client, version)
        headers = {MCP_PROTOCOL_VERSION_HEADER: version, MCP_METHOD_HEADER: method}
        name = params.get(NAME_BEARING_METHODS.get(method, ""))
        if isinstance(name, str):
            headers[MCP_NAME_HEADER] = encode_header_value(name)
            if method == "tools/call":
                headers |= mcp_param_headers(self.param_headers.get(name, {}), as_mapping(params.get("arguments")))
        return params, {"headers": headers}

    def _intercept(self, method: str, params: Mapping[str, Any] | None) -> bool:
        self._news.append((method, dict(params or {})))
        self._heard += 1
        self._arrived.set()
        return True

    async def _deliver(self, method: str, params: Raw) -> None:
        token = params.get("progressToken") if method == "notifications/progress" else None
        progress = self._progress.get(token) if isinstance(token, str) else None
        if progress is not None:
            await progress(params)
        elif method not in ("notifications/cancelled", "notifications/progress"):
            await self._peer.on_notification(self.config.name, method, params)

    async def _wait_for_notifications(self) -> None:
        heard = self._heard
        # Whoever asks while a notification is handed to them would wait for themselves.
        while self._relayed < heard and _relayed_by.get() is not self:
            await self._told.wait()

    def _announce_delivery(self) -> None:
        told, self._told = self._told, anyio.Event()
        told.set()

    async def _on_request(self, _: DispatchContext[Any], method: str, params: Mapping[str, Any] | None) -> Raw:
        return await self._peer.on_request(self.config.name, method, dict(params or {}))


async def list_pages(ask: Callable[[str, Raw], Awaitable[Raw]], method: str, key: str, name: str) -> list[Raw]:
    """All pages of a list of the server of that name; ServerError where it has no end."""
    found: list[Raw] = []
    seen: set[str] = set()
    params: Raw = {}
    for _ in range(_PAGES):
        page = await ask(method, params)
        entries: Any = page.get(key)
        found += [entry for entry in cast("list[Any]", entries) if isinstance(entry, dict)] if isinstance(entries, list) else []
        cursor = page.get("nextCursor")
        if not isinstance(cursor, str) or cursor in seen:
            return found
        seen.add(cursor)
        params = {"cursor": cursor}
    raise ServerError(f"The server {name} gives its {key} in more than {_PAGES:,} pages. It seems to have no end.")


async def _ignore(*_: object) -> None:
    """Every notification was intercepted already."""


@asynccontextmanager
async def connect(
    config: ServerConfig, environ: Mapping[str, str], client: ClientIdentity, peer: Peer
) -> AsyncGenerator[ServerConnection]:
    """ServerError where it cannot be. `environ` is what a server that is started gets."""
    async with open_connection(config, environ, client, peer) as connection:
        await connection.shake_hands()
        yield connection


@asynccontextmanager
async def open_connection(
    config: ServerConfig, environ: Mapping[str, str], client: ClientIdentity, peer: Peer
) -> AsyncGenerator[ServerConnection]:
    """Started or dialled, and not yet greeted."""
    async with AsyncExitStack() as stack:
        if config.command:
            transport, streams = await stack.enter_async_context(start_process(config, {**environ, **config.env}))
        else:
            transport, streams = await stack.enter_async_context(open_transport(config))
        connection = ServerConnection(config, client, peer, JSONRPCDispatcher(streams[0], streams[1]), transport)
        if isinstance(transport, RedactingTransport):
            transport.on_lost = connection.mark_lost
        async with anyio.create_task_group() as group:
            await group.start(connection.run)
            group.start_soon(connection.relay_notifications)
            try:
                yield connection
            finally:
                group.cancel_scope.cancel()
