"""Serving over HTTP, to those who know a token, under names that are ours."""

from __future__ import annotations

import socket
import ssl
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, contextmanager
from ipaddress import ip_address
from typing import Any

import anyio
import uvicorn
from mcp.server.streamable_http_manager import StreamableHTTPASGIApp, StreamableHTTPSessionManager
from msgspec import Struct
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.routing import Route

from overspill.errors import SettingsError
from overspill.mcp.client import ClientIdentity
from overspill.mcp.proxy.client_request import ClientRequest
from overspill.mcp.proxy.guard import MAX_BODY_BYTES, Guard
from overspill.mcp.proxy.http_connections import ACCEPT_BATCH, HttpConnection
from overspill.mcp.proxy.serve import build_protocol_server
from overspill.mcp.proxy.served_client import ServedClient
from overspill.mcp.proxy.served_clients import ClientKey, ServedClients

PATH = "/mcp"
_MAX_QUEUED = 1024
_LOOPBACK_NAMES = ("127.0.0.1", "localhost", "[::1]")


class ListenOptions(Struct, frozen=True):
    """Where to listen, and for whom."""

    host: str
    port: int
    tokens: tuple[str, ...]
    hosts: tuple[str, ...] = ()
    """Names, or names with a port, besides the address itself by which clients may call us."""
    certificate: str | None = None
    key: str | None = None
    plain: bool = False
    """Without TLS beyond this machine, because the user said so."""

    def open_socket(self) -> socket.socket:
        """The place itself; SettingsError where it cannot be had, before anything else is started."""
        self._check()
        family = socket.AF_INET6 if ":" in self.host else socket.AF_INET
        try:
            listener = socket.create_server((self.host, self.port), family=family)
        except OSError as problem:
            why = str(problem.strerror).partition(" (while")[0]  # what follows is the address again
            raise SettingsError(f"{self.host}:{self.port} cannot be listened on: {why}.") from None
        # Inherited by every connection: without it an answer of two parts waits 40 ms for the client's acknowledgement.
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return listener

    def address(self, listener: socket.socket) -> str:
        scheme = "https" if self.certificate else "http"
        return f"{scheme}://{_bracket(self.host)}:{listener.getsockname()[1]}{PATH}"

    def _check(self) -> None:
        if not self.tokens or not all(self.tokens):
            raise SettingsError("A proxy over HTTP needs a token that is not empty.")
        if not is_loopback(self.host) and not self.certificate and not self.plain:
            raise SettingsError(
                f"{self.host} can be reached from other machines, and without TLS everyone on the way reads along. "
                "Give --tls-cert and --tls-key, or --insecure where something else encrypts."
            )
        if self.certificate:
            try:
                ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(self.certificate, self.key)
            except (OSError, ssl.SSLError) as problem:
                raise SettingsError(f"{self.certificate} cannot be used for TLS with its key: {problem.strerror}.") from None

    @property
    def schemes(self) -> tuple[str, ...]:
        """What pages of our own are served by. Where we do not encrypt, something in front of us may."""
        return ("https",) if self.certificate else ("http", "https")

    def host_headers(self, port: int) -> frozenset[str]:
        """Everything that a client may call us, as the header `Host` has it."""
        own = (_bracket(self.host), *(_LOOPBACK_NAMES if is_loopback(self.host) else ()))
        usual = 443 if self.certificate else 80
        names = [*self.hosts, *(own if port == usual else ()), *(f"{name}:{port}" for name in (*own, *self.hosts))]
        return frozenset(name.lower() for name in names)


def is_loopback(host: str) -> bool:
    try:
        return ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host == "localhost"


def build_application(clients: ServedClients, listen: ListenOptions, port: int) -> Starlette:
    async def find(request: ClientRequest, client: ClientIdentity) -> ServedClient:
        principal = request.http_request.scope["user"].access_token.client_id
        session = request.connection.session_id or ""
        owner = ClientKey(principal, session)
        if session and request.method == "initialize":
            request.connection.exit_stack.push_async_callback(clients.close, owner)
        return await clients.find(owner, client)

    manager = StreamableHTTPSessionManager(build_protocol_server(find), max_request_body_size=MAX_BODY_BYTES)

    @asynccontextmanager
    async def lifespan(_: Any) -> AsyncGenerator[None]:
        async with manager.run():
            yield

    hosts = listen.host_headers(port)
    guard = Middleware(
        Guard,
        tokens=listen.tokens,
        hosts=hosts,
        origins={f"{scheme}://{host}" for host in hosts for scheme in listen.schemes},
        count_sessions=clients.count_sessions,
    )
    # Around the routes, so that whoever is refused learns nothing of them, not even where a slash is missing.
    return Starlette(routes=[Route(PATH, StreamableHTTPASGIApp(manager))], middleware=[guard], lifespan=lifespan)


class _WebServer(uvicorn.Server):
    @contextmanager
    def capture_signals(self) -> Generator[None]:
        """Signals are for the whole program, whose servers have to end too."""
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        for each in sockets or ():
            each.listen(_MAX_QUEUED)  # asyncio lets no more queue up than it accepts in a row

    async def serve_until(self, stop: anyio.Event, listener: socket.socket) -> None:
        async def end() -> None:
            await stop.wait()
            self.should_exit = True

        async with anyio.create_task_group() as group:
            group.start_soon(end)
            await self.serve(sockets=[listener])
            group.cancel_scope.cancel()


async def serve_http(clients: ServedClients, listen: ListenOptions, listener: socket.socket, stop: anyio.Event) -> None:
    """Serve until `stop` is set."""
    config = uvicorn.Config(
        build_application(clients, listen, listener.getsockname()[1]),
        http=HttpConnection,
        backlog=ACCEPT_BATCH,
        ws="none",
        proxy_headers=False,
        ssl_certfile=listen.certificate,
        ssl_keyfile=listen.key,
        log_level="error",  # what strangers send that is no request would fill the log
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=5,
    )
    await _WebServer(config).serve_until(stop, listener)


def _bracket(host: str) -> str:
    return f"[{host}]" if ":" in host and not host.startswith("[") else host
