"""One connection to one server, in the protocol version that both speak. What passes over it is not looked into."""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from importlib import metadata
from typing import Any, Protocol, TypeAlias, cast

import anyio
import mcp_types
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.dispatcher import CallOptions, DispatchContext
from mcp.shared.exceptions import MCPError
from mcp.shared.inbound import (
    MCP_METHOD_HEADER,
    MCP_NAME_HEADER,
    MCP_PROTOCOL_VERSION_HEADER,
    NAME_BEARING_METHODS,
    encode_header_value,
    mcp_param_headers,
    x_mcp_header_map,
)
from mcp.shared.jsonrpc_dispatcher import JSONRPCDispatcher
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS, LATEST_HANDSHAKE_VERSION, MODERN_PROTOCOL_VERSIONS
from msgspec import Struct, field

from overspill.errors import ServerError
from overspill.mcp_client.config import ServerConfig
from overspill.mcp_client.http import http_client
from overspill.mcp_client.process import Running, running

Raw: TypeAlias = "dict[str, Any]"
Progress: TypeAlias = Callable[[Raw], Awaitable[None]]

_PROBE = 10.0  # seconds an old server may take to refuse the new way of greeting
_ENVELOPE = (
    mcp_types.PROTOCOL_VERSION_META_KEY,
    mcp_types.CLIENT_INFO_META_KEY,
    mcp_types.CLIENT_CAPABILITIES_META_KEY,
    mcp_types.LOG_LEVEL_META_KEY,
)


def mapping(value: object) -> Raw:
    """A value off the wire that has to be an object; whatever else it is says nothing."""
    return cast("Raw", value) if isinstance(value, dict) else {}


class Client(Struct, frozen=True):
    """Who speaks to the server: name, version and abilities, as the server is told. `modern`: which way to greet it first."""

    info: Raw = field(default_factory=lambda: {"name": "overspill", "version": metadata.version("overspill")})
    capabilities: Raw = {}
    modern: bool = False


class Peer(Protocol):
    """Whoever hears what a server says by itself."""

    async def requested(self, server: str, method: str, params: Raw) -> Raw:
        """Answer it, or raise MCPError."""
        ...

    async def notified(self, server: str, method: str, params: Raw) -> None: ...


class Greeting(Struct, frozen=True):
    """What the server said of itself."""

    version: str
    capabilities: Raw
    info: Raw
    instructions: str | None

    @property
    def modern(self) -> bool:
        return self.version in MODERN_PROTOCOL_VERSIONS


class Link:
    """Open while `connected` is entered. `ended` is set when the server has gone."""

    def __init__(
        self, config: ServerConfig, client: Client, peer: Peer, dispatcher: JSONRPCDispatcher, process: Running | None
    ) -> None:
        self.config = config
        self.greeting = Greeting("", {}, {}, None)
        self.ended = anyio.Event()
        self.param_headers: dict[str, Mapping[tuple[str, ...], str]] = {}
        """Of tools that want arguments mirrored in headers, where."""
        self._client = client
        self._peer = peer
        self._dispatcher = dispatcher
        self._process = process
        self._tokens = itertools.count(1)
        self._progress: dict[str, Progress] = {}
        self._news: deque[tuple[str, Raw]] = deque()
        self._arrived = anyio.Event()
        self._told = anyio.Condition()
        self._heard = self._relayed = 0

    @property
    def problem(self) -> str:
        return self._process.problem if self._process else f"The connection to the server {self.config.name} was lost."

    async def request(self, method: str, params: Mapping[str, Any] | None = None, *, progress: Progress | None = None) -> Raw:
        """MCPError is the server's own answer; ServerError where there is none. Notifications that came before the answer have
        been handed on before it is returned."""
        data: Raw = dict(params or {})
        token = None
        if progress is not None:
            token = f"overspill-{next(self._tokens)}"
            self._progress[token] = progress
            data["_meta"] = {**data.get("_meta", {}), "progressToken": token}
        try:
            result = await self._dispatcher.send_raw_request(method, *self._stamped(method, data))
            await self._hear_out()
        except MCPError as error:
            if error.code == mcp_types.CONNECTION_CLOSED and error.message == "Connection closed":
                raise ServerError(self.problem) from None
            await self._hear_out()
            raise
        finally:
            if token is not None:
                self._progress.pop(token, None)
        return result

    async def notify(self, method: str, params: Mapping[str, Any] | None = None) -> None:
        await self._dispatcher.notify(method, params, {"headers": {MCP_PROTOCOL_VERSION_HEADER: self.greeting.version}})

    def learn(self, tool: Mapping[str, Any]) -> None:
        """Of a tool in a list: which of its arguments go into headers too."""
        if self.greeting.modern and self.config.url and (headers := x_mcp_header_map(tool.get("inputSchema"))):
            self.param_headers[str(tool.get("name"))] = headers

    async def run(self, *, task_status: anyio.abc.TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        try:
            await self._dispatcher.run(self._on_request, _ignored, self._intercept, task_status=task_status)
        finally:
            self.ended.set()

    async def relay(self) -> None:
        """Hands notifications on one by one, in the order they came."""
        while True:
            while self._news:
                method, params = self._news.popleft()
                try:
                    await self._hand_on(method, params)
                finally:
                    async with self._told:
                        self._relayed += 1
                        self._told.notify_all()
            self._arrived = anyio.Event()
            if not self._news:
                await self._arrived.wait()

    async def greet(self) -> None:
        first, second = (self._discover, self._initialize) if self._client.modern else (self._initialize, self._discover)
        try:
            self.greeting = await first()
        except MCPError as refusal:
            try:
                self.greeting = await second()
            except MCPError as again:
                raise ServerError(
                    f"The server {self.config.name} refused to start a session: {refusal.message}; {again.message}."
                ) from None

    async def _discover(self) -> Greeting:
        version = MODERN_PROTOCOL_VERSIONS[-1]
        params = self._enveloped({}, version)
        headers = {MCP_PROTOCOL_VERSION_HEADER: version, MCP_METHOD_HEADER: "server/discover"}
        opts: CallOptions = {"timeout": _PROBE, "cancel_on_abandon": False, "headers": headers}
        found = await self._ask("server/discover", params, opts)
        mutual = [each for each in MODERN_PROTOCOL_VERSIONS if each in found.get("supportedVersions", ())]
        if not mutual:
            raise MCPError(mcp_types.UNSUPPORTED_PROTOCOL_VERSION, "no version of the stateless protocol in common")
        info = found.get("_meta", {}).get(mcp_types.SERVER_INFO_META_KEY) or {"name": self.config.name, "version": ""}
        return Greeting(mutual[-1], found.get("capabilities", {}), info, found.get("instructions"))

    async def _initialize(self) -> Greeting:
        params = {
            "protocolVersion": LATEST_HANDSHAKE_VERSION,
            "capabilities": self._client.capabilities,
            "clientInfo": self._client.info,
        }
        found = await self._ask("initialize", params, {"cancel_on_abandon": False})
        version = found.get("protocolVersion")
        if version not in HANDSHAKE_PROTOCOL_VERSIONS:
            raise MCPError(mcp_types.UNSUPPORTED_PROTOCOL_VERSION, f"it speaks version {version!r}, which is not known here")
        opts: CallOptions = {"headers": {MCP_PROTOCOL_VERSION_HEADER: version}}
        await self._dispatcher.notify("notifications/initialized", None, opts)
        info = found.get("serverInfo") or {"name": self.config.name, "version": ""}
        return Greeting(version, found.get("capabilities", {}), info, found.get("instructions"))

    async def _ask(self, method: str, params: Raw, opts: CallOptions) -> Raw:
        try:
            return await self._dispatcher.send_raw_request(method, params, opts)
        except MCPError as error:
            if error.code == mcp_types.CONNECTION_CLOSED and error.message == "Connection closed":
                raise ServerError(self.problem) from None
            raise

    def _stamped(self, method: str, params: Raw) -> tuple[Raw | None, CallOptions]:
        """Each version has its own place for who asks and in which version."""
        version = self.greeting.version
        if not self.greeting.modern:
            if "_meta" in params:
                params["_meta"] = {key: value for key, value in params["_meta"].items() if key not in _ENVELOPE}
            return params or None, {"headers": {MCP_PROTOCOL_VERSION_HEADER: version}}
        params = self._enveloped(params, version)
        headers = {MCP_PROTOCOL_VERSION_HEADER: version, MCP_METHOD_HEADER: method}
        name = params.get(NAME_BEARING_METHODS.get(method, ""))
        if isinstance(name, str):
            headers[MCP_NAME_HEADER] = encode_header_value(name)
            if method == "tools/call" and name in self.param_headers:
                headers |= mcp_param_headers(self.param_headers[name], params.get("arguments") or {})
        return params, {"headers": headers}

    def _enveloped(self, params: Raw, version: str) -> Raw:
        known = {
            mcp_types.CLIENT_INFO_META_KEY: self._client.info,
            mcp_types.CLIENT_CAPABILITIES_META_KEY: self._client.capabilities,
        }
        return {**params, "_meta": {**known, **params.get("_meta", {}), mcp_types.PROTOCOL_VERSION_META_KEY: version}}

    def _intercept(self, method: str, params: Mapping[str, Any] | None) -> bool:
        self._news.append((method, dict(params or {})))
        self._heard += 1
        self._arrived.set()
        return True

    async def _hand_on(self, method: str, params: Raw) -> None:
        progress = self._progress.get(params.get("progressToken", "")) if method == "notifications/progress" else None
        if progress is not None:
            await progress(params)
        elif method not in ("notifications/cancelled", "notifications/progress"):
            await self._peer.notified(self.config.name, method, params)

    async def _hear_out(self) -> None:
        heard = self._heard
        if self._relayed < heard:
            async with self._told:
                while self._relayed < heard and not self.ended.is_set():
                    await self._told.wait()

    async def _on_request(self, _: DispatchContext[Any], method: str, params: Mapping[str, Any] | None) -> Raw:
        return await self._peer.requested(self.config.name, method, dict(params or {}))


async def _ignored(*_: object) -> None:
    """Every notification was intercepted already."""


@asynccontextmanager
async def connected(config: ServerConfig, environ: Mapping[str, str], client: Client, peer: Peer) -> AsyncGenerator[Link]:
    """ServerError where it cannot be. `environ` is what a server that is started gets."""
    async with AsyncExitStack() as stack:
        process: Running | None = None
        if config.command:
            process, streams = await stack.enter_async_context(running(config, {**environ, **config.env}))
        else:
            client_ = await stack.enter_async_context(http_client(config))
            streams = await stack.enter_async_context(streamable_http_client(config.url, http_client=client_))
        link = Link(config, client, peer, JSONRPCDispatcher(*streams), process)
        async with anyio.create_task_group() as group:
            await group.start(link.run)
            group.start_soon(link.relay)
            try:
                await link.greet()
                yield link
            finally:
                group.cancel_scope.cancel()
