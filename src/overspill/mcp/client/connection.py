"""One connection to one server, in a protocol version that both speak. It does not inspect the messages."""

from __future__ import annotations

import itertools
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any, TypeAlias, cast

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

from overspill.errors import Ended, LoginNeeded, ServerError, Unheard
from overspill.mcp.client.config import ServerConfig
from overspill.mcp.client.handshake import ClientIdentity, Handshake, Raw, add_identity, as_mapping, shake_hands
from overspill.mcp.client.http import RedactingTransport, open_transport
from overspill.mcp.client.login.keeper import Log
from overspill.mcp.client.peer import Peer
from overspill.mcp.client.process import ServerProcess, start_process
from overspill.mcp.client.streams import AnswerStream, IncomingStream, Notifications
from overspill.text.humanize import quote_line

Progress: TypeAlias = Callable[[Raw], Awaitable[None]]

_END_SECONDS = 1.0
_MAX_PAGES = 1000
_IDENTITY_KEYS = (
    mcp_types.PROTOCOL_VERSION_META_KEY,
    mcp_types.CLIENT_INFO_META_KEY,
    mcp_types.CLIENT_CAPABILITIES_META_KEY,
    mcp_types.LOG_LEVEL_META_KEY,
)


class ServerConnection:
    """Open while `open_connection` is entered. `ended` is set once the server is gone."""

    def __init__(
        self,
        config: ServerConfig,
        client: ClientIdentity,
        peer: Peer,
        streams: tuple[Any, Any],
        transport: ServerProcess | RedactingTransport,
    ) -> None:
        self.config = config
        self.handshake = Handshake("", {}, {}, None)
        self.ended = anyio.Event()
        self.param_headers: dict[str, Mapping[tuple[str, ...], str]] = {}
        """By tool, if it wants arguments repeated in HTTP headers: the path of each argument and the name of its header."""
        self.transport = transport
        self._client = client
        self._peer = peer
        self._notifications = Notifications()
        self._answers = AnswerStream(streams[1])
        incoming = IncomingStream(streams[0], self._notifications, self._answers.admit, transport.restore)
        self._dispatcher = JSONRPCDispatcher(incoming, self._answers)
        self._pending = self._listening = 0
        self._idle = anyio.Event()
        self.last_answer = anyio.current_time()
        self._tokens = itertools.count(1)
        self._progress: dict[str, Progress] = {}

    async def request(self, method: str, params: Mapping[str, Any] | None = None, *, progress: Progress | None = None) -> Raw:
        """Return the server's answer, after all notifications that arrived before it have been delivered.

        Raises MCPError if the server answers with an error, and ServerError if it does not answer.
        """
        data, token = dict(params or {}), f"overspill-{next(self._tokens)}"
        if progress is not None:
            self._progress[token] = progress
            data["_meta"] = {**as_mapping(data.get("_meta")), "progressToken": token}
        listens_only = method == "subscriptions/listen" and "resourceSubscriptions" not in as_mapping(data.get("notifications"))
        self._pending += 1
        self._listening += listens_only
        try:
            with self._notifications.asking():
                result = await self._dispatcher.send_raw_request(method, *self._add_identity(method, data))
            await self._notifications.wait_until_delivered()
            if self._notifications.has_failed:
                raise MCPError(mcp_types.CONNECTION_CLOSED, "Connection closed")
        except MCPError as error:
            if failure := await self._find_failure(error):
                if isinstance(failure, Unheard) and (failure.gone or self._pending == 1):
                    self.ended.set()
                raise failure from None
            await self._notifications.wait_until_delivered()
            raise
        finally:
            self._pending -= 1
            self._listening -= listens_only
            self.last_answer = anyio.current_time()
            self._idle.set()
            self._progress.pop(token, None)
        return result

    async def notify(self, method: str, params: Mapping[str, Any] | None = None) -> None:
        await self._dispatcher.notify(method, params, {"headers": {MCP_PROTOCOL_VERSION_HEADER: self.handshake.version}})

    @property
    def is_busy(self) -> bool:
        """Whether a request waits for its answer. Listening for changed lists does not count."""
        return self._pending > self._listening

    def learn_headers(self, tool: Mapping[str, Any]) -> None:
        """Note which arguments of a listed tool also go into HTTP headers."""
        schema = tool.get("inputSchema")
        if self.handshake.is_modern and self.config.url and find_invalid_x_mcp_header(schema) is None:
            self.param_headers[str(tool.get("name"))] = x_mcp_header_map(schema)

    async def run(self, *, task_status: anyio.abc.TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        try:
            await self._dispatcher.run(self._on_request, _ignore, task_status=task_status)
        finally:
            self.ended.set()

    def mark_lost(self) -> None:
        """Call this when the server seems to be gone. Pending requests still get their answer, or fail by themselves."""
        if not self._pending:
            self.ended.set()

    async def wait_until_idle(self) -> None:
        """Wait briefly until every pending request has its answer or its error."""
        with anyio.move_on_after(_END_SECONDS):
            while self._pending:
                self._idle = anyio.Event()
                await self._idle.wait()

    async def relay_notifications(self) -> None:
        await self._notifications.relay(self._deliver)

    async def shake_hands(self) -> None:
        """Start a session with the server. Call this before anything else. Raises ServerError if it fails."""
        self.handshake = await shake_hands(self._ask, self._client, self.config.name)
        if not self.handshake.is_modern:
            await self.notify("notifications/initialized")

    async def _ask(self, method: str, params: Raw, opts: CallOptions) -> Raw:
        try:
            return await self._dispatcher.send_raw_request(method, params, opts)
        except MCPError as error:
            failure = await self._find_failure(error)
            if failure is not None and (self.ended.is_set() or isinstance(failure, Unheard | LoginNeeded)):
                raise failure from None
            raise

    async def _find_failure(self, error: MCPError) -> ServerError | None:
        """Return the failure behind an error, or None if the error is the server's own answer."""
        if error.code == mcp_types.CONNECTION_CLOSED and error.message == "Connection closed":
            # If the server itself sent this very error, the connection stays up. If the SDK made it, the connection ends soon.
            with anyio.move_on_after(_END_SECONDS):
                await self.ended.wait()
            return Ended(self.transport.problem) if self.ended.is_set() else None
        return self.transport.find_failure(error)

    def _add_identity(self, method: str, params: Raw) -> tuple[Raw | None, CallOptions]:
        """Add the client's identity and version to a request, if this version of the protocol requires them."""
        version = self.handshake.version
        if not self.handshake.is_modern:
            if "_meta" in params:
                params["_meta"] = {key: value for key, value in as_mapping(params["_meta"]).items() if key not in _IDENTITY_KEYS}
            return params or None, {"headers": {MCP_PROTOCOL_VERSION_HEADER: version}}
        params = add_identity(params, self._client, version)
        headers = {MCP_PROTOCOL_VERSION_HEADER: version, MCP_METHOD_HEADER: method}
        name = params.get("taskId" if method.startswith("tasks/") else NAME_BEARING_METHODS.get(method, ""))
        if isinstance(name, str):
            headers[MCP_NAME_HEADER] = encode_header_value(name)
            if method == "tools/call":
                headers |= mcp_param_headers(self.param_headers.get(name, {}), as_mapping(params.get("arguments")))
        return params, {"headers": headers}

    async def _deliver(self, method: str, params: Raw) -> None:
        token = params.get("progressToken") if method == "notifications/progress" else None
        progress = self._progress.get(token) if isinstance(token, str) else None
        if progress is not None:
            await progress(params)
        elif method not in ("notifications/cancelled", "notifications/progress"):
            await self._peer.on_notification(self.config.name, method, params)

    async def _on_request(self, context: DispatchContext[Any], method: str, params: Mapping[str, Any] | None) -> Raw:
        try:
            return await self._peer.on_request(self.config.name, method, dict(params or {}))
        finally:
            if context.cancel_requested.is_set():  # then the SDK sends no answer
                self._answers.forget(context.request_id)


def describe_error(group: BaseExceptionGroup[Any], name: str) -> str:
    error: BaseException = group
    while isinstance(error, BaseExceptionGroup):
        error = cast("BaseExceptionGroup[BaseException]", error).exceptions[0]
    if isinstance(error, ServerError):
        return str(error)
    if isinstance(error, MCPError):
        return f"The server {name} refused a request right after the handshake: {quote_line(error.message)}."
    # Not the text of the error, which may hold what the server sent.
    return f"The connection to the server {name} was lost ({type(error).__name__})."


async def list_pages(ask: Callable[[str, Raw], Awaitable[Raw]], method: str, key: str, name: str) -> list[Raw]:
    """Fetch all pages of a list of the server `name`, without checking the entries. Raises ServerError if the list has no end."""
    found, cursors, params = list[Raw](), set[str](), dict[str, Any]()
    for _ in range(_MAX_PAGES):
        page = await ask(method, params)
        found.append(page)
        cursor = page.get("nextCursor")
        if not isinstance(cursor, str) or cursor in cursors:
            return found
        cursors.add(cursor)
        params = {"cursor": cursor}
    raise ServerError(f"The server {name} lists its {key} on more than {_MAX_PAGES:,} pages. The list seems to have no end.")


async def _ignore(*_: object) -> None:
    """Do nothing: `IncomingStream` has taken every notification but cancellations, which the SDK handles."""


@asynccontextmanager
async def open_connection(
    config: ServerConfig, environ: Mapping[str, str], client: ClientIdentity, peer: Peer, log: Log = lambda _: None
) -> AsyncGenerator[ServerConnection]:
    """Start or dial the server, without a handshake. Raises ServerError if that fails. A server process gets `environ`."""
    opened = start_process(config, {**environ, **config.env}) if config.command else open_transport(config, environ, log)
    async with opened as (transport, streams), anyio.create_task_group() as group:
        connection = ServerConnection(config, client, peer, streams, transport)
        if isinstance(transport, RedactingTransport):
            transport.on_lost = connection.mark_lost
        await group.start(connection.run)
        group.start_soon(connection.relay_notifications)
        try:
            yield connection
        finally:
            group.cancel_scope.cancel()
