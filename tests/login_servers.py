"""Servers behind a login: authorization servers from npm and PyPI, and a door that believes one of them, or lies."""

from __future__ import annotations

import json
import os
import re
import socket
import subprocess
import threading
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlencode

import httpx2
import pytest
from packages import NPM, PYTHON, Unavailable, npm_home, python_home
from small_servers import answer
from waiting import wait_until

from overspill.mcp.client.config import ServerConfig
from overspill.settings.keys import LoginSettings

OIDC = {"node": NPM["node"], "oidc-provider": "9.13.3"}
PYTHON.setdefault("fastmcp", ("fastmcp==4.1.2",))
_SERVERS = Path(__file__).parent / "servers"
_START_SECONDS = 60
Page = tuple[int, Mapping[str, str], bytes]


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


def listens(process: subprocess.Popen[bytes], port: int) -> bool:
    assert process.poll() is None, process.args
    try:
        socket.create_connection(("127.0.0.1", port), 1).close()
    except OSError:
        return False
    return True


@contextmanager
def running(command: list[str | Path], port: int, environ: Mapping[str, str] | None = None) -> Generator[None]:
    """A process, from when it listens at a port on."""
    process = subprocess.Popen(
        command, env={**os.environ, **(environ or {})}, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        wait_until(lambda: listens(process, port), within=_START_SECONDS)
        yield
    finally:
        process.kill()
        process.wait()


class OidcProvider(NamedTuple):
    issuer: str

    def introspect(self, token: str) -> set[str] | None:
        """The scopes of a token, None if it is not valid."""
        if not token:
            return None
        known = httpx2.post(f"{self.issuer}/token/introspection", data={"token": token}, auth=("resource", "of-the-resource"))
        found = known.json()
        return set(found.get("scope", "").split()) if found["active"] else None

    @property
    def refreshed(self) -> int:
        """How often a token was refreshed."""
        return int(httpx2.get(f"{self.issuer}/count", timeout=60).json()["refreshed"])

    def revoke(self, token: str, client: str) -> None:
        data = {"token": token, "client_id": client}
        assert httpx2.post(f"{self.issuer}/token/revocation", data=data, timeout=60).status_code == 200


def _skip_without(reason: Unavailable) -> None:
    pytest.fail(str(reason)) if os.environ.get("CI") else pytest.skip(str(reason))


@contextmanager
def oidc_provider(seconds: int = 600, key: str = "null") -> Generator[OidcProvider]:
    """oidc-provider from npm. Its access tokens live this long."""
    try:
        home = npm_home("oidc-provider", OIDC)
    except Unavailable as reason:
        _skip_without(reason)
        raise
    port = free_port()
    node = home / "node_modules" / "node" / "bin" / "node"
    with running([node, _SERVERS / "oidc_provider.mjs", home, str(port), str(seconds)], port, {"MACHINE_KEY": key}):
        yield OidcProvider(f"http://127.0.0.1:{port}")


class FastServer(NamedTuple):
    url: str
    ahead: Path
    """How many seconds its clock is ahead."""

    def set_ahead(self, seconds: float) -> None:
        """Never half of it, which the server might read."""
        new = self.ahead.with_suffix(".new")
        new.write_text(str(seconds))
        new.replace(self.ahead)


@contextmanager
def fastmcp_server(folder: Path) -> Generator[FastServer]:
    """A server of FastMCP from PyPI, with the authorization server that it brings."""
    try:
        python = python_home("fastmcp") / "bin" / "python"
    except Unavailable as reason:
        _skip_without(reason)
        raise
    port, ahead = free_port(), folder / "ahead"
    ahead.write_text("0")
    with running([python, _SERVERS / "login_fastmcp.py", str(port), ahead], port):
        yield FastServer(f"http://127.0.0.1:{port}/mcp", ahead)


class Door:
    """An MCP server behind a login. A test sets what it says of itself, and whom it lets in."""

    def __init__(self, check: Callable[[str], set[str] | None]) -> None:
        self.check = check
        self.pages: dict[str, Page | Callable[[bytes], Page]] = {}
        self.wanted = {"notes:read"}
        self.wanted_by_tool: dict[str, set[str]] = {}
        self.seen: list[str] = []
        """The tokens that it got, and the paths of pages that it was asked for."""
        self.url = ""
        self.date = ""
        """What it says the time is, if that is wrong."""

    @property
    def origin(self) -> str:
        return self.url.removesuffix("/mcp")

    def describe(self, issuer: str, **more: Any) -> None:
        """Say which authorization server it believes."""
        found = {"resource": self.url, "authorization_servers": [issuer], "scopes_supported": sorted(self.wanted), **more}
        self.pages["/.well-known/oauth-protected-resource/mcp"] = page(found)

    def be_issuer(self, **more: Any) -> None:
        """Be an authorization server, too, of which the pages say what follows."""
        origin = self.origin
        found = {
            "issuer": origin,
            "authorization_endpoint": f"{origin}/authorize",
            "token_endpoint": f"{origin}/token",
            "registration_endpoint": f"{origin}/register",
        }
        self.describe(origin)
        self.pages["/.well-known/oauth-authorization-server"] = page({**found, **more})
        self.pages["/register"] = page({"client_id": "c1", "redirect_uris": ["http://127.0.0.1/callback"]}, 201)
        self.pages["/token"] = page({"access_token": "t1", "token_type": "Bearer", "refresh_token": "r1"})

    def config(self, name: str = "notes", **login: Any) -> ServerConfig:
        return ServerConfig(name, url=self.url, login=LoginSettings(**login))


def page(value: Any, status: int = 200, **headers: str) -> Page:
    return status, {"content-type": "application/json", **headers}, json.dumps(value).encode()


@contextmanager
def door(check: Callable[[str], set[str] | None] = {"t1": {"notes:read"}}.get) -> Generator[Door]:
    opened = Door(check)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("content-length", 0)))
            path = self.path.partition("?")[0]
            if path != "/mcp":
                opened.seen.append(path)
                found = opened.pages.get(path, page({}, 404))
                self._say(found(body) if callable(found) else found)
                return
            token = self.headers.get("authorization", "").removeprefix("Bearer ")
            opened.seen.append(token)
            scopes = opened.check(token)
            message = json.loads(body or b"{}")
            tool = (message.get("params") or {}).get("name", "")
            wanted = opened.wanted_by_tool.get(tool, set()) | opened.wanted
            if scopes is None:
                self._say((401, {"www-authenticate": f'Bearer scope="{" ".join(sorted(opened.wanted))}"'}, b"{}"))
            elif wanted - scopes:
                scope = " ".join(sorted(wanted))
                self._say((403, {"www-authenticate": f'Bearer error="insufficient_scope", scope="{scope}"'}, b"{}"))
            elif not body:
                self._say(page({}, 405))
            else:
                said = answer(message)
                self._say((202, {}, b"") if said is None else page(said))

        do_GET = do_DELETE = do_POST  # noqa: N815

        def _say(self, said: Page) -> None:
            status, headers, body = said
            self.send_response_only(status)
            self.send_header("date", opened.date or self.date_time_string())
            for name, value in {**headers, "content-length": str(len(body))}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    opened.url = f"http://127.0.0.1:{server.server_port}/mcp"
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield opened
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


async def visit(url: str) -> None:
    """What a browser does whose user agrees to everything."""
    async with httpx2.AsyncClient(follow_redirects=True, timeout=60) as browser:
        response = await browser.get(url)
        for _ in range(3):  # to log in, and to agree, on the pages of oidc-provider
            form = re.search(r'<form[^>]*action="([^"]*)"', response.text)
            if form is None:
                break
            prompt = re.search(r'name="prompt" value="(\w+)"', response.text)
            assert prompt
            response = await browser.post(form[1], data={"prompt": prompt[1], "login": "ada", "password": "any"})
        assert response.text == "Overspill has the answer. You can close this window.", response.text[:500]


def answer_url(redirect_uri: str, **fields: str) -> str:
    return f"{redirect_uri}?{urlencode(fields)}"
