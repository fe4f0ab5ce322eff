"""What shared stores cost beside the library they use, and how that grows with what is kept. Starts its own servers.

    python benchmarks/stores/cluster.py [--kept 100 1000 10000] [--rounds 15] [--only postgresql|s3] [--names]

Every figure is a ratio of two things that are measured in turns in one run, on loopback: keeping 10 MB through Overspill's
writer and hashing it, beside the library's own upload of the same bytes and hashing them; reading 64 KB out of the middle, beside
the library's own ranged read. Round trips are counted, not measured. Then come the times of one step in a session with so many
outputs, beside the same with the first number of them.

The last lines, which `--names` shows alone, go the way models go: one worker of a shared session has so many outputs, and another
reads some of them through its session, each for the first time. They are milliseconds, on the clock and of this process.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2] / "tests"))

import anyio
import psycopg
from obstore.store import from_url
from store_servers import S3_BUCKET, S3_KEYS, run_postgres, run_s3

from overspill import Session, handles
from overspill.record.events import OutputStored, encode_events, now_ms
from overspill.store.objects.bucket import Bucket
from overspill.store.objects.store import ObjectStore
from overspill.store.postgres.database import Database
from overspill.store.postgres.store import PostgresStore
from overspill.types import Kept, Size

LARGE = os.urandom(10_000_000)
SMALL = os.urandom(20_000)
PIECE = 1 << 20  # what a spool writes at a time
RANGE = 65_536
UPLOADS_AT_ONCE = 16
EVENTS_AT_ONCE = 50
READS = 20


def keep(shelf: Any, data: bytes) -> str:
    id, line = keep_bytes(shelf, data)
    shelf.append_journal(line)
    return id


def keep_bytes(shelf: Any, data: bytes) -> tuple[str, bytes]:
    """As the spool does. Returns the event for the journal too."""
    writer = shelf.create(id := handles.new())
    digest = hashlib.sha256()
    for start in range(0, len(data), PIECE):
        piece = data[start : start + PIECE]
        digest.update(piece)
        writer.append(piece)
    writer.commit()
    return id, b'{"event":"kept","id":"%s","sha256":"%s"}\n' % (id.encode(), digest.hexdigest().encode())


def compare(rounds: int, ours: Callable[[], object], theirs: Callable[[], object]) -> float:
    """The ratio of the best times, measured in turns."""
    times: list[tuple[float, float]] = []
    for _ in range(rounds):
        times.append((measure(ours), measure(theirs)))
    return min(each[0] for each in times) / min(each[1] for each in times)


def measure(work: Callable[[], object]) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


@contextmanager
def count_calls(kind: type, names: list[str]) -> Iterator[list[str]]:
    """Which of these methods, each of which is a round trip, are called meanwhile."""
    called: list[str] = []
    originals = {name: getattr(kind, name) for name in names}

    def counting(name: str) -> Callable[..., Any]:
        def call(self: Any, *args: Any, **more: Any) -> Any:
            called.append(name)
            return originals[name](self, *args, **more)

        return call

    for name in names:
        setattr(kind, name, counting(name))
    try:
        yield called
    finally:
        for name, original in originals.items():
            setattr(kind, name, original)


class Growing:
    """A session with so many outputs."""

    def __init__(self, store: Any, count: int, fill: Callable[[Any, int], None]) -> None:
        self.store = store
        self.shelf = store.open_shelf(handles.new(), retention="keep")
        fill(self.shelf, count)
        self.id = keep(self.shelf, SMALL)

    def keep_one(self) -> None:
        self.id = keep(self.shelf, SMALL)

    def read_one(self) -> None:
        self.shelf.open(self.id).read(0, 100)

    def read_elsewhere(self) -> None:
        self.store.read_shelf(self.shelf.session).open(self.id).read(0, 100)


def fill_many_at_once(shelf: Any, count: int) -> None:
    """The same objects as one by one, when the journal's have been put together."""

    def fill(count: int) -> None:
        lines = [keep_bytes(shelf, SMALL[:100])[1] for _ in range(count)]
        shelf.append_journal(b"".join(lines))

    with ThreadPoolExecutor(UPLOADS_AT_ONCE) as pool:
        list(pool.map(fill, [min(EVENTS_AT_ONCE, count - start) for start in range(0, count, EVENTS_AT_ONCE)]))


def fill_tables(url: str, shelf: Any, count: int) -> None:
    """The same rows as if each was kept, in a hundredth of the time."""
    keep(shelf, SMALL[:100])
    values = {"session": shelf.session, "hold": shelf.hold, "count": count, "data": SMALL[:100], "lines": SMALL[:150] + b"\n"}
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(
            """WITH ids AS (SELECT gen_random_uuid() AS id, n FROM generate_series(1, %(count)s) n), made AS (
                INSERT INTO overspill.outputs (session, id, hold, size, complete)
                SELECT %(session)s, id, %(hold)s, 100, true FROM ids RETURNING id
            ), pieces AS (
                INSERT INTO overspill.pieces (session, id, start, data) SELECT %(session)s, id, 0, %(data)s FROM made
            ) INSERT INTO overspill.journal (session, hold, nth, lines)
                SELECT %(session)s, %(hold)s, 1000000 + n, %(lines)s FROM ids""",
            values,
        )


def measure_growth(
    make: Callable[[str], Any], counts: list[int], rounds: int, fill: Callable[[Any, int], None] = fill_many_at_once
) -> None:
    few = Growing(make("few"), counts[0], fill)
    for count in counts[1:]:
        started = time.perf_counter()
        many = Growing(make(f"many-{count}"), count, fill)
        print(f"  ({count:,} outputs were kept within {time.perf_counter() - started:.0f} s)", flush=True)
        for name in ("keep_one", "read_one", "read_elsewhere"):
            ratio = compare(rounds * 4, getattr(many, name), getattr(few, name))
            print(f"  {name.replace('_', ' ')} with {count:,} kept: {ratio:.2f} of the same with {counts[0]:,}")
        many.store.close()
    few.store.close()


def fill_session(session: Session, count: int, at_once: int) -> list[Kept]:
    """As if each was kept, with so many events in one write of the journal."""
    shelf = session._life.parts.shelf

    def fill(count: int) -> list[Kept]:
        kept = [describe(shelf.session, keep_bytes(shelf, SMALL[:100])[0]) for _ in range(count)]
        shelf.append_journal(encode_events([OutputStored(now_ms(), each) for each in kept]))
        return kept

    with ThreadPoolExecutor(UPLOADS_AT_ONCE) as pool:
        batches = list(pool.map(fill, [min(at_once, count - start) for start in range(0, count, at_once)]))
    return [kept for batch in batches for kept in batch]


def describe(session: str, id: str) -> Kept:
    sha256 = hashlib.sha256(SMALL[:100]).hexdigest()
    return Kept(session, id, "search_the_web", "size_cap", Size(100, 100, 1, 50), sha256, handles.created_ms(id), name_chars=10)


async def measure_names(make: Callable[[str], Any], counts: list[int], at_once: int) -> None:
    for count in counts:
        store = make(f"named-{count}")
        async with (
            Session(name="team", shared=True, store=store) as writer,
            Session(name="team", shared=True, store=store) as reader,
        ):
            kept = await anyio.to_thread.run_sync(fill_session, writer, count, at_once)
            await measure_reads(reader, kept)
        store.close()


async def measure_reads(reader: Session, kept: list[Kept]) -> None:
    each = kept[:: max(1, len(kept) // READS // 2)]
    steps: dict[str, Callable[[int], object]] = {
        "by name": lambda nth: reader.open(each[2 * nth].name).close(),
        "by handle": lambda nth: reader.open(each[2 * nth + 1].handle).close(),
        "notice": lambda _: reader.notice(),
        "kept": lambda _: reader.kept(),
    }
    reader.notice()
    for name, step in steps.items():
        started = time.perf_counter(), time.process_time()
        for nth in range(READS):
            await anyio.to_thread.run_sync(step, nth)
        wall, here = time.perf_counter() - started[0], time.process_time() - started[1]
        each_ms = 1000 / READS
        print(f"  {name} among {len(kept):,}: {wall * each_ms:.1f} ms, {here * each_ms:.1f} of them here", flush=True)


def run_on_postgres(url: str, counts: list[int], rounds: int) -> None:
    store = PostgresStore(url)
    shelf = store.open_shelf(handles.new(), retention="keep")
    plain = psycopg.connect(url, autocommit=True)
    plain.execute("CREATE TABLE plain (id uuid PRIMARY KEY, data bytea)")
    plain.execute("ALTER TABLE plain ALTER COLUMN data SET STORAGE EXTERNAL")

    def upload() -> uuid.UUID:
        hashlib.sha256(LARGE).hexdigest()
        plain.execute("INSERT INTO plain VALUES (%s, %s)", [id := uuid.uuid4(), LARGE])
        return id

    print("PostgreSQL")
    print(f"  keeping 10 MB: {compare(rounds, lambda: keep(shelf, LARGE), upload):.2f} of a plain insert and hashing")
    kept, id = keep(shelf, LARGE), upload()
    # Over connections that have only read: a server process that has once inserted 10 MB has other limits for giving memory back,
    # and then reads ranges in five sixths of the time.
    other, fresh = PostgresStore(url), psycopg.connect(url, autocommit=True)
    reader = other.read_shelf(shelf.session).open(kept)
    query = "SELECT substring(data FROM 5000001 FOR %s) FROM plain WHERE id = %s"
    ratio = compare(
        rounds * 10,
        lambda: reader.read(5_000_000, 5_000_000 + RANGE),
        lambda: fresh.cursor(binary=True).execute(query, [RANGE, id]).fetchone(),
    )
    fresh.close()
    other.close()
    print(f"  reading 64 KB: {ratio:.2f} of a plain ranged read")
    with count_calls(Database, ["rows", "transact"]) as called:
        keep(shelf, SMALL)
    print(f"  keeping 20 KB: {len(called)} round trips")
    plain.close()
    store.close()
    measure_growth(lambda name: PostgresStore(url, tenant=name), counts, rounds, partial(fill_tables, url))


def run_on_s3(url: str, counts: list[int], rounds: int) -> None:
    store = ObjectStore(url)
    shelf = store.open_shelf(handles.new(), retention="keep")
    plain = from_url(f"{url}-plain")

    def upload() -> None:
        hashlib.sha256(LARGE).hexdigest()
        plain.put(str(uuid.uuid4()), LARGE)

    print("S3")
    print(f"  keeping 10 MB: {compare(rounds, lambda: keep(shelf, LARGE), upload):.2f} of a plain upload and hashing")
    plain.put("one", LARGE)
    reader = shelf.open(keep(shelf, LARGE))
    ratio = compare(
        rounds * 10,
        lambda: reader.read(5_300_000, 5_300_000 + RANGE),
        lambda: bytes(plain.get_range("one", start=5_300_000, end=5_300_000 + RANGE)),
    )
    print(f"  reading 64 KB: {ratio:.2f} of a plain ranged read")
    with count_calls(Bucket, ["put", "create", "replace", "get", "range", "find", "list", "delete"]) as called:
        keep(shelf, SMALL)
    print(f"  keeping 20 KB: {len(called)} round trips")
    store.close()
    measure_growth(lambda name: ObjectStore(f"{url}-{name}"), counts, rounds)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kept", type=int, nargs="+", default=[100, 1_000, 10_000])
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--only", choices=["postgresql", "s3"])
    parser.add_argument("--names", action="store_true")
    given = parser.parse_args()
    if given.only != "s3":
        with run_postgres(uuid.uuid4().hex) as url:
            if not given.names:
                run_on_postgres(url, given.kept, given.rounds)
            print("Through a session on PostgreSQL")
            anyio.run(measure_names, lambda name: PostgresStore(url, tenant=name), given.kept, 1)
    if given.only == "postgresql":
        return
    with run_s3(uuid.uuid4().hex) as port:
        os.environ.update({**S3_KEYS, "AWS_ENDPOINT_URL": f"http://127.0.0.1:{port}", "AWS_ALLOW_HTTP": "true"})
        url = f"s3://{S3_BUCKET}/{uuid.uuid4()}"
        if not given.names:
            run_on_s3(url, given.kept, given.rounds)
        print("Through a session on S3")
        anyio.run(measure_names, lambda name: ObjectStore(f"{url}-{name}"), given.kept, EVENTS_AT_ONCE)


if __name__ == "__main__":
    main()
