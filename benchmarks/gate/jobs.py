"""What background jobs cost, as ratios between two things measured in the same run.

schedule  1,000 jobs of mixed duration, 64 at once, beside the ideal schedule; every output checked byte for byte
memory    what those jobs add, beside the bytes they produce, once as many as run at a time are warmed up
abort     ending a session with 200 running jobs
"""

from __future__ import annotations

import argparse
import hashlib
import heapq
import logging
import random
import time
from tempfile import TemporaryDirectory

import anyio
from gate import Peak

from overspill import Session, Settings

PLACES = 64


def ideal(seconds: list[float]) -> float:
    """First come, first served, no time lost between two jobs."""
    places = [0.0] * PLACES
    for each in seconds:
        heapq.heapreplace(places, places[0] + each)
    return max(places)


def content(n: int, size: int) -> bytes:
    line = b"%d 2026-11-15T04:27:09Z INFO finished in 35 ms\n" % n
    return (line * (size // len(line) + 1))[:size]


async def warmed_up(session: Session) -> None:
    """Creates threads, vocabulary and everything else that jobs share."""
    for _ in range(2 * PLACES):
        await session.start("warm", {}, lambda: content(0, 200_000))
    while (await session.invoke("wait_for_tool_output", {})).text != "No async tools running.":
        pass


async def schedule(count: int, folder: str) -> None:
    chance = random.Random(7)  # noqa: S311
    seconds = [chance.choice((0.05, 0.2, 0.6, 1.6)) * chance.uniform(0.5, 1.5) for _ in range(count)]
    sizes = [chance.choice((100, 5_000, 20_000, 60_000)) for _ in range(count)]
    told: list[str] = []

    async def tool(n: int) -> bytes:
        await anyio.sleep(seconds[n])
        return content(n, sizes[n])

    async with Session(Settings(storeDir=folder, maxRunning=PLACES)) as session:
        await warmed_up(session)
        with Peak() as peak:
            started = time.perf_counter()
            ids = [await session.start(f"job-{n}", {"n": n}, tool) for n in range(count)]
            while (text := (await session.invoke("wait_for_tool_output", {})).text) != "No async tools running.":
                told += [line.split()[1] for line in text.splitlines()[1:]]
            took = time.perf_counter() - started
        for n, id in enumerate(ids):
            with session.open(id) as stored:
                expected = content(n, sizes[n])
                assert stored.bytes() == expected
                assert stored.kept.sha256 == hashlib.sha256(expected).hexdigest()
    assert sorted(told) == sorted(f"job-{n}" for n in range(count))
    best = ideal(seconds)
    print(f"schedule {count} jobs in {took:.2f} s   ideal {best:.2f} s   ratio {took / best:.2f}   (at most 1.2)")
    print(f"memory   {peak.added / 2**20:.1f} MiB added for {sum(sizes) / 2**20:.1f} MiB of output")


async def abort(folder: str) -> None:
    async with Session(Settings(storeDir=folder, maxRunning=200)) as session:
        for n in range(200):
            await session.start(f"job-{n}", {}, anyio.sleep_forever)
        await anyio.wait_all_tasks_blocked()
        started = time.perf_counter()
        left = await session.close()
        took = time.perf_counter() - started
    print(f"abort    200 running jobs in {took:.3f} s, {len(left)} left   (at most 1 s, none)")


async def main(count: int) -> None:
    logging.getLogger("overspill").setLevel(logging.ERROR)
    with TemporaryDirectory() as folder:
        await schedule(count, folder)
        await abort(folder)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="100 jobs instead of 1,000")
    parser.add_argument("--trio", action="store_true", help="on trio instead of asyncio")
    options = parser.parse_args()
    anyio.run(main, 100 if options.quick else 1000, backend="trio" if options.trio else "asyncio")
