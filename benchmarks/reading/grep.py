"""Searching stored outputs, beside other ways to search the same bytes. Run: python benchmarks/reading/grep.py [megabytes]

line      a miss in 10 MB without a line end beside a miss in the same words in lines, in processor time
needle    one line in 100 MB: `overspill.reading.grep` beside `grep -F` on the same file
stored    in outputs of 1 and 10 MB that a tool returned as one text: a hit with its context beside a miss, and a pattern that
          matches every line beside `rg` on the same file, if it is installed (on Debian: apt install ripgrep); in processor time
"""

from __future__ import annotations

import mmap
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import anyio

from overspill import Session, Settings
from overspill.reading import Bound, grep
from overspill.reading.positions import View
from overspill.retrieval.output import StoredOutput

NEEDLE = "needle-4f1c"
ROUNDS = 5
PLAIN = b"2026-01-02T03:04:05Z INFO worker[17] request served in 12 ms, next one queued, nothing new\n"
ACCENTED = "2026-01-02T03:04:05Z INFO Größe geändert, naïve Anfrage № 17 erledigt, nächste wartet\n".encode()


class MappedReader:
    def __init__(self, path: Path) -> None:
        with path.open("rb") as file:
            self._map = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)

    @property
    def size(self) -> int:
        return len(self._map)

    def read(self, start: int, end: int) -> bytes:
        return self._map[start:end]

    def buffer(self) -> memoryview:
        return memoryview(self._map)

    def close(self) -> None:
        self._map.close()


def fastest(action: Callable[[], object], clock: Callable[[], float] = time.perf_counter) -> float:
    def once() -> float:
        start = clock()
        action()
        return clock() - start

    return min(once() for _ in range(ROUNDS))


def children_time() -> float:
    """Of the processor, in programs that were started and have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def compare(name: str, line: bytes, path: Path, size: int) -> None:
    lines = size // len(line)
    near_the_end = lines * 9 // 10
    path.write_bytes(line * near_the_end + f"here is the {NEEDLE}\n".encode() + line * (lines - near_the_end))
    reader = MappedReader(path)
    built = View(reader)
    view_seconds = fastest(lambda: View(reader).lines)
    assert built.lines == lines + 1

    def search(view: View, pattern: str) -> None:
        answer = grep(reader, view, pattern, Bound(12_288))
        assert (answer.hits, answer.total, answer.exact) == (1, 1, True)

    tool = fastest(lambda: subprocess.run(["grep", "-F", NEEDLE, str(path)], check=True, capture_output=True))  # noqa: S603, S607
    print(f"{name}: {size / 1e6:.0f} MB, grep -F {tool * 1000:.0f} ms, building a view {view_seconds * 1000:.0f} ms")
    for what, view, pattern in (
        ("literal, view built", lambda: built, NEEDLE),
        ("literal, fresh view", lambda: View(reader), NEEDLE),
        ("regular expression, view built", lambda: built, "^here.*needle-[0-9a-f]{4}$"),
    ):
        seconds = fastest(lambda view=view, pattern=pattern: search(view(), pattern))
        print(f"  {what}: {seconds * 1000:.0f} ms, {tool / seconds:.2f} of the speed of grep -F")


def compare_one_line(folder: Path) -> None:
    for pattern in ("no-such-needle", "no-such-[a-z]+"):
        seconds: list[float] = []
        for end in (b" ", b"\n"):
            path = folder / "line.log"
            path.write_bytes(PLAIN.replace(b"\n", end) * (10_000_000 // len(PLAIN)))
            reader = MappedReader(path)
            view = View(reader)
            seconds.append(fastest(lambda: grep(reader, view, pattern, Bound(12_288)), time.process_time))  # noqa: B023
        one, many = seconds
        print(f"{pattern} in one line: {one * 1000:.1f} ms, {one / many:.2f} x a miss in lines (at most 2)")


async def compare_stored(folder: Path) -> None:
    async with Session(Settings(storeDir=str(folder / "store"))) as session:
        for size in (1_000_000, 10_000_000):
            lines = size // len(PLAIN)
            text = (PLAIN * (lines * 9 // 10)).decode() + f"here is the {NEEDLE}\n" + (PLAIN * (lines // 10)).decode()
            kept = (await session.call("log", {}, lambda text=text: text)).kept
            assert kept is not None
            (folder / "log.txt").write_text(text)
            with session.open(kept.handle) as stored:

                def search(pattern: str, bound: int = 12_288, context: int = 2, stored: StoredOutput = stored) -> None:
                    grep(stored.reader, stored.view, pattern, Bound(bound), context=context)

                miss, hit = (fastest(lambda what=what: search(what), time.process_time) for what in ("no-such-needle", NEEDLE))
                page, every = (
                    fastest(lambda size=size, context=context: search("worker", size, context), time.process_time)
                    for size, context in ((12_288, 2), (1 << 40, 0))
                )
            print(f"{size / 1e6:.0f} MB stored: a hit {hit / miss:.2f} x a miss ({miss * 1e6:.0f} us)")
            report_beside_rg(folder / "log.txt", page, every)


def report_beside_rg(file: Path, page: float, every: float) -> None:
    if (rg := shutil.which("rg")) is None:
        print(f"  a match in every line: first page {page * 1000:.1f} ms, all of them {every * 1000:.0f} ms; rg is not installed")
        return
    run = [rg, "-n", "worker", str(file)]
    tool = fastest(lambda: subprocess.run(run, check=True, capture_output=True), children_time)  # noqa: S603
    print(
        f"  a match in every line, beside rg ({tool * 1000:.1f} ms): first page {page / tool:.2f}, all of them {every / tool:.1f}"
    )


def main() -> None:
    size = int(sys.argv[1] if len(sys.argv) > 1 else 100) * 1_000_000
    with tempfile.TemporaryDirectory() as folder:
        compare_one_line(Path(folder))
        anyio.run(compare_stored, Path(folder))
        compare("ASCII", PLAIN, Path(folder) / "plain.log", size)
        compare("accented", ACCENTED, Path(folder) / "accented.log", size)


if __name__ == "__main__":
    main()
