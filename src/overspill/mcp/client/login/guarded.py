"""HTTP to addresses that a server named: https or loopback, never nearer to us than the server that named them.

The addresses of a name are looked up here, checked and then connected to, so a name cannot resolve differently in between.
Behind an HTTP proxy, the proxy looks names up, and only addresses without a name can be checked.
"""

from __future__ import annotations

import socket
import ssl
from contextlib import aclosing, suppress
from functools import cached_property
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address
from typing import get_args
from urllib.request import getproxies, proxy_bypass

import anyio
import httpx2
import msgspec

from overspill.errors import ServerError
from overspill.mcp.client.login.storage import Reach

_MAX_BYTES = 1024 * 1024  # of one answer
_TOTAL_SECONDS, _CONNECT_SECONDS = 30.0, 10.0  # for one exchange, and to connect to one address
_NAT64, _GLOBAL = IPv6Network("64:ff9b::/96"), IPv6Network("2000::/3")
_REACHES: tuple[Reach, ...] = get_args(Reach)


class GuardedTransport(httpx2.AsyncBaseTransport):
    """`server` is the address that the user configured, which is always allowed. Answers are read whole."""

    def __init__(self, server: str, reach: Reach | None = None) -> None:
        self._server = httpx2.URL(server)
        self.reach: Reach | None = reach
        self.error = ""
        """The code of the last error, as OAuth defines them."""
        self.last = ""
        """How the last exchange went, without quoting what the server sent."""

    @cached_property
    def _trust(self) -> ssl.SSLContext:
        """The trusted certificates, loaded once: that takes longer than most exchanges, and a login has several exchanges."""
        return httpx2.create_ssl_context()

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Raises ServerError if the address is not allowed, and httpx2.HTTPError if it cannot be reached."""
        url, proxy = request.url, find_proxy(request.url)
        self.error, self.last = "", f"{url.host} cannot be reached"
        # A connection serves one host: two that share an address must not share what TLS has checked.
        limits = httpx2.Limits(max_keepalive_connections=0)
        try:
            with anyio.fail_after(_TOTAL_SECONDS):
                *others, last = [_aim(request, address) for address in await self.find_addresses(url)]
                async with httpx2.AsyncHTTPTransport(self._trust, limits=limits, proxy=proxy) as transport:
                    for each in others:
                        with suppress(httpx2.ConnectError, httpx2.ConnectTimeout):
                            return await self._read(await transport.handle_async_request(each), request)
                    return await self._read(await transport.handle_async_request(last), request)
        except TimeoutError:
            raise httpx2.ReadTimeout("too slow", request=request) from None

    async def find_addresses(self, url: httpx2.URL) -> list[str]:
        """Look up a host and check its addresses. A host that we do not look up is returned itself. May raise ServerError."""
        addresses = [url.host]
        if self._is_own(url):
            return addresses
        if find_proxy(url) is None:
            try:
                found = await anyio.getaddrinfo(url.host, url.port or 443, type=socket.SOCK_STREAM)
            except (OSError, UnicodeError):
                raise ServerError(f"The login was stopped: the host {url.host} is unknown.") from None
            addresses = list(dict.fromkeys(str(each[4][0]).partition("%")[0] for each in found))
        reaches = [_measure(address) for address in addresses]
        if url.scheme != "https" and not (url.scheme == "http" and set(reaches) == {"loopback"}):
            raise ServerError(f"The login was stopped: {url.host} would be reached without encryption. Only https is allowed.")
        if min(map(_REACHES.index, reaches)) < _REACHES.index(self.reach or "public"):
            raise ServerError(
                f"The login was stopped: the server leads to {url.host}, which is in a private network or on this machine, "
                "and the server is not."
            )
        return addresses

    def _is_own(self, url: httpx2.URL) -> bool:
        own = self._server
        return (url.scheme, url.host, url.port) == (own.scheme, own.host, own.port)

    async def _read(self, response: httpx2.Response, request: httpx2.Request) -> httpx2.Response:
        content, host, status = bytearray(), request.url.host, response.status_code
        if self._is_own(request.url):
            # If the address of a name changes, the farthest one counts. Behind a proxy, the peer would be the proxy itself.
            peer = None if find_proxy(request.url) else response.extensions["network_stream"].get_extra_info("server_addr")
            found = _measure(str(peer[0]).partition("%")[0] if peer else host)
            self.reach = _REACHES[max(map(_REACHES.index, (found, self.reach or found)))]
        is_endless = "event-stream" in response.headers.get("content-type", "")
        async with aclosing(response.aiter_bytes()) as chunks:
            while not is_endless and (chunk := await anext(chunks, b"")):
                content += chunk
                if len(content) > _MAX_BYTES:
                    raise ServerError(f"The login was stopped: {host} answered with more than 1 MiB.")
        self.error = _find_error(bytes(content)) if status >= 400 else ""
        self.last = f"{host} answered with HTTP status {status}{f' ({self.error})' if self.error else ''}"
        headers = [each for each in response.headers.multi_items() if each[0] not in ("content-encoding", "content-length")]
        made = httpx2.Response(status, headers=headers, content=bytes(content), request=request)
        if made.has_redirect_location and request.method == "GET":  # the SDK follows it, within one host
            made.next_request = httpx2.Request("GET", request.url.join(made.headers["location"]), headers=request.headers)
        return made


def _aim(request: httpx2.Request, address: str) -> httpx2.Request:
    """Copy a request, and send it to this address of its host."""
    more = {"sni_hostname": request.url.raw_host.decode(), "timeout": {"connect": _CONNECT_SECONDS}}
    url = request.url.copy_with(host=address)
    return httpx2.Request(request.method, url, headers=request.headers, stream=request.stream, extensions=more)


def find_proxy(url: httpx2.URL) -> str | None:
    proxies = {} if proxy_bypass(url.host) else getproxies()
    return proxies.get(url.scheme) or proxies.get("all")


def _measure(host: str) -> Reach:
    """Say how far away a host is. A name counts as public, except `localhost`: only names that a proxy looks up get this far."""
    name = host.strip("[]").rstrip(".")
    try:
        address = _parse_address(name)
    except (OSError, ValueError):
        return "loopback" if name == "localhost" or name.endswith(".localhost") else "public"
    is_global = address.is_global and not address.is_multicast
    if isinstance(address, IPv6Address):
        inner = IPv4Address(int(address) & 0xFFFFFFFF) if address in _NAT64 else None
        address = address.ipv4_mapped or address.sixtofour or inner or address
        is_global = address.is_global if isinstance(address, IPv4Address) else is_global and address in _GLOBAL
    if address.is_loopback or address.is_unspecified:
        return "loopback"
    return "public" if is_global else "private"


def _parse_address(host: str) -> IPv4Address | IPv6Address:
    """Accepts every form that a resolver accepts, even `127.1`."""
    return ip_address(host) if ":" in host else IPv4Address(socket.inet_aton(host))


def _find_error(content: bytes) -> str:
    try:
        found = msgspec.json.decode(content, type=dict[str, object]).get("error")
    except (msgspec.DecodeError, RecursionError):
        return ""
    return found if isinstance(found, str) and is_error_code(found) else ""


def is_error_code(text: str) -> bool:
    """Whether it may be shown: anything else could be a secret."""
    return text.isascii() and text.isidentifier() and len(text) <= 40
