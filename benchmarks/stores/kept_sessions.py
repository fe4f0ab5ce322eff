"""What opening a session, waiting and a notice cost in stores with many kept sessions. Starts its own servers.

    python benchmarks/stores/kept_sessions.py [--kept 100 10000] [--rounds 7] [--only file|memory|postgresql|s3]

Every kept session has a name of another family, as the sessions of other users have. For each store: the best time of one step
beside the same in a store with the first number of kept sessions, measured in turns in one run. The steps are those of a worker
that runs: it opens a session by name, opens one with a new name, opens one that it shares with others, asks for the notice of a
turn, looks for jobs that other workers run, and lists a page of all sessions. One step is that of a process that just started:
its first session keeps an output of 20 KB. The first time that a process lists a store in files, it learns which sessions there
are; that is measured apart, as a time for each session.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
import uuid
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2] / "tests"))

import anyio
import psycopg
from store_servers import S3_BUCKET, S3_KEYS, run_postgres, run_s3

from overspill import Session, Settings, handles
from overspill.store.files.store import FileStore
from overspill.store.keep import Opening
from overspill.store.memory import MemoryStore
from overspill.store.objects.names import family_keys
from overspill.store.objects.store import ObjectStore
from overspill.store.postgres.store import PostgresStore

STEPS = ("open by name", "open a new name", "first session and output", "open shared", "notice", "wait", "list a page")
UPLOADS_AT_ONCE = 16


def openings(count: int) -> list[Opening]:
    made = [handles.new() for _ in range(count)]
    return [Opening.now(session, f"user {n % 100}/{session}", "keep") for n, session in enumerate(made)]


def fill_files(store: FileStore, count: int) -> None:
    """Puts each session in a separate run, as processes leave them."""
    for opening in openings(count):
        folder = store.root / f"overspill-{os.urandom(6).hex()}" / f"session-{opening.session}"
        for part in (folder.parent, folder):
            part.mkdir(0o700, parents=True)
        for name, data in (("lock", b""), ("journal.jsonl", opening.line)):
            os.close(os.open(folder / name, os.O_CREAT | os.O_WRONLY, 0o600))
            (folder / name).write_bytes(data)


def fill_memory(store: MemoryStore, count: int) -> None:
    for opening in openings(count):
        store.open_shelf(opening.session, name=opening.name, retention="keep").close()


def fill_tables(url: str, tenant: str, count: int) -> None:
    with psycopg.connect(url, autocommit=True) as connection, connection.cursor() as cursor:
        with cursor.copy("COPY overspill.sessions (session, tenant, name, retention, opening, run) FROM STDIN") as copy:
            for each in openings(count):
                copy.write_row((each.session, tenant, each.name, "keep", each.line, str(uuid.uuid4())))
        cursor.execute("ANALYZE overspill.sessions")


def fill_bucket(store: ObjectStore, count: int) -> None:
    """With the objects that a listing looks at."""
    bucket = store._bucket

    def put(opening: Opening) -> None:
        bucket.put(f"openings/{opening.session}", opening.line)
        for key in family_keys(opening):
            bucket.put(key)

    with ThreadPoolExecutor(UPLOADS_AT_ONCE) as pool:
        list(pool.map(put, openings(count)))


class Worker:
    """A process that works in a store with so many kept sessions, and another worker that shares its session."""

    def __init__(self, make: Callable[[], Any]) -> None:
        self.make = make
        self.store = make()
        self.settings = Settings()

    async def __aenter__(self) -> Worker:
        self.mine = Session(self.settings, name="bench", shared=True, store=self.store, preload=False)
        self.other = Session(self.settings, name="bench", shared=True, store=self.store, preload=False)
        await self.mine.begin()
        await self.other.begin()
        await self.other.start("slow", {}, lambda: "done")
        await self.other.stop()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.mine.close()
        await self.other.close()
        self.store.close()

    async def run(self, step: str) -> None:
        match step:
            case "open by name":
                async with Session(self.settings, name="bench-alone", store=self.store, preload=False):
                    pass
            case "open a new name":
                async with Session(self.settings, name=f"bench-{uuid.uuid4()}", store=self.store, preload=False):
                    pass
            case "first session and output":
                store = self.make()
                async with Session(self.settings, name="bench-first", store=store, preload=False) as session:
                    await session.keep("x" * 20_000, "output")
                if store is not self.store:
                    store.close()
            case "open shared":
                async with Session(self.settings, name="bench-others", shared=True, store=self.store, preload=False):
                    pass
            case "notice":
                await anyio.to_thread.run_sync(self.mine.notice)
            case "wait":
                await self.mine.invoke("wait_for_tool_output", {})
            case _:
                self.store.shelves(most=100)


async def measure(few: Worker, many: Worker, rounds: int, title: str) -> None:
    for step in STEPS:
        times: list[tuple[float, float]] = []
        for _ in range(rounds):
            each: list[float] = []
            for worker in (many, few):
                started = time.perf_counter()
                await worker.run(step)
                each.append(time.perf_counter() - started)
            times.append((each[0], each[1]))
        best, base = (min(each[n] for each in times) for n in (0, 1))
        print(f"  {step} with {title}: {best / base:.2f} ({1e3 * best:.1f} ms beside {1e3 * base:.1f} ms)")


async def compare(make: Callable[[int], Any], fill: Callable[[Any, int], None], counts: list[int], rounds: int) -> None:
    async with Worker(filled(make, fill, counts[0])) as few:
        for count in counts[1:]:
            again = filled(make, fill, count)
            started = time.perf_counter()
            again().shelves(family="bench")
            first = time.perf_counter() - started
            print(f"  the first look at {count:,} sessions: {1e3 * first:.0f} ms, {1e6 * first / count:.1f} µs each")
            async with Worker(again) as many:
                await measure(few, many, rounds, f"{count:,} kept sessions")


def filled(make: Callable[[int], Any], fill: Callable[[Any, int], None], count: int) -> Callable[[], Any]:
    store = make(count)
    store.shelves(family="bench")  # makes the tables
    fill(store, count)
    store.close()
    return lambda: make(count)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kept", type=int, nargs="+", default=[100, 10_000])
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--only", choices=["file", "memory", "postgresql", "s3"])
    given = parser.parse_args()
    with ExitStack() as stack:
        if given.only in (None, "file"):
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
            print("files")
            anyio.run(compare, lambda count: FileStore(folder / str(count)), fill_files, given.kept, given.rounds)
        if given.only in (None, "memory"):
            stores: dict[int, MemoryStore] = {}
            print("memory")
            anyio.run(compare, lambda count: stores.setdefault(count, MemoryStore()), fill_memory, given.kept, given.rounds)
        if given.only in (None, "postgresql"):
            url = stack.enter_context(run_postgres(uuid.uuid4().hex))
            print("PostgreSQL")
            make = lambda count: PostgresStore(url, tenant=f"of {count}")  # noqa: E731
            anyio.run(compare, make, lambda _, count: fill_tables(url, f"of {count}", count), given.kept, given.rounds)
        if given.only in (None, "s3"):
            port = stack.enter_context(run_s3(uuid.uuid4().hex))
            os.environ.update({**S3_KEYS, "AWS_ENDPOINT_URL": f"http://127.0.0.1:{port}", "AWS_ALLOW_HTTP": "true"})
            place = f"s3://{S3_BUCKET}/{uuid.uuid4()}"
            print("S3")
            anyio.run(compare, lambda count: ObjectStore(f"{place}-{count}"), fill_bucket, given.kept, given.rounds)


if __name__ == "__main__":
    main()
