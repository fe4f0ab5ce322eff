"""What the gate costs, as ratios between two things measured in turn in the same run, in processor time.

keep      keeping text that no earlier call returned, with and without its card, beside encoding, hashing and writing it
repeat    keeping the same text again, which is answered with a reference to the first
small     a 2 KB output through Session.call, beside one tool call through an in-memory MCP client and server
race      what letting a call race the clock adds to a fast tool, beside the same MCP call
string    memory that keeping a large string adds
stream    memory that a stream of 2 GiB adds

    python benchmarks/gate/gate.py [keep] [small] [string] [stream] [--against DIR] [--quick]

--against names another checkout, such as the version before. Its figures are measured in turn with these, round by round.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import logging
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import anyio
from mcp import Client
from mcp.server.mcpserver import MCPServer

from overspill.session.session import Session
from overspill.settings import Settings

CALLS = 50
SMALL = "x" * 2048
LINE = "2026-11-15T04:27:09Z INFO worker 17 finished job 4711 in 35 ms\n"
SIZES = (10_000, 100_000, 262_144, 1_000_000, 10_000_000, 100_000_000)
LIMITS = {(100_000, True): 12.0, (262_144, True): 7.0, (100_000, False): 5.0, (262_144, False): 5.0, (10_000_000, False): 2.0}


def fresh_text(turn: int, size: int) -> str:
    """A log that differs from those of all other turns, in length too. Most of it is repeated if it is large."""
    lines = (
        f"2026-11-15T04:27:09Z INFO {turn} worker {n * 7919 % 99} finished job {n * 104729 % 10**6}\n" for n in range(20_000)
    )
    block = "".join(lines)
    return (block * (size // len(block) + 1))[: size - turn]


def hash_and_write(path: Path, text: str) -> None:
    data = text.encode()
    hashlib.sha256(data).hexdigest()
    path.write_bytes(data)


class Measurements:
    """One version of Overspill in a separate process. It measures one round of something at a time."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._turn = 0

    async def serve(self) -> None:
        """Answer each line of standard input with the figures of one round, in seconds."""
        async with AsyncExitStack() as stack:
            self._server = MCPServer("bench")
            self._server.tool(name="t")(_return_small)
            settings = {"storeDir": str(self._folder), "toolResponseMaxBytes": 8192}
            self._client = await stack.enter_async_context(Client(self._server))
            self._plain = await stack.enter_async_context(Session(Settings(**{"async": False})))
            self._racing = await stack.enter_async_context(Session(Settings()))
            self._keeping = {
                True: await stack.enter_async_context(Session(Settings(**settings))),
                False: await stack.enter_async_context(Session(Settings(**settings, previewTokens=0))),
            }
            for line in sys.stdin:
                what, *given = json.loads(line)
                figures = await {"keep": self.keep, "repeat": self.repeat, "small": self.small}[what](*given)
                print(json.dumps(figures), flush=True)

    async def small(self) -> dict[str, float]:
        return {
            "mcp": await _mean(lambda: self._client.call_tool("t", {"q": "a"})),
            "gate": await _mean(lambda: self._plain.call("t", {"q": "a"}, _return_small)),
            "race": await _mean(lambda: self._racing.call("t", {"q": "a"}, _return_small)),
        }

    async def keep(self, size: int, card: bool) -> dict[str, float]:
        self._turn += 1
        text = fresh_text(self._turn, size)
        path = self._folder / f"plain-{self._turn}"
        started = time.process_time()
        hash_and_write(path, text)
        plain = time.process_time() - started
        return {"plain": plain, "kept": await self._keep(text, card)}  # both files stay: a place that was just freed is quicker

    async def repeat(self, size: int, card: bool) -> dict[str, float]:
        text = fresh_text(0, size)
        return {"plain": 0.0, "kept": await self._keep(text, card)}

    async def _keep(self, text: str, card: bool) -> float:
        async def tool() -> str:
            return text

        started = time.process_time()
        reply = await self._keeping[card].call("t", {}, tool)
        took = time.process_time() - started
        assert reply.kept is not None
        return took


async def _return_small(q: str) -> str:
    return SMALL


async def _mean(work: Callable[[], Awaitable[object]]) -> float:
    """Everything measured with this happens in one thread, and waiting for a busy machine costs nobody."""
    started = time.thread_time()
    for _ in range(CALLS):
        await work()
    return (time.thread_time() - started) / CALLS


class Version:
    """The process that measures one checkout."""

    def __init__(self, name: str, source: Path, folder: Path) -> None:
        self.name = name
        folder.mkdir()
        environ = {**os.environ, "PYTHONPATH": str(source), "XDG_STATE_HOME": str(folder)}
        command = [sys.executable, __file__, "--serve", str(folder)]
        self._process = subprocess.Popen(  # noqa: S603
            command, env=environ, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def measure(self, *what: Any) -> dict[str, float]:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(what) + "\n")
        self._process.stdin.flush()
        return json.loads(self._process.stdout.readline())

    def end(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()


def measure_in_turn(versions: list[Version], rounds: int, *what: Any) -> Mapping[str, dict[str, float]]:
    """The medians of each version. The first round warms up."""
    found: dict[str, list[dict[str, float]]] = {version.name: [] for version in versions}
    for _ in range(rounds + 1):
        for version in versions:
            found[version.name].append(version.measure(*what))
    return {
        name: {key: statistics.median(each[key] for each in figures[1:]) for key in figures[0]} for name, figures in found.items()
    }


def small(versions: list[Version], quick: bool) -> None:
    for name, took in measure_in_turn(versions, 10 if quick else 30, "small").items():
        mcp, gate, race = (took[key] * 1e6 for key in ("mcp", "gate", "race"))
        print(f"small    {name:6} gate {gate:6.1f} us   mcp call {mcp:6.1f} us   ratio {gate / mcp:6.1%}   (at most 5 %)")
        print(
            f"race     {name:6} adds {race - gate:6.1f} us   mcp call {mcp:6.1f} us   ratio {(race - gate) / mcp:6.1%}   (10 %)"
        )


def keep(versions: list[Version], quick: bool) -> None:
    for size in SIZES[: -1 if quick else None]:
        rounds = 20 if size <= 262_144 else 8 if size <= 10_000_000 else 3
        for card in (False, True):
            most = f"   (at most {LIMITS[size, card]:g})" if (size, card) in LIMITS else ""
            for name, took in measure_in_turn(versions, rounds, "keep", size, card).items():
                plain, kept = took["plain"] * 1000, took["kept"] * 1000
                what = "with card   " if card else "without card"
                print(
                    f"keep     {name:6} {size / 1000:6.0f} KB {what} {kept:7.2f} ms, {kept / plain:5.1f} × {plain:.2f} ms{most}"
                )
    for name, took in measure_in_turn(versions, 20, "repeat", 262_144, True).items():
        print(f"repeat   {name:6}    262 KB              {took['kept'] * 1000:7.2f} ms")


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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parts = ("keep", "small", "string", "stream")
    parser.add_argument("parts", nargs="*", choices=[*parts, []], help="what to measure; everything if none is named")
    parser.add_argument("--against", metavar="DIR", help="another checkout to measure in turn")
    parser.add_argument("--quick", action="store_true", help="no 100 MB, fewer rounds, and a stream of 64 MiB instead of 2 GiB")
    parser.add_argument("--serve", metavar="FOLDER", help=argparse.SUPPRESS)
    given = parser.parse_args()
    logging.getLogger("overspill").setLevel(logging.ERROR)
    if given.serve:
        anyio.run(Measurements(Path(given.serve)).serve)
        return
    wanted = given.parts or parts
    with tempfile.TemporaryDirectory() as folder:
        sources = {"now": Path(__file__).parents[2]} | ({"before": Path(given.against)} if given.against else {})
        versions = [Version(name, source.resolve() / "src", Path(folder, name)) for name, source in sources.items()]
        for part in (keep, small):
            if part.__name__ in wanted:
                part(versions, given.quick)
        for version in versions:
            version.end()
    if "string" in wanted:
        anyio.run(string, 256 * 2**20)
    if "stream" in wanted:
        anyio.run(stream, (64 if given.quick else 2048) * 2**20)


if __name__ == "__main__":
    main()
