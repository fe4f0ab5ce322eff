"""One client's connection to one server, in a protocol version that both speak. It does not inspect the messages."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from typing import Any, TypeAlias, cast

import anyio
import mcp_types
from mcp.shared.dispatcher import CallOptions
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

from overspill.errors import Ended, LoginNeeded, ServerError, Unheard
from overspill.mcp.client.handshake import ClientIdentity, Handshake, Raw, add_identity, as_mapping, discover, shake_hands
from overspill.mcp.client.http import open_transport
from overspill.mcp.client.peer import ServerAccess
from overspill.mcp.client.process import start_process
from overspill.mcp.client.running import Progress, RunningServer
from overspill.text.humanize import quote_line

Connect: TypeAlias = Callable[[ServerAccess], AbstractAsyncContextManager["ServerConnection"]]
"""Opens a connection, with the handshake."""

_END_SECONDS = 1.0
_MAX_PAGES = 1000
_IDENTITY_KEYS = (
    mcp_types.PROTOCOL_VERSION_META_KEY,
    mcp_types.CLIENT_INFO_META_KEY,
    mcp_types.CLIENT_CAPABILITIES_META_KEY,
    mcp_types.LOG_LEVEL_META_KEY,
)


class ServerConnection:
    """Open while `use` is entered. `ended` is set once the server is gone."""

    def __init__(self, running: RunningServer, access: ServerAccess) -> None:
        self.config = access.config
        self.handshake = Handshake("", {}, {}, None)
        self.ended, self.transport = running.ended, running.transport
        self.param_headers: dict[str, Mapping[tuple[str, ...], str]] = {}
        """By tool, if it wants arguments repeated in HTTP headers: the path of each argument and the name of its header."""
        self._client = access.client
        self._running = running
        self._user = running.join(access.peer)
        self.notifications = self._user.notifications
        self._listening = 0
        self._scopes: set[anyio.CancelScope] = set()
        """Of requests to listen."""
        self._idle = anyio.Event()
        self.last_answer = anyio.current_time()
        self.level = ""
        """The log level that a server of the older protocol was last asked for; empty: none."""

    async def request(self, method: str, params: Mapping[str, Any] | None = None, *, progress: Progress | None = None) -> Raw:
        """Return the server's answer, after all notifications that arrived before it have been delivered.

        Raises MCPError if the server answers with an error, and ServerError if it does not answer.
        """
        user, data, token = self._user, dict(params or {}), self._running.new_token()
        if progress is not None:
            user.progress[token] = progress
            data["_meta"] = {**as_mapping(data.get("_meta")), "progressToken": token}
        listens = method == "subscriptions/listen"
        listens_only = listens and "resourceSubscriptions" not in as_mapping(data.get("notifications"))
        data, options = self._add_identity(method, data)
        if listens:
            options["request_id"] = token
            user.streams.add(token)
        logs = self._admit_level(data)
        user.pending += 1
        self._listening += listens_only
        try:
            with self.notifications.asking():
                result = await self._running.dispatcher.send_raw_request(method, data, options)
            await self.notifications.wait_until_delivered()
            if self.notifications.has_failed:
                raise MCPError(mcp_types.CONNECTION_CLOSED, "Connection closed")
        except MCPError as error:
            if failure := await self._find_failure(error):
                if isinstance(failure, Unheard) and (failure.gone or self._running.pending == 1):
                    self.ended.set()
                raise failure from None
            await self.notifications.wait_until_delivered()
            raise
        except anyio.get_cancelled_exc_class():
            user.logging += logs  # the server may still send messages
            raise
        finally:
            user.pending -= 1
            user.logging -= logs
            self._listening -= listens_only
            self.last_answer = anyio.current_time()
            self._idle.set()
            user.progress.pop(token, None)
            user.streams.discard(token)
        return result

    async def listen(self, wanted: Raw, scope: anyio.CancelScope) -> None:
        """Listen in this scope while the connection is open. A server may not support it."""
        with scope, suppress(MCPError, ServerError):
            self._scopes.add(scope)
            try:
                await self.request("subscriptions/listen", {"notifications": wanted})
            finally:
                self._scopes.discard(scope)

    async def subscribe(self, uri: str, *, on: bool) -> Raw:
        """Subscribe or unsubscribe in the older protocol, where all users of the server have one set of subscriptions."""
        (self._user.uris.add if on else self._user.uris.discard)(uri)
        if not on and any(uri in user.uris for user in self._running.users):
            return {}
        return await self.request("resources/subscribe" if on else "resources/unsubscribe", {"uri": uri})

    async def leave(self) -> None:
        """End what the client listens to. Other users keep the server."""
        for scope in [*self._scopes]:
            scope.cancel()
        with anyio.move_on_after(_END_SECONDS, shield=True), suppress(MCPError, ServerError):
            if len(self._running.users) > 1:
                for uri in [*self._user.uris]:
                    await self.subscribe(uri, on=False)
        self._running.leave(self._user)

    async def notify(self, method: str, params: Mapping[str, Any] | None = None) -> None:
        await self._running.dispatcher.notify(method, params, {"headers": {MCP_PROTOCOL_VERSION_HEADER: self.handshake.version}})

    @property
    def is_busy(self) -> bool:
        """Whether a request waits for its answer. Listening for changed lists does not count."""
        return self._user.pending > self._listening

    def learn_headers(self, tool: Mapping[str, Any]) -> None:
        """Note which arguments of a listed tool also go into HTTP headers."""
        schema = tool.get("inputSchema")
        if self.handshake.is_modern and self.config.url and find_invalid_x_mcp_header(schema) is None:
            self.param_headers[str(tool.get("name"))] = x_mcp_header_map(schema)

    async def wait_until_idle(self) -> None:
        """Wait briefly until every pending request has its answer or its error."""
        with anyio.move_on_after(_END_SECONDS):
            while self._user.pending:
                self._idle = anyio.Event()
                await self._idle.wait()

    async def shake_hands(self, client: ClientIdentity | None = None) -> None:
        """Start a session with the server. Call this before anything else. Raises ServerError if it fails."""
        self.handshake = await shake_hands(self._ask, client or self._client, self.config.name)
        if not self.handshake.is_modern:
            await self.notify("notifications/initialized")

    async def discover(self) -> None:
        """The same for a server without sessions that others use already."""
        try:
            self.handshake = await discover(self._ask, self._client, self.config.name)
        except MCPError as refusal:
            why = quote_line(refusal.message).rstrip(".")
            raise ServerError(f"The server {self.config.name} refused to describe itself: {why}.") from None

    async def _ask(self, method: str, params: Raw, opts: CallOptions) -> Raw:
        try:
            return await self._running.dispatcher.send_raw_request(method, params, opts)
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

    def _admit_level(self, data: Raw | None) -> bool:
        """Return whether the server may send log messages for a request, and drop the wish for them if it may not."""
        meta = as_mapping((data or {}).get("_meta"))
        if mcp_types.LOG_LEVEL_META_KEY not in meta:
            return False
        if self._running.may_log(self._user):
            self._user.logging += 1
            return True
        del meta[mcp_types.LOG_LEVEL_META_KEY]
        return False

    async def deliver(self, method: str, params: Raw) -> None:
        token = params.get("progressToken") if method == "notifications/progress" else None
        progress = self._user.progress.get(token) if isinstance(token, str) else None
        if progress is not None:
            await progress(params)
        elif method not in ("notifications/cancelled", "notifications/progress"):
            await self._user.peer.on_notification(self.config.name, method, params)


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


@asynccontextmanager
async def open_server(access: ServerAccess) -> AsyncGenerator[RunningServer]:
    """Start or dial the server. Raises ServerError if that fails."""
    config = access.config
    opened = start_process(config, {**access.environ, **config.env}) if config.command else open_transport(access)
    async with opened as (transport, streams), anyio.create_task_group() as group:
        running = RunningServer(config.name, transport, streams, access.log)
        await group.start(running.run)
        yield running
        group.cancel_scope.cancel()


@asynccontextmanager
async def use(running: RunningServer, access: ServerAccess) -> AsyncGenerator[ServerConnection]:
    connection = ServerConnection(running, access)
    async with anyio.create_task_group() as group:
        group.start_soon(connection.notifications.relay, connection.deliver)
        try:
            yield connection
        finally:
            await connection.leave()
            group.cancel_scope.cancel()


@asynccontextmanager
async def connect_alone(access: ServerAccess) -> AsyncGenerator[ServerConnection]:
    async with open_server(access) as running, use(running, access) as connection:
        await connection.shake_hands()
        yield connection
