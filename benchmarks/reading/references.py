"""What references in the arguments of one call cost, in processor time: is it linear?

    python benchmarks/reading/references.py

whole  each reference is a whole small output
lines  each reference is a line of one output of 40 KB
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable

import anyio

from overspill import Session, Settings

COUNTS = 80, 800, 8_000
LINES, ROUNDS = 2_700, 3


def line(number: int) -> str:
    place = number % LINES + 1
    return f"L{place}-{place}"


async def measure(session: Session, name: str, reference: Callable[[int], str]) -> None:
    best: list[float] = []
    for count in COUNTS:
        taken: list[float] = []
        for _ in range(ROUNDS):
            given = [reference(number) for number in range(count)]
            start = time.process_time()
            reply = await session.call("count", {"values": given}, lambda values: f"{len(values)} {sum(map(len, values))}")
            taken.append(time.process_time() - start)
            assert reply.text.startswith(f"{count} "), reply.text
        best.append(min(taken))
    figures = ", ".join(f"{count:,}: {took * 1000:.0f} ms" for count, took in zip(COUNTS, best, strict=True))
    print(f"{name:5} {figures}; each costs {best[2] / best[1] / 10:.2f} x at 8,000 of what it costs at 800")


async def compare() -> None:
    with tempfile.TemporaryDirectory() as folder:
        async with Session(Settings(storeDir=folder, toolResponseMaxBytes=20)) as session:
            small = (await session.call("small", {}, lambda: "a short text of a few words")).kept
            long = (await session.call("long", {}, lambda: "".join(f"{number:06} a line\n" for number in range(LINES)))).kept
            assert small is not None
            assert long is not None
            await measure(session, "whole", lambda _: f"{{{{output:{small.handle}}}}}")
            await measure(session, "lines", lambda number: f"{{{{output:{long.handle}#{line(number)}}}}}")


if __name__ == "__main__":
    anyio.run(compare)
