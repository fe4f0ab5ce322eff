"""What the gate costs, as ratios between two things measured in the same run.

small     a 2 KB output through Session.call, beside one tool call through an in-memory MCP client and server
race      what letting a call race the clock adds to a fast tool, beside the same MCP call
keep      keeping 10 MB of text, beside hashing and writing those bytes
medium    keeping 100 and 262 KB of text, beside encoding, hashing and writing it, in processor time
string    memory that keeping a large string adds
stream    memory that a stream of 2 GiB adds
"""

from __future__ import annotations

import argparse
import hashlib
import logging
import os
import statistics
import tempfile
import threading
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import anyio
from mcp import Client
from mcp.server.mcpserver import MCPServer

from overspill.session.session import Session
from overspill.settings import Settings

ROUNDS = 30
CALLS = 50
SMALL = "x" * 2048
LINE = "2026-11-15T04:27:09Z INFO worker 17 finished job 4711 in 35 ms\n"
TEN_MB = (LINE * (10_000_000 // len(LINE) + 1))[:10_000_000]


async def mean_us(work: Callable[[], Awaitable[object]]) -> float:
    """Of processor time: everything measured with this happens in one thread, and waiting for a busy machine costs nobody."""
    started = time.thread_time()
    for _ in range(CALLS):
        await work()
    return (time.thread_time() - started) / CALLS * 1e6


async def small() -> None:
    async def tool(q: str) -> str:
        return SMALL

    server = MCPServer("bench")
    server.tool(name="t")(tool)
    async with (
        Client(server) as client,
        Session(Settings(**{"async": False})) as plain,
        Session(Settings()) as racing,
    ):
        times: dict[str, list[float]] = {"mcp": [], "gate": [], "race": []}
        for _ in range(ROUNDS):  # interleaved, so that whatever else the machine does hits all three
            times["mcp"].append(await mean_us(lambda: client.call_tool("t", {"q": "a"})))
            times["gate"].append(await mean_us(lambda: plain.call("t", {"q": "a"}, tool)))
            times["race"].append(await mean_us(lambda: racing.call("t", {"q": "a"}, tool)))
    mcp, gate, race = (statistics.median(times[name]) for name in ("mcp", "gate", "race"))
    print(f"small    gate {gate:7.1f} us   mcp call {mcp:7.1f} us   ratio {gate / mcp:6.1%}   (at most 5 %)")
    print(f"race     adds {race - gate:7.1f} us   mcp call {mcp:7.1f} us   ratio {(race - gate) / mcp:6.1%}   (at most 10 %)")


def hash_and_write(path: Path, text: str = TEN_MB) -> None:
    data = text.encode()
    hashlib.sha256(data).hexdigest()
    path.write_bytes(data)


async def keep() -> None:
    async def tool() -> str:
        return TEN_MB

    ratios: list[float] = []
    with tempfile.TemporaryDirectory() as folder:
        for turn in range(15):
            started = time.perf_counter()
            hash_and_write(Path(folder, f"plain-{turn}"))
            plain = time.perf_counter() - started
            async with Session(Settings(storeDir=folder)) as session:
                started = time.perf_counter()
                await session.call("t", {}, tool)
                ratios.append((time.perf_counter() - started) / plain)
    print(f"keep     10 MB against hash and write: ratio {statistics.median(ratios):.2f}   (at most 2.5)")


async def medium(size: int) -> None:
    text = "".join(f"2026-11-15T04:27:09Z INFO worker {n * 7919 % 99} finished job {n * 104729 % 10**6}\n" for n in range(6000))[
        :size
    ]

    async def tool() -> str:
        return text

    plain: list[float] = []
    kept: list[float] = []
    with tempfile.TemporaryDirectory() as folder:
        async with Session(Settings(storeDir=folder)) as session:
            await session.call("warm", {}, tool)
            for turn in range(ROUNDS):
                started = time.process_time()
                hash_and_write(Path(folder, f"plain-{turn}"), text)
                plain.append(time.process_time() - started)
                started = time.process_time()
                await session.call("t", {}, tool)
                kept.append(time.process_time() - started)
    ratio = statistics.median(kept) / statistics.median(plain)
    print(f"medium   {size / 1000:.0f} KB against encode, hash and write: ratio {ratio:.1f}   (at most 5)")


class Peak:
    """The most resident memory while it is open, above what there was before."""

    def __enter__(self) -> Peak:
        self._before = self.added = resident()
        self._open = True
        self._thread = threading.Thread(target=self._watch)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._open = False
        self._thread.join()
        self.added -= self._before

    def _watch(self) -> None:
        while self._open:
            self.added = max(self.added, resident())
            time.sleep(0.002)


def resident() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


async def string(size: int) -> None:
    text = LINE * (size // len(LINE))

    async def tool() -> str:
        return text

    async with Session(Settings()) as session:
        await session.call("warm", {}, lambda: LINE * 20_000)
        with Peak() as peak:
            await session.call("t", {}, tool)
    print(f"string   {size / 2**20:.0f} MiB kept, {peak.added / 2**20:.1f} MiB added   (at most 16)")


async def stream(size: int) -> None:
    chunk = LINE * 16384

    async def tool() -> AsyncIterator[str]:
        for _ in range(size // len(chunk)):
            yield chunk

    settings = Settings(truncation={"maxArtifactSize": None}, **{"async": False}, toolTimeout=3000)
    async with Session(settings) as session:
        await session.call("warm", {}, lambda: LINE * 20_000)
        with Peak() as peak:
            reply = await session.call("t", {}, tool)
    stored = reply.kept.size.bytes if reply.kept else 0
    print(f"stream   {stored / 2**30:.2f} GiB kept, {peak.added / 2**20:.1f} MiB added   (at most 64)")


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a stream of 64 MiB instead of 2 GiB")
    quick = parser.parse_args().quick
    logging.getLogger("overspill").setLevel(logging.ERROR)
    await small()
    await keep()
    for size in (100_000, 262_144):
        await medium(size)
    await string(256 * 2**20)
    await stream((64 if quick else 2048) * 2**20)


if __name__ == "__main__":
    anyio.run(main)
