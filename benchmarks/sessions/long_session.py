"""Whether the memory of a session stays flat: after 1,000 calls, 10,000 and 100,000, a tenth of them with a kept output.

Every hundredth call runs in the background. At the end, the first and the last output are read back and compared.
"""

from __future__ import annotations

import argparse
import gc
import logging
import time
from pathlib import Path
from tempfile import TemporaryDirectory

import anyio

from overspill import Session, Settings
from overspill.types import Kept

SMALL = "2026-11-15T04:27:09Z INFO finished in 35 ms\n"
PAGE_KIB = 4


def resident_mib() -> float:
    gc.collect()
    return int(Path("/proc/self/statm").read_text("ascii").split()[1]) * PAGE_KIB / 1024


def content(number: int) -> str:
    return f"output {number}\n" + SMALL * 300


async def quick() -> str:
    return SMALL


async def run_calls(session: Session, start: int, end: int, kept: list[Kept]) -> None:
    for number in range(start, end):
        if number % 10 == 0:
            arguments = {"number": number, "note": "x" * 2_000}
            reply = await session.call("dump", arguments, lambda number, note: content(number))
            assert reply.kept is not None
            kept[1:] = [reply.kept]  # the first one stays
        elif number % 100 == 1:
            await session.start("slow", {}, quick)
            await session.invoke("wait_for_tool_output", {})
        else:
            await session.call("look", {"number": number}, lambda number: SMALL)


async def measure(most: int, folder: str) -> None:
    kept: list[Kept] = []
    async with Session(Settings(storeDir=folder, retention="session")) as session:
        done = 0
        for end in (most // 100, most // 10, most):
            started = time.perf_counter()
            await run_calls(session, done, end, kept)
            seconds = (time.perf_counter() - started) / (end - done)
            done = end
            counters, resident = session.counters, resident_mib()
            print(f"{counters.calls:>8,} calls {counters.kept:>7,} kept  {resident:7.1f} MiB  {seconds * 1e6:6.0f} µs a call")
        for each in kept:
            number = int(session.open(each.handle).lines(1, 1).split()[1])
            assert session.open(each.handle).text() == content(number)
        assert len(session.kept()) == counters.kept


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--calls", type=int, default=100_000)
    logging.getLogger("overspill").setLevel(logging.ERROR)
    with TemporaryDirectory() as folder:
        anyio.run(measure, parser.parse_args().calls, folder)


if __name__ == "__main__":
    main()
