"""A day of a hub: conversations that come and go while its clock runs ahead."""

from __future__ import annotations

import asyncio
import gc
import json
import os
import socket
import sys
from collections import Counter
from collections.abc import AsyncGenerator, Mapping
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import anyio
import anyio.to_thread
from hubs import ENVIRON
from waiting import until

import overspill
from overspill.cli.hubbed import serve_front
from overspill.cli.serving import SharedParts
from overspill.hub import frames
from overspill.hub.place import Place, send_first
from overspill.hub.process import Hub

DAY = 86_400.0
_PATIENCE = 60.0
_HANDSHAKE = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
_LONG = ENVIRON.replace('"text": text', '"text": text * 1000')


class DayLoop(asyncio.SelectorEventLoop):
    """An event loop whose clock can be put forward."""

    ahead = 0.0

    def time(self) -> float:
        return super().time() + self.ahead


class Held(NamedTuple):
    """What the process of the hub holds between two conversations."""

    objects: Counter[str]
    """Ours and those of the libraries that serve, by type."""
    blocks: int
    """Allocated by Python."""
    files: int
    resident: float
    """MB."""


class Client:
    """What a front sends and gets, without the process."""

    def __init__(self, place: Place, environ: Mapping[str, str]) -> None:
        variables = [f"{name}={value}" for name, value in environ.items()]
        words = ["proxy", "--", sys.executable, "-c", _LONG]
        self._link = place.connect(_PATIENCE)
        self._confirmations = send_first(self._link, frames.pack_hello(words, environ["HOME"], variables, overspill.__version__))
        self._received = bytearray()
        self._asked = 0
        self.ask("initialize", **_HANDSHAKE)
        self._send({"method": "notifications/initialized"})

    def ask(self, method: str, **params: object) -> Any:
        self._asked += 1
        self._send({"id": self._asked, "method": method, "params": params})
        while True:
            kind, payload = self._next()
            if kind == frames.ANSWER:
                return json.loads(frames.unpack_answer(payload)[1])["result"]

    def leave(self) -> None:
        self._link.sendall(frames.pack(frames.END))
        while self._next()[0] != frames.EXIT:
            pass
        self.close()

    def close(self) -> None:
        self._link.close()
        self._confirmations.close()

    def _send(self, message: dict[str, Any]) -> None:
        self._link.sendall(frames.pack(frames.DATA, json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n"))

    def _next(self) -> tuple[bytes, bytes]:
        while (frame := frames.unpack(self._received, 1 << 30)) is None:
            data = self._link.recv(1 << 16)
            assert data, "the hub hung up"
            self._received += data
        return frame


def converse(place: Place, environ: Mapping[str, str]) -> None:
    with closing(Client(place, environ)) as client:
        assert client.ask("tools/list")["tools"]
        answer = client.ask("tools/call", name="where", arguments={})
        assert answer["content"][-1]["type"] == "resource_link", answer
        client.leave()


async def live(environ: Mapping[str, str], conversations: int) -> AsyncGenerator[int]:
    """Serve this many conversations in a day, next to one that stays, and yield after each. Call this in a `DayLoop`."""
    loop = asyncio.get_running_loop()
    assert isinstance(loop, DayLoop)
    place = Place.of(environ)
    place.check()
    lock = place.take_lock()
    assert lock is not None
    listener = socket.socket(fileno=place.listen().detach())
    stop = anyio.Event()
    hub = Hub(place, partial(serve_front, SharedParts()), environ, Path(environ["HOME"], "lists"), 600, stop)
    async with anyio.create_task_group() as group:
        group.start_soon(hub.run, listener)
        stays = await anyio.to_thread.run_sync(Client, place, environ)
        try:
            for number in range(conversations):
                await anyio.to_thread.run_sync(converse, place, environ)
                await until(lambda: len(hub.describe()["fronts"]) == 1)
                answer = await anyio.to_thread.run_sync(lambda: stays.ask("tools/call", name="where", arguments={}))
                assert not answer.get("isError"), answer
                loop.ahead += DAY / conversations
                yield number
        finally:
            stays.close()
            stop.set()
    os.close(lock)


def measure() -> Held:
    gc.collect()
    types: list[type[object]] = [type(each) for each in gc.get_objects()]
    ours = Counter(f"{each.__module__}.{each.__qualname__}" for each in types if each.__module__.startswith(("overspill", "mcp")))
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return Held(ours, sys.getallocatedblocks(), len(os.listdir("/proc/self/fd")), pages * os.sysconf("SC_PAGE_SIZE") / 1e6)
