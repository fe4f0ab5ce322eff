"""The way to a server over HTTP. Its URL and headers may be secrets: all that lies above, logs and errors too, knows its name."""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import AsyncGenerator, Callable
from contextlib import AsyncExitStack, aclosing, asynccontextmanager, suppress
from typing import Any, Literal, TypeAlias
from urllib.parse import quote
from urllib.request import getproxies, proxy_bypass
from uuid import uuid4

import anyio
import httpx2
import mcp_types
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError

from overspill.errors import ServerError, Unheard
from overspill.mcp.client.config import ServerConfig
from overspill.mcp.client.framing import MAX_MESSAGE_BYTES, decode
from overspill.mcp.client.handshake import as_mapping
from overspill.mcp.client.sdk_log import UnloggedSendStream, drop_records
from overspill.mcp.client.surrogates import HidingStream, RestoringStream, Surrogates
from overspill.text.humanize import quote_line
from overspill.text.lenient_json import dumps

_CONNECT_SECONDS = 30.0  # seconds for a connection, and for an answer that holds nothing
_END_SESSION_SECONDS = 2.0
_MAX_REDIRECTS = 3
_SESSION_HEADER = "mcp-session-id"
_SESSION_ERROR_CODES = (-32000, -32001, mcp_types.INVALID_REQUEST)
_NO_SESSION = re.compile(
    r"(?i)\b(missing|unknown|expired|invalid|no|no valid|no such) session"
    r"|\bsession.{0,200}\b(missing|unknown|expired|invalid|not found|not valid|not exist|required|terminated)\b"
)
_OVERRIDABLE_HEADERS = {
    "accept-encoding",
    "connection",
    "user-agent",
}  # headers that are only defaults; those of the configuration win
_POOL_LIMITS = httpx2.Limits(max_connections=None, max_keepalive_connections=100)

_EXPECTS_REPLY = "overspill.asks"

_Kind: TypeAlias = Literal["unreached", "gone", "broken", "refused"]


class RedactingTransport(httpx2.AsyncBaseTransport):
    """Puts in the real URL and headers, last; and turns what goes wrong into an answer, for one exception would end all calls."""

    def __init__(self, config: ServerConfig) -> None:
        self.name = config.name
        self.problem = f"The connection to the server {config.name} was lost."
        self.on_lost: Callable[[], None] = lambda: None
        """Told when the server seems to be gone and no request is there to learn of it."""
        self.surrogates = Surrogates()
        self._session: str | None = None
        self._seal = uuid4().hex
        try:
            self._url = httpx2.URL(config.url)
            self._headers = httpx2.Headers(
                {**_make_login_header(self._url), **{name: value.strip() for name, value in config.headers.items()}}
            )
            self._transport = httpx2.AsyncHTTPTransport(limits=_POOL_LIMITS, proxy=_find_proxy(self._url))
        except (httpx2.InvalidURL, UnicodeEncodeError, ValueError):
            raise ServerError(f"The server {config.name} has a url or a header that cannot be used. Check both.") from None
        except ImportError:
            raise ServerError(
                f"The server {config.name} would be reached through the SOCKS proxy that the environment names, which needs the "
                "package socksio. Install it with `pip install socksio`, or name the server's host in NO_PROXY."
            ) from None

    def find_failure(self, error: MCPError) -> ServerError | None:
        """What stands behind an answer that is ours and not the server's."""
        data = as_mapping(error.data)
        if data.get("seal") != self._seal:
            return None
        if data["kind"] == "refused":
            return ServerError(f"The server {self.name} answered with {quote_line(error.message)}.")
        return ServerError(error.message) if data["kind"] == "broken" else Unheard(error.message, gone=data["kind"] == "gone")

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        try:
            return await self._redact(request, await self._send(request))
        except (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.ProxyError, httpx2.UnsupportedProtocol) as problem:
            why = str(problem) or f"no connection within {_CONNECT_SECONDS:g} s"
            return self._fail(request, "unreached", f"The server {self.name} cannot be reached: {why.rstrip('.')}.")
        except (httpx2.HTTPError, httpx2.InvalidURL):
            return self._fail(request, "broken", f"The connection to the server {self.name} broke before it had answered.")

    async def aclose(self) -> None:
        await self._transport.aclose()

    async def end_session(self) -> None:
        """Lets the server forget the session, if it is there to hear it."""
        if self._session is not None:
            headers = {**self._headers, _SESSION_HEADER: self._session}
            with anyio.move_on_after(_END_SESSION_SECONDS, shield=True), suppress(httpx2.HTTPError, httpx2.InvalidURL):
                await (await self._transport.handle_async_request(httpx2.Request("DELETE", self._url, headers=headers))).aclose()

    async def _send(self, request: httpx2.Request) -> httpx2.Response:
        headers = httpx2.Headers([each for each in request.headers.multi_items() if each[0] != "host"])
        headers.update(
            {name: value for name, value in self._headers.items() if name not in headers or name in _OVERRIDABLE_HEADERS}
        )
        timeout = request.extensions["timeout"]
        if request.method == "POST" and not request.extensions[_EXPECTS_REPLY]:
            timeout = {**timeout, "read": _CONNECT_SECONDS}  # the transport sends nothing else while it waits for this
        content, url = await request.aread(), self._url
        for _ in range(_MAX_REDIRECTS):
            real = httpx2.Request(request.method, url, headers=headers, content=content, extensions={"timeout": timeout})
            response = await self._transport.handle_async_request(real)
            if not response.has_redirect_location:
                return response
            await response.aclose()
            target = url.join(response.headers["location"])
            same_place = (target.scheme, target.host, target.port) == (url.scheme, url.host, url.port)
            if not same_place or (request.method == "POST" and response.status_code not in (307, 308)):
                return self._refuse(f"a redirect to {target.scheme}://{target.host}, which is not followed; use that as its url")
            url = target
        return self._refuse("one redirect after another")

    async def _redact(self, request: httpx2.Request, response: httpx2.Response) -> httpx2.Response:
        ours = _SESSION_HEADER in request.headers
        if request.method != "POST":
            if ours and response.status_code == 404:
                await response.aclose()
                return self._forget_session(request)
            return self._stream(response)
        self._session = response.headers.get(_SESSION_HEADER, self._session)
        if response.status_code < 400 and _is_stream(response):
            return self._stream(response)
        body = await _read_body(response)
        if body is None:
            return self._refuse(f"a message of more than the {MAX_MESSAGE_BYTES:,} bytes that are taken. Ask it for less")
        if response.status_code >= 400:
            error = _decode_error(body)
            if ours and _is_session_unknown(response.status_code, error):
                return self._forget_session(request)
            if error is None:
                return self._refuse(_describe_status(response))
        return httpx2.Response(response.status_code, headers=_headers_to_pass(response), content=self.surrogates.hide(body))

    def _stream(self, response: httpx2.Response) -> httpx2.Response:
        if not _is_stream(response):
            return response
        return httpx2.Response(
            response.status_code,
            headers=_headers_to_pass(response),
            stream=HidingStream(response, self.surrogates, MAX_MESSAGE_BYTES),
        )

    def _forget_session(self, request: httpx2.Request) -> httpx2.Response:
        self._session = None
        return self._fail(request, "gone", f"The server {self.name} has forgotten its session, as after a restart.")

    def _fail(self, request: httpx2.Request, kind: _Kind, words: str) -> httpx2.Response:
        self.problem = words
        if kind != "broken" and not request.extensions[_EXPECTS_REPLY]:
            self.on_lost()
        return self._answer(kind, words)

    def _refuse(self, words: str) -> httpx2.Response:
        return self._answer("refused", words)

    def _answer(self, kind: _Kind, words: str) -> httpx2.Response:
        error = {"code": mcp_types.CONNECTION_CLOSED, "message": words, "data": {"seal": self._seal, "kind": kind}}
        return httpx2.Response(502, json={"jsonrpc": "2.0", "id": None, "error": error})


class _JsonClient(httpx2.AsyncClient):
    def build_request(self, method: str, url: Any, **given: Any) -> httpx2.Request:
        """Writes JSON as everywhere here: lone surrogates are escaped, where httpx2 would fail."""
        message = given.pop("json", None)
        if message is not None:
            given["content"] = dumps(message)
        request = super().build_request(method, url, **given)
        request.extensions[_EXPECTS_REPLY] = message is not None and "id" in message and "method" in message
        return request


@asynccontextmanager
async def open_transport(config: ServerConfig) -> AsyncGenerator[tuple[RedactingTransport, Any]]:
    """Reading has no limit of its own: calls have theirs, and a stream may be silent for as long as it likes."""
    transport = RedactingTransport(config)
    name = f"http://server/{quote(config.name, safe='')}"
    async with AsyncExitStack() as stack:
        timeout = httpx2.Timeout(_CONNECT_SECONDS, read=None)
        client = await stack.enter_async_context(_JsonClient(transport=transport, timeout=timeout))
        with drop_records():  # whatever goes wrong in there is answered to the caller
            read, write = await stack.enter_async_context(
                streamable_http_client(name, http_client=client, terminate_on_close=False, max_sse_event_size=MAX_MESSAGE_BYTES)
            )
        try:
            yield transport, (RestoringStream(read, transport.surrogates), UnloggedSendStream(write))
        finally:
            await transport.end_session()


def _is_stream(response: httpx2.Response) -> bool:
    return response.headers.get("content-type", "").startswith("text/event-stream")


def _headers_to_pass(response: httpx2.Response) -> list[tuple[str, str]]:
    return [each for each in response.headers.multi_items() if each[0] in ("content-type", "set-cookie", _SESSION_HEADER)]


async def _read_body(response: httpx2.Response) -> bytes | None:
    """None when it is too much."""
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


def _decode_error(body: bytes) -> mcp_types.ErrorData | None:
    found = decode(body)
    message = getattr(found, "message", None)
    return message.error if isinstance(message, mcp_types.JSONRPCError) else None


def _is_session_unknown(status: int, error: mcp_types.ErrorData | None) -> bool:
    """The protocol has 404 for it; many servers answer 400, with words. Tools speak of sessions too, of other kinds."""
    if error is None:
        return status == 404
    if status == 400:
        return error.code in _SESSION_ERROR_CODES and _NO_SESSION.search(error.message) is not None
    return status == 404 and error.code != mcp_types.METHOD_NOT_FOUND


def _describe_status(response: httpx2.Response) -> str:
    next_step = {401: "; check its headers", 403: "; check its headers", 404: "; check its url", 405: "; check its url"}
    said = f"HTTP status {response.status_code} ({response.reason_phrase})"
    return said + next_step.get(response.status_code, "")


def _make_login_header(url: httpx2.URL) -> dict[str, str]:
    word = b64encode(f"{url.username}:{url.password}".encode()).decode()
    return {"authorization": f"Basic {word}"} if url.userinfo else {}


def _find_proxy(url: httpx2.URL) -> str | None:
    ways = {} if proxy_bypass(url.host) else getproxies()
    return ways.get(url.scheme) or ways.get("all")
