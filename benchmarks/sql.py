"""SQL over kept outputs: what it costs beside DuckDB itself, on the same text and in the same run.

    python benchmarks/sql.py [--large]

First question: our two processes (load, query) against one fresh process in which DuckDB reads the same file. Later question: our
query process against a fresh process that opens the loaded table with DuckDB. Then growth: CSV at 1, 10 and 100 MB (1 GB with
--large), with the most memory that a process of ours had.
"""

from __future__ import annotations

import json
import random
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from overspill.sql.library import Source, SqlLibrary
from overspill.store.readers import BytesReader

QUERY = "SELECT status, count(*) AS n, sum(total) AS s FROM output GROUP BY status ORDER BY status"
PLAIN = "import duckdb, sys; print(duckdb.connect().execute(sys.argv[1]).fetchall())"
OPENED = "import duckdb, sys; print(duckdb.connect(sys.argv[1], read_only=True).execute(sys.argv[2]).fetchall())"
REPEATS = 5


def make_json(size: int) -> bytes:
    rows: list[dict[str, object]] = []
    written = 0
    while written < size:
        rows.append(make_row(len(rows)))
        written += len(json.dumps(rows[-1])) + 2
    return json.dumps(rows).encode()


def make_row(number: int) -> dict[str, object]:
    status = ("open", "paid", "sent", "lost")[number % 4]
    note = f"order {number} of customer {number % 977}"
    customer = {"id": number % 977, "city": "Ulm"}
    return {"id": number, "status": status, "total": number % 1000 / 4, "customer": customer, "note": note}


def write_csv(file: Path, size: int) -> None:
    chooser = random.Random(1)  # noqa: S311
    with file.open("w") as stream:
        stream.write("id,status,total,note\n")
        number = 0
        while stream.tell() < size if number % 1000 == 0 else True:
            stream.write(f"{number},{chooser.choice(('open', 'paid', 'sent'))},{number % 1000 / 4},order {number} of many\n")
            number += 1


def best(work: Callable[[], object], repeats: int = REPEATS) -> float:
    times: list[float] = []
    for _ in range(repeats):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return min(times)


def run(*args: str) -> None:
    subprocess.run([sys.executable, "-c", *args], check=True, capture_output=True)  # noqa: S603


def compare(folder: Path) -> None:
    text = make_json(10_000_000)
    file = folder / "orders.json"
    file.write_bytes(text)
    plain = QUERY.replace("FROM output", f"FROM read_json('{file}')")

    def first() -> None:
        with SqlLibrary() as library:
            assert library.query(QUERY, {"output": Source("key", BytesReader(text))}, 60).result.rows == 4

    ours, theirs = best(first), best(lambda: run(PLAIN, plain))
    print(f"| first question, 10 MB of JSON | {ours:.2f} s | {theirs:.2f} s | {ours / theirs:.2f} |")
    with SqlLibrary() as library:
        sources = {"output": Source("key", BytesReader(text))}
        library.load(sources["output"])
        (database,) = library.files()
        ours = best(lambda: library.query(QUERY, sources, 60))
        theirs = best(lambda: run(OPENED, str(database), QUERY))
    print(f"| later question | {ours:.2f} s | {theirs:.2f} s | {ours / theirs:.2f} |")


def grow(folder: Path, sizes: list[int]) -> None:
    for size in sizes:
        file = folder / "orders.csv"
        write_csv(file, size * 1_000_000)
        with SqlLibrary() as library:
            start = time.perf_counter()
            found = library.query(QUERY, {"output": Source("key", BytesReader(b""), "csv", "orders.csv", file)}, 60)
            seconds = time.perf_counter() - start
            assert found.result.rows == 3, found
        most = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss >> 10
        print(f"| {size:,} MB of CSV | {seconds:.1f} s | {seconds / size * 1000:.0f} ms per MB | {most:,} MiB at most |")


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        print("| | Overspill | DuckDB alone | ratio |\n|---|---|---|---|")
        compare(Path(folder))
        print("\n| | first question | | memory |\n|---|---|---|---|")
        grow(Path(folder), [1, 10, 100, *([1_000] if "--large" in sys.argv else [])])


if __name__ == "__main__":
    main()
