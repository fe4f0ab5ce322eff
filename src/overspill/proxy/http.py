"""Serving over HTTP, to those who know a token, under names that are ours."""

from __future__ import annotations

import hashlib
import hmac
import socket
import ssl
from collections.abc import AsyncGenerator, Generator, Sequence
from contextlib import asynccontextmanager, contextmanager
from ipaddress import ip_address
from typing import Any

import anyio
import uvicorn
from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from mcp.server.auth.provider import AccessToken
from mcp.server.streamable_http_manager import StreamableHTTPASGIApp, StreamableHTTPSessionManager
from mcp.server.transport_security import TransportSecuritySettings
from msgspec import Struct
from starlette.applications import Starlette
from starlette.responses import PlainTextResponse
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Send
from starlette.types import Scope as Asgi

from overspill.errors import SettingsError
from overspill.mcp_client import Client
from overspill.proxy.exchange import Exchange
from overspill.proxy.scope import Scope
from overspill.proxy.scopes import Owner, Scopes
from overspill.proxy.serve import protocol

PATH = "/mcp"
_MOST_BODY = 64 * 1024 * 1024
_LOCAL = ("127.0.0.1", "localhost", "[::1]")


class Listening(Struct, frozen=True):
    """Where to listen, and for whom."""

    host: str
    port: int
    tokens: tuple[str, ...]
    hosts: tuple[str, ...] = ()
    """Names besides the address itself by which clients may call us."""
    certificate: str | None = None
    key: str | None = None
    plain: bool = False
    """Without TLS beyond this machine, because the user said so."""

    def open(self) -> socket.socket:
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
        return f"{scheme}://{_bracketed(self.host)}:{listener.getsockname()[1]}{PATH}"

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
    def names(self) -> list[str]:
        own = _LOCAL if is_loopback(self.host) else (_bracketed(self.host),)
        return [*own, *self.hosts]


def is_loopback(host: str) -> bool:
    try:
        return ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host == "localhost"


class Guard:
    """Lets a request through that carries a token of ours, and notes whose it is. The token itself goes no further."""

    def __init__(self, app: ASGIApp, tokens: Sequence[str]) -> None:
        self._app = app
        self._digests = [hashlib.sha256(token.encode()).digest() for token in tokens]

    async def __call__(self, scope: Asgi, receive: Receive, send: Send) -> None:
        given = next((value for name, value in scope["headers"] if name == b"authorization"), b"")
        kind, _, token = given.partition(b" ")
        digest = hashlib.sha256(token.strip()).digest()
        who = next((each for each in self._digests if hmac.compare_digest(each, digest)), None)
        if who is None or kind.lower() != b"bearer":
            headers = {"WWW-Authenticate": 'Bearer realm="overspill"'}
            await PlainTextResponse("A bearer token is needed.", 401, headers)(scope, receive, send)
            return
        principal = who.hex()[:32]
        headers = [(name, value) for name, value in scope["headers"] if name != b"authorization"]
        user = AuthenticatedUser(AccessToken(token="", client_id=principal, scopes=[]))
        await self._app({**scope, "headers": headers, "user": user}, receive, send)


def application(scopes: Scopes, listening: Listening) -> Starlette:
    async def find(exchange: Exchange, client: Client) -> Scope:
        principal = exchange.request.scope["user"].access_token.client_id
        session = exchange.connection.session_id or ""
        owner = Owner(principal, session)
        if session and exchange.method == "initialize":
            exchange.connection.exit_stack.push_async_callback(scopes.close, owner)
        return await scopes.find(owner, client)

    names, scheme = listening.names, "https" if listening.certificate else "http"
    manager = StreamableHTTPSessionManager(
        protocol(find),
        security_settings=TransportSecuritySettings(
            allowed_hosts=[*names, *(f"{name}:*" for name in names)],
            allowed_origins=[origin for name in names for origin in (f"{scheme}://{name}", f"{scheme}://{name}:*")],
        ),
        max_request_body_size=_MOST_BODY,
    )

    @asynccontextmanager
    async def lifespan(_: Any) -> AsyncGenerator[None]:
        async with manager.run():
            yield

    return Starlette(routes=[Route(PATH, Guard(StreamableHTTPASGIApp(manager), listening.tokens))], lifespan=lifespan)


class _Web(uvicorn.Server):
    @contextmanager
    def capture_signals(self) -> Generator[None]:
        """Signals are for the whole program, whose servers have to end too."""
        yield

    async def serve_until(self, told: anyio.Event, socket: socket.socket) -> None:
        async def end() -> None:
            await told.wait()
            self.should_exit = True

        async with anyio.create_task_group() as group:
            group.start_soon(end)
            await self.serve(sockets=[socket])
            group.cancel_scope.cancel()


async def serve_http(scopes: Scopes, listening: Listening, listener: socket.socket, told: anyio.Event) -> None:
    """Until we are told to end."""
    config = uvicorn.Config(
        application(scopes, listening),
        ssl_certfile=listening.certificate,
        ssl_keyfile=listening.key,
        log_level="warning",
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=5,
    )
    await _Web(config).serve_until(told, listener)


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host and not host.startswith("[") else host
