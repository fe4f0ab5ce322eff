"""Let in HTTP clients that use one of the proxy's names and know a token. Each token has its own share of the limits."""

from __future__ import annotations

import hmac
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence

import anyio.to_thread
from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from mcp.server.auth.provider import AccessToken
from mcp.server.streamable_http import MCP_SESSION_ID_HEADER
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS
from msgspec import Struct, field
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.responses import PlainTextResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from overspill.errors import OverspillError
from overspill.mcp.host_configs.hub_clients import identify_token
from overspill.mcp.proxy.served_clients import ServedClients
from overspill.web.server import IS_STREAM, LET_IN, max_files

MAX_BODY_BYTES = 64 * 1024 * 1024
_MAX_BODY_BYTES_PER_TOKEN = 2 * MAX_BODY_BYTES  # in memory at the same time
_MAX_REQUESTS = 512  # for all tokens; half of the files that may be open, if those are fewer
_MIN_REQUESTS_PER_TOKEN = 32
_MAX_SESSIONS_PER_TOKEN = 256
_RETRY_LATER = {"Retry-After": "1"}
PRINCIPAL = "overspill.principal"
"""The guard sets this in the scope of a request that it lets in: whose request it is."""


class Principals:
    """Who is let in, and among which clients each is served. Each has a token, whose digest is its name."""

    def __init__(self, log: Callable[[str], None], gone_after: float, served: Mapping[str, ServedClients]) -> None:
        self.log, self.gone_after = log, gone_after
        self.served = dict(served)
        self.requests = Counter[str]()
        """How many requests of each are being answered."""
        self.hang_up: Callable[[str], None] = lambda _: None
        """Closes the connections of a principal. Set when the server starts."""

    @property
    def names(self) -> Sequence[str]:
        return [*self.served]

    async def open(self, principal: str) -> ServedClients:
        """Return the clients of a principal. Raises OverspillError if it cannot be served."""
        return self.served[principal]

    async def has_store(self) -> bool:
        stores = {each.store for each in self.served.values()}
        return all([await anyio.to_thread.run_sync(store.answers) for store in stores])


class Guard(Struct, eq=False):
    """Refuses a request before anything else looks at it. Does not pass the token on."""

    app: ASGIApp
    principals: Principals
    hosts: Collection[str]
    origins: Collection[str]
    are_files_short: Callable[[], bool]
    _bytes: Counter[str] = field(default_factory=Counter[str])

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        principal = self._admit(headers)
        if not isinstance(principal, str):
            await principal(scope, receive, send)
            return
        user = AuthenticatedUser(AccessToken(token="", client_id=principal, scopes=[]))
        rest = [(name, value) for name, value in scope["headers"] if name != b"authorization"]
        self.principals.requests[principal] += 1
        scope[LET_IN], scope[IS_STREAM], scope[PRINCIPAL] = True, scope["method"] == "GET", principal
        try:
            session = headers.get(MCP_SESSION_ID_HEADER, "")
            await self._connect({**scope, "headers": rest, "user": user}, receive, send, principal, session)
        finally:
            self.principals.requests[principal] -= 1

    async def _connect(self, scope: Scope, receive: Receive, send: Send, principal: str, session: str) -> None:
        """Note that a client of the older protocol is connected, or send it away if its session has ended."""
        try:
            clients = await self.principals.open(principal)
        except OverspillError as problem:
            await PlainTextResponse(str(problem), 503)(scope, receive, send)
            return
        with clients.connected(session):
            if session and not clients.has(session):  # the client starts another session, as the protocol says
                await PlainTextResponse("This session has ended.", 404)(scope, receive, send)
            else:
                await self._pass_on(scope, receive, send, principal)

    async def _pass_on(self, scope: Scope, receive: Receive, send: Send, principal: str) -> None:
        """Count the body until the request ends, because something may hold on to it until then."""
        taken, more = 0, True

        async def receive_counted() -> Message:
            nonlocal taken, more
            message = await receive()
            if more and message["type"] == "http.disconnect":
                raise HTTPException(408)  # the client is gone; without this, the SDK would log half a body as its own error
            more = message.get("more_body", False)
            size = len(message.get("body", b""))
            taken += size
            self._bytes[principal] += size
            if size and self._bytes[principal] > _MAX_BODY_BYTES_PER_TOKEN:
                raise HTTPException(429, "This token is sending too much at the same time. Try again later.", _RETRY_LATER)
            return message

        try:
            await self.app(scope, receive_counted, send)
        finally:
            self._bytes[principal] -= taken

    def _admit(self, headers: Headers) -> str | Response:
        """Return whose request it is, or a refusal. Host and Origin are compared as whole strings: a parser could be tricked."""
        kind, _, token = headers.get("authorization", "").partition(" ")
        given = identify_token(token.strip().encode("latin-1"))
        known = [each for each in self.principals.names if hmac.compare_digest(each, given)]
        hosts = headers.getlist("host")
        if len(hosts) != 1 or hosts[0].lower() not in self.hosts:
            return PlainTextResponse("The Host header does not name this proxy.", 421)
        if any(origin.lower() not in self.origins for origin in headers.getlist("origin")):
            return PlainTextResponse("The Origin header does not name this proxy.", 403)
        if not known or kind.lower() != "bearer":
            challenge = {"WWW-Authenticate": 'Bearer realm="overspill"'}
            return PlainTextResponse("This proxy requires a bearer token.", 401, challenge)
        principal = known[0]
        share = min(_MAX_REQUESTS, max_files() // 2) // len(self.principals.names)
        if self.principals.requests[principal] >= (most := max(_MIN_REQUESTS_PER_TOKEN, share)):
            return _refuse_for_now(f"This token has {most} requests open.")
        version = headers.get("mcp-protocol-version")
        if MCP_SESSION_ID_HEADER in headers or (version is not None and version not in HANDSHAKE_PROTOCOL_VERSIONS):
            return principal  # such a request opens no session
        served = self.principals.served.get(principal)
        if served is not None and served.sessions >= _MAX_SESSIONS_PER_TOKEN:
            return _refuse_for_now(f"This token has {_MAX_SESSIONS_PER_TOKEN} sessions open.")
        if self.are_files_short():
            return PlainTextResponse("The proxy has too many files open for a new session. Try again later.", 503, _RETRY_LATER)
        return principal


def _refuse_for_now(why: str) -> Response:
    return PlainTextResponse(f"{why} Try again when one of them ends.", 429, _RETRY_LATER)
