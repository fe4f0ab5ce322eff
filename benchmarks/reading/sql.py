"""SQL over kept outputs: what it costs beside DuckDB itself, on the same text and in the same run.

    python benchmarks/reading/sql.py [FORMAT:MB …]

By default 10 and 100 MB of CSV, TSV and JSON; `tsv:500` is the largest that is measured now and then. All figures are processor
time of every process that took part, children too, each on a file that was just written. First question: ours against a fresh
process in which DuckDB loads the file into a table and asks it. Later question: ours against a fresh process that opens the table
that ours has written. They take turns, and the least of several counts.
"""

from __future__ import annotations

import json
import random
import resource
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

from overspill.sql.library import Source, SqlLibrary
from overspill.store.readers import BytesReader

QUERY = "SELECT status, count(*) AS n, sum(total) AS s FROM output GROUP BY status ORDER BY status"
LOADED = """
import duckdb, sys
connection = duckdb.connect(config={"threads": "2"})
connection.execute(f"CREATE TABLE output AS FROM {sys.argv[1]}")
print(connection.execute(sys.argv[2]).fetchall())
"""
OPENED = "import duckdb, sys; print(duckdb.connect(sys.argv[1], read_only=True).execute(sys.argv[2]).fetchall())"
MARKS = {"csv": ",", "tsv": "\t"}
DEFAULT = ("csv:10", "tsv:10", "json:10", "csv:100", "tsv:100", "json:100")
REPEATS = {10: 5, 100: 3}


def make_rows(seed: int) -> Iterator[dict[str, object]]:
    chooser, number = random.Random(seed), 0  # noqa: S311
    while True:
        yield {
            "id": number,
            "status": chooser.choice(("open", "paid", "sent")),
            "total": chooser.randrange(100_000) / 4,
            "day": f"2024-{number % 12 + 1:02d}-{number % 28 + 1:02d}",
            "note": f"order {number} of customer {chooser.randrange(977)}",
        }
        number += 1


def write(file: Path, kind: str, size: int, seed: int) -> None:
    written = 0
    with file.open("w") as stream:
        for number, row in enumerate(make_rows(seed)):
            if kind == "json":
                line = ("[" if not number else ",\n") + json.dumps(row)
            else:
                line = ("" if number else MARKS[kind].join(row) + "\n") + MARKS[kind].join(map(str, row.values())) + "\n"
            written += stream.write(line)
            if written >= size:
                break
        stream.write("]" if kind == "json" else "")


def measure(work: Callable[[], object]) -> float:
    before = read_processor_time()
    work()
    return read_processor_time() - before


def read_processor_time() -> float:
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(each.ru_utime + each.ru_stime for each in used)


def run(*args: str) -> None:
    subprocess.run([sys.executable, "-c", *args], check=True, capture_output=True)  # noqa: S603


def compare(folder: Path, kind: str, size: int) -> None:
    ours, theirs, our_later, their_later = list[float](), list[float](), list[float](), list[float]()
    for seed in range(REPEATS.get(size, 1)):
        file = folder / f"orders{seed}.{kind}"
        write(file, kind, size * 1_000_000, seed)
        reader = f"read_json('{file}')" if kind == "json" else f"read_csv('{file}')"
        with SqlLibrary() as library:
            sources = {"output": Source("key", BytesReader(b" " * 1_000_000 * size), file=file)}

            def ask(library: SqlLibrary = library, sources: dict[str, Source] = sources) -> None:
                assert library.query(QUERY, sources, 60).result.rows == 3

            ours.append(measure(ask))
            theirs.append(measure(lambda reader=reader: run(LOADED, reader, QUERY)))
            (database,) = library.folder().glob("*.db")
            for _ in range(3):
                our_later.append(measure(ask))
                their_later.append(measure(lambda database=database: run(OPENED, str(database), QUERY)))
        file.unlink()
    for name, mine, other in (("first", min(ours), min(theirs)), ("later", min(our_later), min(their_later))):
        print(f"| {size} MB of {kind.upper()}, {name} question | {mine:.2f} s | {other:.2f} s | {mine / other:.2f} |", flush=True)


def main() -> None:
    print("| | Overspill | DuckDB alone | ratio |\n|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        for each in sys.argv[1:] or DEFAULT:
            kind, _, size = each.partition(":")
            compare(Path(folder), kind, int(size))
    print(f"\nMost memory of one process: {resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss >> 10:,} MiB")


if __name__ == "__main__":
    main()
