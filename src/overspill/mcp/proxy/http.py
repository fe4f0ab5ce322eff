"""Serve over HTTP, to clients that know a token and address the proxy by one of its names."""

from __future__ import annotations

import socket
import ssl
import time
from collections.abc import Awaitable, Callable
from functools import partial

import anyio
from mcp.server.streamable_http_manager import StreamableHTTPASGIApp, StreamableHTTPSessionManager
from msgspec import Struct
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.responses import PlainTextResponse
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from overspill.errors import SettingsError
from overspill.mcp.client.connection import ClientIdentity
from overspill.mcp.proxy.client_request import ClientRequest
from overspill.mcp.proxy.guard import MAX_BODY_BYTES, PRINCIPAL, Guard, Principals
from overspill.mcp.proxy.proxy import build_protocol_server
from overspill.mcp.proxy.served_client import ServedClient
from overspill.text.urls import is_loopback
from overspill.web.server import Descriptors, WebServer, bracket, open_listener

PATH = "/mcp"
_SECONDS_BETWEEN_CHECKS = 5.0  # a client that asks often must not keep the store busy


class Health:
    """Answers `/health` and `/ready`, by any name and to anyone, with one word that says nothing else."""

    def __init__(self, app: ASGIApp, *, has_store: Callable[[], Awaitable[bool]]) -> None:
        self._app = app
        self._has_store = has_store
        self._is_ready = False
        self._next_check = 0.0
        self._checking = anyio.Lock()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        answer: ASGIApp = self._app
        if scope["type"] == "http" and scope["method"] in ("GET", "HEAD"):
            if scope["path"] == "/health":
                answer = PlainTextResponse("ok\n")
            elif scope["path"] == "/ready":
                is_ready = await self._check()
                answer = PlainTextResponse("ready\n" if is_ready else "not ready\n", 200 if is_ready else 503)
        await answer(scope, receive, send)

    async def _check(self) -> bool:
        async with self._checking:
            if time.monotonic() >= self._next_check:
                self._is_ready = await self._has_store()
                self._next_check = time.monotonic() + _SECONDS_BETWEEN_CHECKS
            return self._is_ready


class ListenOptions(Struct, frozen=True):
    host: str
    port: int
    tokens: tuple[str, ...]
    hosts: tuple[str, ...] = ()
    """Other names, with or without a port, by which clients may call the proxy."""
    certificate: str | None = None
    key: str | None = None
    plain: bool = False
    """Serve other machines without TLS, because the user asked for it."""

    def open_socket(self) -> socket.socket:
        """Open the socket before anything else starts. Raises SettingsError if that fails."""
        if not self.tokens or not all(self.tokens):
            raise SettingsError("The token for --http is empty. Set one that is not, or leave it out to get a new one.")
        if not self.is_local and not self.certificate and not self.plain:
            raise SettingsError(
                f"{self.host} can be reached from other machines, and without TLS anyone on the network can listen in. "
                "Pass --tls-cert and --tls-key, or --insecure if something else encrypts the connection."
            )
        if self.certificate:
            try:
                ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(self.certificate, self.key)
            except (OSError, ssl.SSLError) as problem:
                raise SettingsError(f"{self.certificate} cannot be used for TLS with this key: {problem.strerror}.") from None
        return open_listener(self.host, self.port)

    def address(self, listener: socket.socket) -> str:
        scheme = "https" if self.certificate else "http"
        return f"{scheme}://{bracket(self.host)}:{listener.getsockname()[1]}{PATH}"

    @property
    def is_local(self) -> bool:
        return is_loopback(self.host.strip("[]")) or self.host == "localhost"

    def host_headers(self, port: int) -> frozenset[str]:
        """Every `Host` header by which a client may call the proxy."""
        own = (bracket(self.host), *(("127.0.0.1", "localhost", "[::1]") if self.is_local else ()))
        usual = 443 if self.certificate else 80
        names = [*self.hosts, *(own if port == usual else ()), *(f"{name}:{port}" for name in (*own, *self.hosts))]
        return frozenset(name.lower() for name in names)


def build_application(principals: Principals, listen: ListenOptions, port: int, descriptors: Descriptors) -> Starlette:
    async def find(request: ClientRequest, identity: ClientIdentity) -> ServedClient:
        clients = await principals.open(request.http_request.scope[PRINCIPAL])
        session = request.connection.session_id or ""
        if session and request.method == "initialize":
            request.connection.exit_stack.callback(clients.leave, session)
        return await clients.find(session, identity)

    manager = StreamableHTTPSessionManager(
        build_protocol_server(find), max_request_body_size=MAX_BODY_BYTES, session_idle_timeout=principals.gone_after
    )

    hosts = listen.host_headers(port)
    guard = Middleware(
        Guard,
        principals=principals,
        hosts=hosts,
        # Without a certificate, something in front of the proxy may encrypt.
        origins={f"{scheme}://{host}" for host in hosts for scheme in (("https",) if listen.certificate else ("http", "https"))},
        are_files_short=descriptors.look,
    )
    health = Middleware(Health, has_store=principals.has_store)
    # Around the routes, so that a refused client learns nothing about them, not even that a slash is missing.
    routes = [Route(PATH, StreamableHTTPASGIApp(manager))]
    return Starlette(routes=routes, middleware=[health, guard], lifespan=lambda _: manager.run())


async def serve_http(principals: Principals, listen: ListenOptions, listener: socket.socket, stop: anyio.Event) -> None:
    descriptors = Descriptors(principals.log)
    server = WebServer(
        build_application(principals, listen, listener.getsockname()[1], descriptors),
        listener,
        descriptors,
        ssl_certfile=listen.certificate,
        ssl_keyfile=listen.key,
        log_level="error",  # invalid requests from strangers would fill the log
        server_header=False,
        timeout_graceful_shutdown=5,
    )
    principals.hang_up = partial(server.hang_up, PRINCIPAL)
    await server.serve_until(stop)
