"""A proxy over HTTP, as a process with two tokens, and calls to it by hand."""

import asyncio
import json
import os
import re
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import httpx2
from forked import Forked
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from overspill.mcp.client.config import ServerConfig
from overspill.mcp.host_configs.hub_clients import identify_token
from overspill.mcp.proxy.guard import Principals
from overspill.mcp.proxy.http import ListenOptions, serve_http
from overspill.mcp.proxy.options import PROXY_DEFAULTS, SHARED_DEFAULTS, ProxyOptions
from overspill.mcp.proxy.served_clients import open_clients
from overspill.settings import load

SERVER = Path(__file__).parent / "every_server.py"
MAIN = "from overspill.cli import main; main()"
ANN, BOB = "ann's token", "bob's token"


def environ(root: Path) -> dict[str, str]:
    ours = {"HOME": str(root), "XDG_STATE_HOME": str(root / "state"), "XDG_CONFIG_HOME": str(root / "config")}
    return {**os.environ, **ours, "ANN": ANN, "BOB": BOB}


class _Reachable:
    """A proxy over HTTP, and how clients get there."""

    url: str

    def post(self, **headers: str) -> httpx2.Response:
        return httpx2.post(self.url, json={"jsonrpc": "2.0", "id": 1, "method": "ping"}, headers=headers, timeout=60)

    @asynccontextmanager
    async def client(self, token: str, mode: str = "legacy", **more: object) -> AsyncIterator[Client]:
        headers = {"Authorization": f"Bearer {token}"}
        async with httpx2.AsyncClient(headers=headers, timeout=60) as http:
            transport = streamable_http_client(self.url, http_client=http)
            async with Client(transport, mode=mode, **more) as client:  # pyright: ignore
                yield client


class Listening(_Reachable):
    """A proxy process on a free port of loopback."""

    def __init__(self, root: Path, *options: str, max_files: int | None = None, server: Sequence[object] = (SERVER,)) -> None:
        tokens = [] if "--no-token" in options else ["--token-env", "ANN", "--token-env", "BOB"]
        options = tuple(option for option in options if option != "--no-token")
        line = ["proxy", "--http", "127.0.0.1:0", *tokens, *options, "--", sys.executable, "-S", *map(str, server)]
        start: Any = Forked
        if max_files is not None:
            limited = ["sh", "-c", 'ulimit -n "$0" && exec "$@"', str(max_files)]
            start, line = subprocess.Popen, [*limited, sys.executable, "-c", MAIN, *line]
        self.process: subprocess.Popen[str] = start(line, env=environ(root), stderr=subprocess.PIPE, text=True)
        assert self.process.stderr is not None
        self.first = self.process.stderr.readline()
        found = re.search(r"https?://\S+", self.first)
        assert found, self.first
        self.url = found.group()

    def servers(self) -> int:
        listed = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text()
        return len(listed.split())

    def end(self) -> tuple[int, str]:
        self.process.terminate()
        _, said = self.process.communicate(timeout=30)
        return self.process.returncode, said


class Served(_Reachable):
    """A proxy in this process, with options that no command line has."""

    def __init__(self, store: Path, settings: Mapping[str, Any], **options: Any) -> None:
        config = ServerConfig("every", command=sys.executable, args=("-S", str(SERVER)))
        self._options = ProxyOptions({"every": config}, dict(os.environ), **options)
        self._settings = load(cli={"storeDir": str(store), **settings}, usual=[PROXY_DEFAULTS, SHARED_DEFAULTS]).settings
        self._listen = ListenOptions("127.0.0.1", 0, (ANN, BOB))
        self._listener = self._listen.open_socket()
        self.url = self._listen.address(self._listener)
        self._stop = anyio.Event()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread = threading.Thread(target=anyio.run, args=(self._serve,), daemon=True)
        self._thread.start()

    async def _serve(self) -> None:
        self._loop = asyncio.get_running_loop()
        tokens = [identify_token(token.encode()) for token in (ANN, BOB)]
        async with open_clients(self._settings, self._options, {}, lambda _: None, principals=tokens) as clients:
            principals = Principals(lambda _: None, self._options.gone_after, clients)
            await serve_http(principals, self._listen, self._listener, self._stop)

    def end(self) -> None:
        assert self._loop is not None
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(30)
        assert not self._thread.is_alive()


class ByHand:
    """A session of the older protocol that opens no stream, and says goodbye only if told to."""

    def __init__(self, url: str, token: str = ANN, name: str = "by hand") -> None:
        self._url = url
        self._headers = {"Authorization": f"Bearer {token}", "Accept": "application/json, text/event-stream"}
        who = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": name, "version": "1"}}
        self.post({"id": 1, "method": "initialize", "params": who})
        self.post({"method": "notifications/initialized"})

    def post(self, message: Mapping[str, Any], timeout: float = 60) -> dict[str, Any]:
        """The answer, for which it waits this long; empty for a notification."""
        patience = httpx2.Timeout(60, read=timeout)
        answer = httpx2.post(self._url, json={"jsonrpc": "2.0", **message}, headers=self._headers, timeout=patience)
        answer.raise_for_status()
        self._headers |= {name: answer.headers[name] for name in ("mcp-session-id",) if name in answer.headers}
        found = [json.loads(line[6:]) for line in answer.text.splitlines() if line.startswith("data: {")]
        return found[-1] if found else {}

    @property
    def session(self) -> str:
        return self._headers["mcp-session-id"]

    def leave(self) -> None:
        """Says goodbye after all."""
        httpx2.delete(self._url, headers=self._headers, timeout=60).raise_for_status()

    def text(self, name: str, arguments: Mapping[str, Any] | None = None, timeout: float = 60) -> str:
        params = {"name": name, "arguments": arguments or {}}
        return self.post({"id": 2, "method": "tools/call", "params": params}, timeout)["result"]["content"][0]["text"]


VERSION = "2026-07-28"
WHO = {
    "io.modelcontextprotocol/protocolVersion": VERSION,
    "io.modelcontextprotocol/clientInfo": {"name": "by hand", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {},
}


def call(name: str, arguments: dict[str, Any], kind: str = "by hand", **more: str) -> dict[str, Any]:
    """As a stateless client of that kind makes it."""
    headers = {
        "Authorization": f"Bearer {ANN}",
        "Accept": "application/json, text/event-stream",
        "MCP-Protocol-Version": VERSION,
        "Mcp-Method": "tools/call",
        "Mcp-Name": name,
        **more,
    }
    who = {**WHO, "io.modelcontextprotocol/clientInfo": {"name": kind, "version": "1"}, "progressToken": "p"}
    params = {"name": name, "arguments": arguments, "_meta": who}
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
    return {"json": message, "headers": headers, "timeout": 60}
