"""A proxy over HTTP, as a process with two tokens, and calls to it by hand."""

import os
import re
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

SERVER = Path(__file__).parent / "every_server.py"
MAIN = "from overspill.cli import main; main()"
ANN, BOB = "ann's token", "bob's token"


def environ(root: Path) -> dict[str, str]:
    ours = {"HOME": str(root), "XDG_STATE_HOME": str(root / "state"), "XDG_CONFIG_HOME": str(root / "config")}
    return {**os.environ, **ours, "ANN": ANN, "BOB": BOB}


class Listening:
    """A proxy process on a free port of loopback."""

    def __init__(self, root: Path, *options: str) -> None:
        tokens = [] if "--no-token" in options else ["--token-env", "ANN", "--token-env", "BOB"]
        options = tuple(option for option in options if option != "--no-token")
        command = [sys.executable, "-c", MAIN, "proxy", "--http", "127.0.0.1:0", *tokens, *options]
        self.process = subprocess.Popen(
            [*command, "--", sys.executable, str(SERVER)], env=environ(root), stderr=subprocess.PIPE, text=True
        )
        assert self.process.stderr is not None
        self.first = self.process.stderr.readline()
        found = re.search(r"http://\S+", self.first)
        assert found, self.first
        self.url = found.group()

    def post(self, **headers: str) -> httpx2.Response:
        return httpx2.post(self.url, json={"jsonrpc": "2.0", "id": 1, "method": "ping"}, headers=headers)

    @asynccontextmanager
    async def client(self, token: str, mode: str = "legacy", **callbacks: object) -> AsyncIterator[Client]:
        headers = {"Authorization": f"Bearer {token}"}
        async with httpx2.AsyncClient(headers=headers, timeout=60) as http:
            transport = streamable_http_client(self.url, http_client=http)
            async with Client(transport, mode=mode, **callbacks) as client:  # pyright: ignore
                yield client

    def servers(self) -> int:
        listed = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text()
        return len(listed.split())

    def end(self) -> tuple[int, str]:
        self.process.terminate()
        _, said = self.process.communicate(timeout=30)
        return self.process.returncode, said


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
