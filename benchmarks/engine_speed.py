"""How long the engine takes and how much memory, against `text.lower().split()` on the same text.

    python benchmarks/engine_speed.py [--large]     one line for each kind of text; --large adds 100 MB

Each kind runs in a process of its own, because peak memory never goes down.
"""

from __future__ import annotations

import argparse
import json
import mmap
import random
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from overspill.lexical import build, select

MB = 1_000_000
WORDS = (
    "alpha", "request", "server", "timeout", "user", "payment", "handler", "stream", "cache",
    "index", "worker", "queue", "token", "session", "retry", "limit", "order", "shard",
)  # fmt: skip


def _log(random_: random.Random) -> Iterator[str]:
    number = 0
    while True:
        number += 1
        words = " ".join(random_.choices(WORDS, k=8))
        level = random_.choices(("INFO", "DEBUG", "WARN", "ERROR"), (70, 20, 8, 2))[0]
        time_ = f"2026-03-0{number % 9 + 1}T10:{number // 60 % 60:02}:{number % 60:02}Z"
        yield f"{time_} {level} [{random_.choice(WORDS)}-{number % 97}] {words} id={number}\n"


def _coloured(random_: random.Random) -> Iterator[str]:
    for line in _log(random_):
        yield line.replace(" INFO ", " \x1b[32mINFO\x1b[0m ").replace(" ERROR ", " \x1b[31mERROR\x1b[0m ")


def _json(random_: random.Random) -> Iterator[str]:
    yield '{"items": ['
    number = 0
    while True:
        number += 1
        item = {
            "id": number,
            "name": f"{random_.choice(WORDS)}-{number}",
            "tags": random_.choices(WORDS, k=4),
            "owner": {"mail": f"u{number}@example.org"},
        }
        yield json.dumps(item) + ", "


def _csv(random_: random.Random) -> Iterator[str]:
    yield "id,name,city,amount,comment\n"
    number = 0
    while True:
        number += 1
        comment = " ".join(random_.choices(WORDS, k=5))
        yield f"{number},{random_.choice(WORDS)}-{number},{random_.choice(WORDS)},{random_.randrange(10**6)},{comment}\n"


def _html(random_: random.Random) -> Iterator[str]:
    yield "<!doctype html><html><body><h1>Report</h1><table><tr><th>id</th><th>name</th><th>amount</th></tr>"
    number = 0
    while True:
        number += 1
        name = f'<a href="/{number}">{random_.choice(WORDS)}-{number}</a>'
        yield f'<tr class="row"><td>{number}</td><td>{name}</td><td>{random_.randrange(10**6)}</td></tr>\n'


def _prose(random_: random.Random) -> Iterator[str]:
    while True:
        sentences = (" ".join(random_.choices(WORDS, k=12)).capitalize() + "." for _ in range(6))
        yield " ".join(sentences) + "\n\n"


KINDS: dict[str, Callable[[random.Random], Iterator[str]]] = {
    "log": _log, "coloured log": _coloured, "json": _json, "csv": _csv, "html": _html, "prose": _prose,
}  # fmt: skip


def _write(path: Path, kind: str, size: int) -> None:
    written = 0
    with path.open("w") as file:
        for part in KINDS[kind](random.Random(7)):  # noqa: S311
            written += file.write(part)
            if written >= size:
                return


def _timed(work: Callable[[], object]) -> float:
    """CPU seconds: one thread does all the work, and a busy machine would spoil the ratio of two wall-clock times."""
    start = time.process_time()
    work()
    return time.process_time() - start


def _resident_mb() -> float:
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize() / MB


def _peak_mb() -> float:
    status = Path("/proc/self/status").read_text()
    return int(status.split("VmHWM:")[1].split()[0]) * 1024 / MB


def measure(path: Path, base: float) -> None:
    """Prints times in units of `base` seconds, and the peak of memory above what was there before."""
    select(build(b"warm up\n"), "anything")
    before = _resident_mb()
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        index = build(data)
        first = _timed(lambda: select(index, "timeout of worker-4242 in the payment handler"))
        later = max(
            _timed(lambda query=query: select(index, query))
            for query in ("id=31337", "every ERROR of the cache shard", "why did the request fail", "order retry limit 777")
        )
        peak = _peak_mb() - before
        covered = index.searched_bytes / index.total_bytes
        print(f"{first / base:8.1f} {later / base:8.1f} {peak:9.0f} {peak * MB / len(data):8.1f} {covered:8.0%}")


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--large", action="store_true", help="100 MB of each kind, too")
    arguments.add_argument("--measure", nargs=2, metavar=("FILE", "SECONDS"), help=argparse.SUPPRESS)
    given = arguments.parse_args()
    if given.measure:
        measure(Path(given.measure[0]), float(given.measure[1]))
        return
    print("kind             MB    first    later   peak MB   x text  covered   (times in splits of 10 MB)")
    for size in (10, 32, 100) if given.large else (10,):
        for kind in KINDS:
            with tempfile.TemporaryDirectory() as folder:
                path = Path(folder) / "text"
                _write(path, kind, 10 * MB)
                text = path.read_text()
                base = min(_timed(lambda text=text: text.lower().split()) for _ in range(3))
                del text
                _write(path, kind, size * MB)
                row = subprocess.run(  # noqa: S603
                    [sys.executable, __file__, "--measure", str(path), str(base)], capture_output=True, text=True, check=True
                )
                print(f"{kind:14s} {size:4d} {row.stdout.rstrip()}   split {base:.3f} s", flush=True)


if __name__ == "__main__":
    main()
