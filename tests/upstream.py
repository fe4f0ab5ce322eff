"""The servers of `tests/servers`, as real processes, and what tests do with them."""

import json
import os
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import anyio

from overspill.mcp.client.config import ServerConfig
from overspill.mcp.client.connection import ClientIdentity, ServerConnection, connect_alone
from overspill.mcp.client.peer import Peer, ServerAccess
from overspill.mcp.client.server import Server, open_servers

SERVERS = Path(__file__).parent / "servers"
_OF_PACKAGES = ("conformance_server", "durable_tasks", "high", "low", "structured")
"""All others need nothing but the standard library, so they start without packages, and without what measures coverage."""


def script(name: str, /, *args: str, **given: Any) -> ServerConfig:
    return ServerConfig(given.pop("name", name), sys.executable, (*_options(name), str(SERVERS / f"{name}.py"), *args), **given)


def _options(name: str) -> tuple[str, ...]:
    return () if name in _OF_PACKAGES else ("-S",)


@asynccontextmanager
async def up(config: ServerConfig, *, client: ClientIdentity | None = None, within: float = 60) -> AsyncIterator[Server]:
    with anyio.fail_after(within):
        async with open_servers([config], dict(os.environ), client=client) as servers:
            yield servers[config.name]


@asynccontextmanager
async def connected(
    config: ServerConfig, peer: Any = None, *, client: ClientIdentity | None = None
) -> AsyncIterator[ServerConnection]:
    with anyio.fail_after(60):
        async with connect_alone(ServerAccess(config, dict(os.environ), client or ClientIdentity(), peer or Peer())) as link:
            yield link


class Web:
    """A server over HTTP that can be killed and started again in the same place."""

    def __init__(self, name: str, *args: str, path: str = "/mcp") -> None:
        self.path = path
        self._name = name
        self._args = args
        self._port = "0"
        self.start()

    def start(self) -> None:
        how = ["http", self._port, *self._args] if self._name == "high" else [self._port]
        self._process = subprocess.Popen(
            [sys.executable, *_options(self._name), str(SERVERS / f"{self._name}.py"), *how], stdout=subprocess.PIPE, text=True
        )
        assert self._process.stdout is not None
        self._port = self._process.stdout.readline().strip()

    def kill(self) -> None:
        self._process.kill()
        self._process.wait(10)
        assert self._process.stdout is not None
        self._process.stdout.close()

    def said(self) -> str:
        assert self._process.stdout is not None
        return self._process.stdout.readline()

    def config(self, path: str | None = None, headers: Mapping[str, str] | None = None, name: str = "web") -> ServerConfig:
        where = self.path if path is None else path
        return ServerConfig(name, url=f"http://127.0.0.1:{self._port}{where}", headers=headers or {})


@contextmanager
def web(name: str, *args: str, path: str = "/mcp") -> Iterator[Web]:
    server = Web(name, *args, path=path)
    try:
        yield server
    finally:
        server.kill()


def words(result: Any) -> str:
    """The text of a tool's result."""
    content = result.content if hasattr(result, "content") else result["content"]
    return "".join(block["text"] for block in content)


def said(result: Any) -> Any:
    return json.loads(words(result))


def is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False
