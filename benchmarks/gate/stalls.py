"""How long one large result holds up the event loop: the longest wait of a task that wants to run every millisecond.

Each result is kept, asked (a question to the built-in engine) and read (a range, a search). The wait is counted in processor time
of this process, to ignore other load on the machine. The next column is how long the plain way of the standard library blocks the
loop: `json.dumps` for values, `str.encode` for text.
"""

from __future__ import annotations

import argparse
import json
import logging
import tempfile
import time
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

import anyio

from overspill.session.session import Session
from overspill.settings import Settings
from overspill.types import Output

LINE = "2026-11-15T04:27:09Z INFO worker 17 finished job 4711 in 35 ms\n"
MB = 1_000_000
MAX_STALL_MS = 50


class Ticker:
    """The longest wait so far."""

    def __init__(self) -> None:
        self.worst = 0.0

    async def run(self) -> None:
        wall, cpu = time.perf_counter(), time.process_time()
        while True:
            await anyio.sleep(0.001)
            now, used = time.perf_counter(), time.process_time()
            self.worst = max(self.worst, min(now - wall, used - cpu) - 0.001)
            wall, cpu = now, used


async def longest_wait(work: Callable[[], Awaitable[object]]) -> float:
    ticker = Ticker()
    async with anyio.create_task_group() as group:
        group.start_soon(ticker.run)
        await anyio.sleep(0.005)
        await work()
        await anyio.sleep(0.005)
        group.cancel_scope.cancel()
    return ticker.worst * 1000


def text(size: int) -> str:
    return LINE * (size // len(LINE))


def rows(size: int) -> list[dict[str, Any]]:
    """About as many bytes of JSON; two million rows are 200 MB."""
    return [
        {"id": number, "name": f"user {number}", "active": number % 2 == 0, "share": number / 8} for number in range(size // 70)
    ]


RESULTS: dict[str, Callable[[int], Any]] = {
    "str": text,
    "bytes": lambda size: text(size).encode(),
    "dict": lambda size: {"status": "ok", "log": text(size // 2), "rows": {"all": rows(size // 2)}},
    "dicts": rows,
    "mcp": lambda size: Output([{"type": "text", "text": text(size // 2)}, {"type": "text", "text": text(size // 2)}]),
}


def plain(value: Any) -> object:
    if isinstance(value, bytes):
        return bytes(bytearray(value))
    if isinstance(value, Output):
        return [block["text"].encode() for block in value.content]
    return value.encode() if isinstance(value, str) else json.dumps(value, ensure_ascii=False, separators=(",", ":"))


async def measure(name: str, size: int) -> float:
    value = RESULTS[name](size)

    async def tool() -> Any:
        return value

    async def plain_tool() -> None:
        plain(value)

    waits: dict[str, float] = {}
    with tempfile.TemporaryDirectory() as folder:
        async with Session(Settings(storeDir=folder, **{"async": False}, toolTimeout=3000)) as session:
            simple = await longest_wait(plain_tool)
            waits["kept"] = await longest_wait(partial(session.call, name, {}, tool))
            (kept,) = session.kept()
            ask = {"handle": kept.handle, "extract": "worker 17 finished job 4711"}
            waits["asked"] = await longest_wait(partial(session.invoke, "tool_output", ask))
            waits["asked again"] = await longest_wait(partial(session.invoke, "tool_output", {**ask, "extract": "user 4711"}))
            part = {"start": size // 2, "length": 2000}
            waits["read"] = await longest_wait(
                partial(session.invoke, "get_tool_output", {"id": kept.handle, "mode": "slice", "slice": part})
            )
            search = {"id": kept.handle, "mode": "grep", "pattern": "no such line"}
            waits["searched"] = await longest_wait(partial(session.invoke, "get_tool_output", search))
    shown = "   ".join(f"{what} {wait:5.1f}" for what, wait in waits.items())
    print(f"{name:6} {kept.size.bytes / MB:6.1f} MB   plain {simple:7.1f}   {shown}   ms   (at most {MAX_STALL_MS})", flush=True)
    return max(waits.values())


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", type=int, nargs="+", default=[1, 20, 200], metavar="MB")
    parser.add_argument("--only", nargs="+", choices=RESULTS, default=list(RESULTS))
    options = parser.parse_args()
    logging.getLogger("overspill").setLevel(logging.ERROR)
    worst = 0.0
    for size in options.sizes:
        for name in options.only:
            worst = max(worst, await measure(name, size * MB))
    print(f"longest wait {worst:.1f} ms")


if __name__ == "__main__":
    anyio.run(main)
