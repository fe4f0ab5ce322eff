"""A client that speaks MCP in plain lines, so that a test sees exactly what stands on the wire."""

from __future__ import annotations

import itertools
import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO

import anyio
from forked import Forked

from overspill.mcp.client.config import ServerConfig
from overspill.mcp.proxy.options import PROXY_DEFAULTS, ProxyOptions
from overspill.mcp.proxy.served_clients import LOCAL, open_clients
from overspill.mcp.proxy.stdio import serve_stdio
from overspill.settings import load

EVERY = Path(__file__).parent / "every_server.py"
OVERSPILL = [sys.executable, "-c", "from overspill.cli import main; main()"]
META = "io.modelcontextprotocol/"
CAPABILITIES: dict[str, Any] = {"elicitation": {}, "sampling": {}, "roots": {"listChanged": True}}
INFO = {"name": "wire", "version": "0"}
PATIENCE = 30.0
SOON: dict[str, Any] = {
    "asyncTimeoutSecs": 0.3,
    "waitMaxSecs": 0.3,
    "truncation": {"overrides": {name: {"async": False} for name in ("lines", "pid", "release")}},
}
"""Slow calls are answered soon. These tools are quick, and on a busy machine they may take longer than that, too."""


def every(era: str = "legacy", name: str = "every", *tools: str) -> list[str]:
    return [sys.executable, "-S", str(EVERY), era, name, *tools]  # without packages, and what measures coverage


def proxied(server: Sequence[str], *options: str) -> list[str]:
    return [*OVERSPILL, "proxy", *options, *(["--", *server] if server else [])]


def config(command: Sequence[str], name: str = "every", **more: Any) -> ServerConfig:
    return ServerConfig(name, command=command[0], args=tuple(command[1:]), **more)


class Wire:
    """`asked` answers what the server asks, by method. As `modern` client it says with each request who it is."""

    def __init__(self, to_server: BinaryIO, from_server: BinaryIO, *, modern: bool = False) -> None:
        self.modern = modern
        self.capabilities: Mapping[str, Any] = CAPABILITIES
        self.info: Mapping[str, Any] = INFO
        self.received: list[dict[str, Any]] = []
        self.asked: dict[str, Any] = {}
        self.log_level: str | None = None
        self.version = "2025-11-25"
        self._to_server = to_server
        self._from_server = from_server
        self._ids = itertools.count(1)
        self._arrived = threading.Condition()
        self._ended = False
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def __enter__(self) -> Wire:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def hang_up(self) -> None:
        """Say goodbye as clients do, by closing the server's input."""
        with suppress(OSError):
            self._to_server.close()

    def close(self) -> None:
        self.hang_up()
        self._reader.join(PATIENCE)
        self._from_server.close()

    def hello(self) -> dict[str, Any]:
        if self.modern:
            return self.result("server/discover")
        greeting = {"protocolVersion": self.version, "capabilities": self.capabilities, "clientInfo": self.info}
        found = self.result("initialize", greeting)
        self.notify("notifications/initialized")
        return found

    def stay(self) -> None:
        """Call a first tool. From the second on, the proxy answers slow calls early, because this client comes back."""
        self.call("pid")

    def write(self, data: bytes) -> None:
        self._to_server.write(data)
        self._to_server.flush()

    def send(self, message: Mapping[str, Any]) -> None:
        self.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")

    def notify(self, method: str, params: Mapping[str, Any] | None = None) -> None:
        self.send({"method": method, **({} if params is None else {"params": params})})

    def begin(self, method: str, params: Mapping[str, Any] | None = None) -> int:
        """Send a request, and leave its answer for later."""
        id = next(self._ids)
        if self.modern:
            level = {} if self.log_level is None else {META + "logLevel": self.log_level}
            known = {
                META + "protocolVersion": "2026-07-28",
                META + "clientInfo": self.info,
                META + "clientCapabilities": self.capabilities,
            }
            params = {**(params or {}), "_meta": {**known, **level, **((params or {}).get("_meta") or {})}}
        self.send({"id": id, "method": method, **({} if params is None else {"params": params})})
        return id

    def answer(self, id: object) -> dict[str, Any]:
        return self.wait(lambda each: "method" not in each and each.get("id") == id)

    def request(self, method: str, params: Mapping[str, Any] | None = None) -> dict[str, Any]:
        return self.answer(self.begin(method, params))

    def result(self, method: str, params: Mapping[str, Any] | None = None) -> dict[str, Any]:
        answer = self.request(method, params)
        assert "result" in answer, answer
        return answer["result"]

    def call(self, name: str, arguments: Mapping[str, Any] | None = None, **more: Any) -> dict[str, Any]:
        return self.result("tools/call", {"name": name, "arguments": arguments or {}, **more})

    def text(self, name: str, arguments: Mapping[str, Any] | None = None, **more: Any) -> str:
        return self.call(name, arguments, **more)["content"][0]["text"]

    def seen(self, method: str, count: int = 1) -> list[dict[str, Any]]:
        """What the server heard of that kind, once it is that many. Each look is a round trip, so nobody sleeps."""
        deadline = time.monotonic() + PATIENCE
        while len(found := json.loads(self.text("seen", {"method": method}))) < count:
            assert time.monotonic() < deadline, found
        return found

    def names(self) -> list[str]:
        """Of all tools, from all pages."""
        page = self.result("tools/list")
        found = [tool["name"] for tool in page["tools"]]
        while cursor := page.get("nextCursor"):
            page = self.result("tools/list", {"cursor": cursor})
            found += [tool["name"] for tool in page["tools"]]
        return found

    def wait(self, wanted: Callable[[dict[str, Any]], bool], since: int = 0) -> dict[str, Any]:
        """The first message like that, from the number `since` on."""

        def found() -> dict[str, Any] | None:
            return next((each for each in self.received[since:] if wanted(each)), None)

        with self._arrived:
            self._arrived.wait_for(lambda: found() is not None or self._ended, PATIENCE)
            message = found()
        assert message is not None, ("nothing like that came", self.received[-5:])
        return message

    def told(self, method: str, since: int = 0) -> dict[str, Any]:
        return self.wait(lambda each: each.get("method") == method, since)

    @property
    def mark(self) -> int:
        return len(self.received)

    def _read(self) -> None:
        with suppress(OSError, ValueError):
            for line in self._from_server:
                message = json.loads(line)
                with self._arrived:
                    self.received.append(message)
                    self._arrived.notify_all()
                if "method" in message and "id" in message:
                    self._reply(message)
        with self._arrived:
            self._ended = True
            self._arrived.notify_all()

    def _reply(self, request: dict[str, Any]) -> None:
        known = self.asked.get(request["method"])
        if known is not None:
            with suppress(OSError, ValueError):
                self.send({"id": request["id"], **known})


class Process(Wire):
    """To a process of its own: a server, or the proxy, which is forked."""

    def __init__(self, command: Sequence[str], *, modern: bool = False, env: Mapping[str, str] | None = None) -> None:
        pipe = subprocess.PIPE
        environ = {**os.environ, **(env or {})}
        is_ours = list(command[:3]) == OVERSPILL
        start, line = (Forked, command[3:]) if is_ours else (subprocess.Popen, command)
        self.process = start(line, stdin=pipe, stdout=pipe, stderr=pipe, env=environ)
        self.errors = b""
        self._hearing = threading.Thread(target=self._hear, daemon=True)
        self._hearing.start()
        super().__init__(self.process.stdin, self.process.stdout, modern=modern)

    def end(self) -> int:
        """Hang up, and wait for it to end by itself."""
        self.hang_up()
        code = self.process.wait(PATIENCE)
        self._hearing.join(PATIENCE)
        return code

    def close(self) -> None:
        try:
            self.end()
        finally:
            self.process.kill()
            super().close()
            self.process.stderr.close()

    def _hear(self) -> None:
        for line in self.process.stderr:
            self.errors += line


class Served(Wire):
    """To a proxy in this process, over real pipes and in front of real servers; only its start is saved."""

    def __init__(
        self,
        servers: Sequence[ServerConfig],
        store: Path,
        *,
        modern: bool = False,
        settings: Mapping[str, Any] | None = None,
        **options: Any,
    ) -> None:
        self.log: list[str] = []
        self._store = store
        self._settings = settings or {}
        self._options = ProxyOptions({each.name: each for each in servers}, dict(os.environ), **options)
        source, to_proxy = os.pipe()
        from_proxy, target = os.pipe()
        self._thread = threading.Thread(target=self._serve, args=(source, target), daemon=True)
        self._thread.start()
        super().__init__(os.fdopen(to_proxy, "wb"), os.fdopen(from_proxy, "rb"), modern=modern)

    def end(self) -> None:
        self.hang_up()
        self._thread.join(PATIENCE)
        assert not self._thread.is_alive()

    def close(self) -> None:
        self.end()
        super().close()

    def _serve(self, source: int, target: int) -> None:
        loaded = load(cli={"storeDir": str(self._store), **self._settings}, usual=[PROXY_DEFAULTS]).settings

        async def run() -> None:
            async with open_clients(loaded, self._options, {}, self.log.append) as clients:
                await serve_stdio(clients[LOCAL], anyio.Event(), source, target)

        try:
            anyio.run(run)
        finally:
            os.close(source)
            os.close(target)
