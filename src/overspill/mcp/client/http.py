"""Connect to a server over HTTP. Its URL and headers may be secrets, so everything above this file sees only its name."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import AsyncGenerator, Callable
from contextlib import AsyncExitStack, aclosing, asynccontextmanager, suppress
from typing import Any, Literal, TypeAlias
from urllib.parse import quote
from uuid import uuid4

import anyio
import httpx2
import mcp_types
from mcp.client.auth.utils import extract_field_from_www_auth
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError

from overspill.errors import LoginNeeded, ServerError, Unheard
from overspill.mcp.client.framing import MAX_MESSAGE_BYTES, decode
from overspill.mcp.client.handshake import as_mapping
from overspill.mcp.client.listings import clip_levels
from overspill.mcp.client.login.guarded import find_proxy
from overspill.mcp.client.login.keeper import TokenKeeper
from overspill.mcp.client.peer import ServerAccess
from overspill.mcp.client.streams import drop_records
from overspill.mcp.client.surrogates import RewritingStream, Surrogates
from overspill.text.humanize import quote_line
from overspill.text.lenient_json import dumps
from overspill.text.regex import regex

_CONNECT_SECONDS = 30.0  # to connect, and to wait for an answer without content
_SESSION_HEADER = "mcp-session-id"
_SESSION_ERROR_CODES = (-32000, -32001, mcp_types.INVALID_REQUEST)
_NO_SESSION = regex(
    r"(?i)\b(missing|unknown|expired|invalid|no|no valid|no such) session"
    r"|\bsession.{0,200}\b(missing|unknown|expired|invalid|not found|not valid|not exist|required|terminated)\b"
)
_OVERRIDABLE_HEADERS = {"accept-encoding", "connection", "user-agent"}  # defaults; the configuration wins
_ADVICE = {
    401: "; check its headers, or log in with `overspill login`",
    403: "; check its headers",
    404: "; check its url",
    405: "; check its url",
}
_POOL_LIMITS = httpx2.Limits(max_connections=None, max_keepalive_connections=100)

_EXPECTS_REPLY, _LISTS = "overspill.asks", "overspill.lists"

_Kind: TypeAlias = Literal["unreached", "gone", "broken", "refused", "login"]


class RedactingTransport(httpx2.AsyncBaseTransport):
    """Puts in the real URL and headers at the last moment.

    Turns failures into answers, because a single exception would end every call on the connection.
    """

    def __init__(self, access: ServerAccess) -> None:
        config = access.config
        self.name = config.name
        self.problem = f"The connection to the server {config.name} was lost."
        self.on_lost: Callable[[], None] = lambda: None
        """Called when the server seems to be gone, because no waiting request would notice that."""
        self.remark = ""
        self._surrogates = Surrogates()
        self.restore = self._surrogates.restore
        self._session: str | None = None
        self._seal = uuid4().hex
        self._token = ""
        try:
            url = self._url = httpx2.URL(config.url)
            credentials = b64encode(f"{url.username}:{url.password}".encode()).decode()
            login = {"authorization": f"Basic {credentials}"} if url.userinfo else {}
            self._headers = httpx2.Headers({**login, **{name: value.strip() for name, value in config.headers.items()}})
            self._transport = httpx2.AsyncHTTPTransport(limits=_POOL_LIMITS, proxy=find_proxy(url))
        except (httpx2.InvalidURL, UnicodeEncodeError, ValueError):
            raise ServerError(f"The server {config.name} has a url or a header that cannot be used. Check both.") from None
        except ImportError:
            raise ServerError(
                f"The server {config.name} cannot be reached: your environment sets a SOCKS proxy, which needs the package "
                "socksio. Install it with `pip install socksio`, or add the server's host to NO_PROXY."
            ) from None

        self._keeper = None if "authorization" in self._headers else TokenKeeper(config, access.environ, access.log)

    def find_failure(self, error: MCPError) -> ServerError | None:
        """Return the failure behind an error that this transport or the SDK made up; None if the server itself sent the error."""
        data = as_mapping(error.data)
        if data.get("seal") != self._seal:
            if error.code == mcp_types.CONNECTION_CLOSED and error.message.startswith("SSE stream"):
                why = quote_line(error.message)
                return ServerError(f"The server {self.name} closed the stream before its answer was complete: {why}.")
            if error.code == mcp_types.PARSE_ERROR and error.message.startswith("Failed to parse"):
                return ServerError(f"The server {self.name} answered with something that is not an MCP message.")
            return None
        if data["kind"] == "refused":
            return ServerError(f"The server {self.name} answered with {quote_line(error.message)}.")
        if data["kind"] == "login":
            return LoginNeeded(error.message)
        return ServerError(error.message) if data["kind"] == "broken" else Unheard(error.message, gone=data["kind"] == "gone")

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        try:
            return await self._redact(request, await self._send_with_token(request))
        except ServerError as problem:
            return self._refuse(str(problem), "login" if isinstance(problem, LoginNeeded) else "broken")
        except (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.ProxyError, httpx2.UnsupportedProtocol) as problem:
            why = str(problem) or f"no connection within {_CONNECT_SECONDS:g} s"
            return self._fail(request, "unreached", f"The server {self.name} cannot be reached: {why.rstrip('.')}.")
        except (httpx2.HTTPError, httpx2.InvalidURL):
            return self._fail(request, "broken", f"The connection to the server {self.name} broke before it answered.")

    async def aclose(self) -> None:
        await self._transport.aclose()

    async def end_session(self) -> None:
        if self._session is not None:
            headers = {**self._headers, **_authorize(self._token), _SESSION_HEADER: self._session}
            with anyio.move_on_after(2.0, shield=True), suppress(httpx2.HTTPError, httpx2.InvalidURL):
                await (await self._transport.handle_async_request(httpx2.Request("DELETE", self._url, headers=headers))).aclose()

    async def _send_with_token(self, request: httpx2.Request) -> httpx2.Response:
        """If the server rejects a token, renew it once. Nothing is locked while the server works."""
        if self._keeper is None:
            return await self._send(request)
        self._token = token = await self._keeper.get_token()
        response = await self._send(request, token)
        if response.status_code == 401 and token and (renewed := await self._keeper.renew(token, is_refused=True)):
            await response.aclose()
            self._token, response = renewed, await self._send(request, renewed)
        wants_more = response.status_code == 403 and extract_field_from_www_auth(response, "error") == "insufficient_scope"
        wants_token = response.status_code == 401 and (token or "bearer" in response.headers.get("www-authenticate", "").lower())
        if wants_token or wants_more:
            await response.aclose()
            await self._keeper.note_wanted(extract_field_from_www_auth(response, "scope") or "")
            raise self._keeper.explain(wants_more=wants_more)
        return response

    async def _send(self, request: httpx2.Request, token: str = "") -> httpx2.Response:
        headers = httpx2.Headers([each for each in request.headers.multi_items() if each[0] != "host"])
        headers.update(_authorize(token))
        headers.update(
            {name: value for name, value in self._headers.items() if name not in headers or name in _OVERRIDABLE_HEADERS}
        )
        timeout = request.extensions["timeout"]
        if request.method == "POST" and not request.extensions[_EXPECTS_REPLY]:
            timeout = {**timeout, "read": _CONNECT_SECONDS}  # the SDK sends nothing else while it waits for this
        content, url = await request.aread(), self._url
        for _ in range(3):
            real = httpx2.Request(request.method, url, headers=headers, content=content, extensions={"timeout": timeout})
            response = await self._transport.handle_async_request(real)
            if not response.has_redirect_location:
                return response
            await response.aclose()
            target = url.join(response.headers["location"])
            is_same_origin = (target.scheme, target.host, target.port) == (url.scheme, url.host, url.port)
            if not is_same_origin or (request.method == "POST" and response.status_code not in (307, 308)):
                return self._refuse(
                    f"a redirect to {target.scheme}://{target.host}, which Overspill does not follow; set it as the url"
                )
            url = target
        return self._refuse("too many redirects")

    async def _redact(self, request: httpx2.Request, response: httpx2.Response) -> httpx2.Response:
        has_session = _SESSION_HEADER in request.headers
        is_post, is_stream = request.method == "POST", response.headers.get("content-type", "").startswith("text/event-stream")
        if not is_post and has_session and response.status_code == 404:
            await response.aclose()
            return self._forget_session(request)
        if is_post:
            self._session = response.headers.get(_SESSION_HEADER, self._session)
        elif not is_stream:
            return response
        headers = [each for each in response.headers.multi_items() if each[0] in ("content-type", "set-cookie", _SESSION_HEADER)]
        hide = self._surrogates.hide
        rewrite: Callable[[bytes], bytes] = (lambda data: hide(clip_levels(data))) if request.extensions[_LISTS] else hide
        if is_stream and (not is_post or response.status_code < 400):
            stream = RewritingStream(response, rewrite, MAX_MESSAGE_BYTES)
            return httpx2.Response(response.status_code, headers=headers, stream=stream)
        body = await _read_body(response)
        if body is None:
            return self._refuse(f"a message of more than {MAX_MESSAGE_BYTES:,} bytes, the limit. Ask it for less")
        if response.status_code >= 400:
            message = getattr(decode(body), "message", None)
            error = message.error if isinstance(message, mcp_types.JSONRPCError) else None
            if has_session and _is_session_unknown(response.status_code, error):
                return self._forget_session(request)
            if error is None:
                return self._refuse(
                    f"HTTP status {response.status_code} ({response.reason_phrase}){_ADVICE.get(response.status_code, '')}"
                )
        return httpx2.Response(response.status_code, headers=headers, content=rewrite(body))

    def _forget_session(self, request: httpx2.Request) -> httpx2.Response:
        self._session = None
        return self._fail(request, "gone", f"The server {self.name} no longer knows this session. It may have restarted.")

    def _fail(self, request: httpx2.Request, kind: _Kind, text: str) -> httpx2.Response:
        self.problem = text
        if kind != "broken" and not request.extensions[_EXPECTS_REPLY]:
            self.on_lost()
        return self._refuse(text, kind)

    def _refuse(self, text: str, kind: _Kind = "refused") -> httpx2.Response:
        error = {"code": mcp_types.CONNECTION_CLOSED, "message": text, "data": {"seal": self._seal, "kind": kind}}
        return httpx2.Response(502, json={"jsonrpc": "2.0", "id": None, "error": error})


class _JsonClient(httpx2.AsyncClient):
    def build_request(self, method: str, url: Any, **options: Any) -> httpx2.Request:
        """Write lone surrogates as escapes, where httpx2 would fail."""
        message = options.pop("json", None)
        if message is not None:
            options["content"] = dumps(message)
        asked = as_mapping(message)
        request = super().build_request(method, url, **options)
        request.extensions[_EXPECTS_REPLY] = "id" in asked and "method" in asked
        request.extensions[_LISTS] = str(asked.get("method")).endswith("/list")
        return request


@asynccontextmanager
async def open_transport(access: ServerAccess) -> AsyncGenerator[tuple[RedactingTransport, Any]]:
    """Open streams to a server, without a read timeout: calls have their own limits, and a stream may be silent for long."""
    transport = RedactingTransport(access)
    name = f"http://server/{quote(transport.name, safe='')}"
    async with AsyncExitStack() as stack:
        timeout = httpx2.Timeout(_CONNECT_SECONDS, read=None)
        client = await stack.enter_async_context(_JsonClient(transport=transport, timeout=timeout))
        with drop_records():  # the caller gets an error for everything that goes wrong inside
            read, write = await stack.enter_async_context(
                streamable_http_client(name, http_client=client, terminate_on_close=False, max_sse_event_size=MAX_MESSAGE_BYTES)
            )
        try:
            yield transport, (read, write)
        finally:
            await transport.end_session()


def _authorize(token: str) -> dict[str, str]:
    return {"authorization": f"Bearer {token}"} if token else {}


async def _read_body(response: httpx2.Response) -> bytes | None:
    """Read the whole body. Returns None if it is too large."""
    parts: list[bytes] = []
    size = 0
    try:
        async with aclosing(response.aiter_bytes()) as chunks:
            async for chunk in chunks:
                size += len(chunk)
                if size > MAX_MESSAGE_BYTES:
                    return None
                parts.append(chunk)
    finally:
        await response.aclose()
    return b"".join(parts)


def _is_session_unknown(status: int, error: mcp_types.ErrorData | None) -> bool:
    """Whether the server no longer knows the session. The protocol says 404, but many servers answer 400 with a message.

    A message alone does not prove it: tools may mention sessions of other kinds.
    """
    if error is None:
        return status == 404
    if status == 400:
        return error.code in _SESSION_ERROR_CODES and _NO_SESSION.search(error.message) is not None
    return status == 404 and error.code != mcp_types.METHOD_NOT_FOUND
