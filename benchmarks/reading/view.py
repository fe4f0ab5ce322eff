"""The viewer over HTTP, beside the same through the Python API. Run: python benchmarks/reading/view.py [megabytes]

sessions  the first page over 100, 1,000 and 10,000 stored outputs, cold and again
window    a window in the middle and at the end of an output of so many megabytes (1,000), beside `lines` of the stored output
search    a pattern that is not there, in a tenth of it, beside `grep` of the stored output
record    calls whose replies are recorded, beside the same calls without
"""

from __future__ import annotations

import http.client
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from threading import Thread
from urllib.parse import quote

import anyio

from overspill import Session, Settings
from overspill.retrieval.archive import Archive
from overspill.store.files.store import FileStore
from overspill.types import Kept
from overspill.view.serve import Address, Viewer

ROUNDS = 5
LINE = b"2026-01-02T03:04:05Z INFO worker[17] request served in 12 ms, next one queued, nothing new\n"


class Browser:
    def __init__(self, root: Path) -> None:
        self._viewer = Viewer(Archive([FileStore(root)]), Address())
        self._thread = Thread(target=lambda: anyio.run(self._viewer.serve_until, anyio.Event()), daemon=True)
        self._thread.start()
        self._cookie = ""
        answer = self._ask(self._viewer.entrance.start_path)
        self._cookie = answer.headers["set-cookie"].partition(";")[0]

    def get(self, path: str) -> bytes:
        answer = self._ask(self._viewer.entrance.folder + path)
        assert answer.status == 200, answer.status
        return answer.read()

    def _ask(self, path: str) -> http.client.HTTPResponse:
        connection = http.client.HTTPConnection("127.0.0.1", self._viewer.address.port, timeout=120)
        connection.request("GET", path, headers={"Cookie": self._cookie})
        return connection.getresponse()

    def close(self) -> None:
        self._viewer.should_exit = True
        self._thread.join(30)


def measure(action: Callable[[], object]) -> float:
    began = time.perf_counter()
    action()
    return time.perf_counter() - began


def fastest(action: Callable[[], object]) -> float:
    return min(measure(action) for _ in range(ROUNDS))


def store_many(root: Path, count: int) -> None:
    async def run() -> None:
        store = FileStore(root)
        for _ in range(count // 100):
            async with Session(Settings(retention="keep"), store=store, preload=False) as session:
                for number in range(100):
                    await session.keep(b"x" * 200, f"tool_{number % 7}")
        store.close()

    anyio.run(run)


def store_one(root: Path, size: int) -> Kept:
    async def run() -> Kept:
        store = FileStore(root)
        block = LINE * 10_000
        async with Session(Settings(retention="keep"), store=store, preload=False) as session:
            kept = await session.keep((block for _ in range(size // len(block))), "large")
        store.close()
        return kept

    return anyio.run(run)


def show_sessions() -> None:
    print("sessions      cold ms  again ms")
    for count in (100, 1_000, 10_000):
        with tempfile.TemporaryDirectory() as folder:
            store_many(Path(folder), count)
            browser = Browser(Path(folder))
            cold = measure(lambda browser=browser: browser.get("/"))
            print(f"{count:>8,}     {cold * 1000:8.0f}  {fastest(lambda browser=browser: browser.get('/')) * 1000:8.0f}")
            browser.close()


def show_output(megabytes: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        kept, small = store_one(root, megabytes * 1_000_000), store_one(root, megabytes * 100_000)
        browser, archive = Browser(root), Archive([FileStore(root)])
        path = f"/output/{kept.session}/{kept.id}"
        print("\n              viewer ms  Python ms  viewer <= 1.3 x Python + 20 ms")
        with archive.open_unnoted(kept) as stored:
            for name, line in (("middle", kept.size.lines // 2), ("end", kept.size.lines - 300)):
                stored.lines(line, line + 300)  # both have read the positions of lines before
                browser.get(f"{path}/window?lines={line}")
                ours = fastest(lambda line=line: browser.get(f"{path}/window?lines={line}"))
                theirs = fastest(lambda line=line: stored.lines(line, line + 300))
                print_row(f"window {name}", ours, theirs)
        with archive.open_unnoted(small) as stored:
            searched = f"/output/{small.session}/{small.id}/search?way=grep&words={quote('needle-[0-9]+')}"
            ours, theirs = fastest(lambda: browser.get(searched)), fastest(lambda: stored.grep("needle-[0-9]+", ignore_case=True))
            print_row(f"search {small.size.bytes // 1_000_000} MB", ours, theirs)
        browser.close()


def show_recording() -> None:
    """Until the session has closed, so that everything is stored. Processor time, of all threads."""
    print("\nrecord          replies ms  figures ms   ratio")
    for name, size, count in (("100 B", 100, 2_000), ("10 KB", 10_000, 2_000), ("1 MB, kept", 1_000_000, 50)):
        replies, figures = (min(call_tools(size, count, setting) for _ in range(ROUNDS)) for setting in ("replies", "figures"))
        print(f"{name:<14}{replies / count * 1000:12.3f}{figures / count * 1000:12.3f}{replies / figures:8.2f}")


def call_tools(size: int, count: int, setting: str) -> float:
    async def run() -> float:
        async with Session(Settings(record=setting), store=FileStore(Path(folder)), preload=False) as session:
            began = time.process_time()
            for _ in range(count):
                await session.call("fetch", {}, lambda: "x" * size)
            await session.close()
            return time.process_time() - began

    with tempfile.TemporaryDirectory() as folder:
        return anyio.run(run)


def print_row(name: str, ours: float, theirs: float) -> None:
    print(f"{name:<14}{ours * 1000:9.1f}  {theirs * 1000:9.1f}  {'yes' if ours <= 1.3 * theirs + 0.02 else 'NO'}")


if __name__ == "__main__":
    show_recording()
    show_sessions()
    show_output(int(sys.argv[1]) if len(sys.argv) > 1 else 1000)
