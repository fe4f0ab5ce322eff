"""Let in the browser that opened the start link, and no other program on the machine or the network."""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Collection
from contextlib import suppress
from http.cookies import CookieError, SimpleCookie
from urllib.parse import parse_qs

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from overspill.web.server import LET_IN

_SECRET_BYTES = 32
_MAX_FIELDS = 50
TOKEN = "token"  # noqa: S105  # the name of the parameter
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self'; "
    "base-uri 'none'; frame-ancestors 'none'"
)
_HEADERS = {
    "Content-Security-Policy": POLICY,
    "Cache-Control": "no-store",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}
"""The headers of every answer, unless the answer sets stricter ones itself."""
_NO_ENTRY = (
    "Open the link that `overspill view` printed. It works once, in one browser. "
    "If it was used already, end `overspill view` and start it again."
)


class Entrance:
    """The way in: a token that works once, and the cookie that it is exchanged for.

    Browsers send a cookie to every port of a host, so a server of another user on another port would get it. They send it only
    below its path, though, and others do not know that path.
    """

    def __init__(self) -> None:
        self.folder = f"/{secrets.token_urlsafe(12)}"
        self._token: str | None = secrets.token_urlsafe(_SECRET_BYTES)
        self._cookie = secrets.token_urlsafe(_SECRET_BYTES)

    @property
    def start_path(self) -> str:
        return f"{self.folder}/?{TOKEN}={self._token or ''}"

    def exchange(self, token: str) -> bool:
        """Whether this is the token. After that, the token is worthless."""
        if self._token is None or not _are_equal(token, self._token):
            return False
        self._token = None
        return True

    def knows(self, headers: Collection[str], name: str) -> bool:
        """Whether one of these Cookie headers has the cookie."""
        for header in headers:
            with suppress(CookieError):  # set by something else on this host
                if (found := SimpleCookie(header).get(name)) and _are_equal(found.value, self._cookie):
                    return True
        return False

    def make_cookie(self, name: str) -> str:
        return f"{name}={self._cookie}; Path={self.folder}; HttpOnly; SameSite=Lax"


class ViewerGuard:
    """Refuses a request before anything else looks at it. Only GET and HEAD pass."""

    def __init__(self, app: ASGIApp, *, entrance: Entrance, hosts: Collection[str], port: int) -> None:
        self._app = app
        self._entrance = entrance
        self._hosts = hosts
        self._origins = {f"http://{host}" for host in hosts}
        self._cookie_name = f"overspill-view-{port}"

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":
            return

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in _HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        answer = self._answer(scope)
        if answer is None:
            scope[LET_IN] = True
        await (answer or self._app)(scope, receive, send_with_headers)

    def _answer(self, scope: Scope) -> Response | None:
        """Answer a request that may not pass, or that carries the token. Returns None if the request may pass."""
        headers = Headers(scope=scope)
        if refusal := self._refuse(scope["method"], headers):
            return refusal
        try:
            query = parse_qs(scope["query_string"].decode("latin-1"), keep_blank_values=True, max_num_fields=_MAX_FIELDS)
            token = query[TOKEN][0] if TOKEN in query else None
        except ValueError:  # more fields than any page of ours has
            token = ""
        if token is None and self._entrance.knows(headers.getlist("cookie"), self._cookie_name):
            return None
        # Refuse a used token even with the cookie: the link must not work twice, not even in the same browser.
        if token is not None and scope["path"] == f"{self._entrance.folder}/" and self._entrance.exchange(token):
            cookie = self._entrance.make_cookie(self._cookie_name)
            return RedirectResponse(f"{self._entrance.folder}/", 303, {"Set-Cookie": cookie})
        return PlainTextResponse(_NO_ENTRY, 403)

    def _refuse(self, method: str, headers: Headers) -> Response | None:
        """Return a refusal, or None. Names are compared as whole strings, because a parser could be tricked."""
        hosts = headers.getlist("host")
        if len(hosts) != 1 or hosts[0].lower() not in self._hosts:
            return PlainTextResponse("The Host header does not name this page.", 421)
        if any(origin.lower() not in self._origins for origin in headers.getlist("origin")):
            return PlainTextResponse("The Origin header does not name this page.", 403)
        # Following a link to a whole page is allowed, such as a link that a colleague sent.
        is_link = headers.get("sec-fetch-mode") == "navigate" and headers.get("sec-fetch-dest") == "document"
        if headers.get("sec-fetch-site", "none") not in ("none", "same-origin") and not is_link:
            return PlainTextResponse("Other pages may link here, but not load anything from here.", 403)
        if method not in ("GET", "HEAD"):
            return PlainTextResponse("This page only shows things. It cannot change any.", 405, {"Allow": "GET, HEAD"})
        return None


def _are_equal(one: str, other: str) -> bool:
    return hmac.compare_digest(one.encode("utf-8", "replace"), other.encode())
