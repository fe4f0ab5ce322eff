"""How long the engine takes and how much memory, against `text.lower().split()` and SQLite FTS5 on the same text.

    python benchmarks/engine/speed.py [--large] [--kind KIND]
    python benchmarks/engine/speed.py --set SET [SET ...]      later questions about the documents of sets, by kind

`first` is the processor time of the first question for each megabyte, as a multiple of building an FTS5 index of the text.
`later` is the slowest of four other questions, as a multiple of splitting ten megabytes of it. `peak` is memory without the
mapped file. `covered` is what was searched, `needle` whether something at nine tenths of the text was found, and `counts` how
often a question has tokens counted. Each row runs in a separate process, because peak memory never goes down.
"""

from __future__ import annotations

import argparse
import ast
import html
import json
import mmap
import random
import resource
import sqlite3
import subprocess
import sys
import sysconfig
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import cycle, groupby
from pathlib import Path

from overspill.lexical.index import build
from overspill.lexical.select import select

MB = 1_000_000
PASSAGE_CHARS = 600
SMALL_SIZES = (0.1, 1)
"""In megabytes."""
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


def _docstrings() -> Iterator[str]:
    """English as people write it about programs: what the standard library says of itself, again and again."""
    found: list[str] = []
    for path in _sources():
        try:
            nodes = list(ast.walk(ast.parse(path.read_text("utf-8"))))
        except (SyntaxError, ValueError):
            continue
        documented = (node for node in nodes if isinstance(node, ast.FunctionDef | ast.ClassDef | ast.Module))
        for text in filter(None, map(ast.get_docstring, documented)):
            # As one paragraph, so that it is prose and not a table of arguments.
            found.append(" ".join(text.split()))
    return cycle([text for text in found if len(text) > 60])


def _sources() -> list[Path]:
    library = Path(sysconfig.get_path("stdlib"))
    return [path for path in sorted(library.rglob("*.py")) if "site-packages" not in path.parts]


def _html(random_: random.Random) -> Iterator[str]:
    yield "<!doctype html><html><body><h1>Report</h1>"
    for number, text in enumerate(_docstrings()):
        link = f'<a href="/{number}">{random_.choice(WORDS)}-{number}</a>'
        yield f'<div class="row"><p id="p{number}">{html.escape(text)} {link}</p></div>\n'


def _html_table(random_: random.Random) -> Iterator[str]:
    yield "<!doctype html><html><body><h1>Report</h1><table><tr><th>id</th><th>name</th><th>amount</th></tr>"
    number = 0
    while True:
        number += 1
        name = f'<a href="/{number}">{random_.choice(WORDS)}-{number}</a>'
        yield f'<tr class="row"><td>{number}</td><td>{name}</td><td>{random_.randrange(10**6)}</td></tr>\n'


def _html_scripts(random_: random.Random) -> Iterator[str]:
    """A script after each row: hundreds of thousands in 100 MB."""
    yield "<!doctype html><html><body><h1>Report</h1>"
    number = 0
    while True:
        number += 1
        words = " ".join(random_.choices(WORDS, k=6))
        yield f'<div class="row"><p id="p{number}">{words} {number}</p><script>track({number}, "{words[:9]}")</script></div>\n'


def _prose(random_: random.Random) -> Iterator[str]:
    yield ""
    for text in _docstrings():
        yield f"{text} {random_.choice(WORDS).capitalize()} {random_.choice(WORDS)}.\n\n"


def _code(random_: random.Random) -> Iterator[str]:
    yield ""
    for path in cycle(_sources()):
        with suppress(UnicodeDecodeError):
            yield path.read_text("utf-8")


KINDS: dict[str, Callable[[random.Random], Iterator[str]]] = {
    "log": _log, "coloured log": _coloured, "json": _json, "csv": _csv, "html": _html, "html table": _html_table,
    "html scripts": _html_scripts, "prose": _prose, "code": _code,
}  # fmt: skip
NEEDLES = {
    "json": '{"id": 0, "name": "zanzibar-kestrel", "tags": []}, ',
    "csv": "0,zanzibar-kestrel,x,1,y\n",
    "html": "<div><p>The kestrel flew over zanzibar.</p></div>\n",
    "html scripts": "<div><p>The kestrel flew over zanzibar.</p></div>\n",
    "html table": "<tr><td>0</td><td>zanzibar kestrel</td><td>1</td></tr>\n",
}
NEEDLE = "\n\n# The kestrel flew over zanzibar.\n\n"


def _write_block(path: Path, kind: str) -> None:
    """Ten megabytes."""
    parts: list[str] = []
    written = 0
    for part in KINDS[kind](random.Random(7)):  # noqa: S311
        parts.append(part)
        written += len(part)
        if written >= 10 * MB:
            break
    path.write_text("".join(parts)[: 10 * MB] if kind == "code" else "".join(parts), "utf-8")


def _write(path: Path, block: Path, kind: str, size: float) -> None:
    """The block, or its beginning, as often as the size needs, and at nine tenths of it something that occurs nowhere else."""
    head, tens = next(KINDS[kind](random.Random(7))), max(1, int(size // 10))  # noqa: S311
    text = block.read_text("utf-8")[: int(size * MB) if size < 10 else None]
    # What comes first, such as the header of a table, comes once.
    body = text if kind in ("log", "coloured log") else text[len(head) :]
    cut = body.rfind("\n", 0, len(body) * 9 // 10) + 1 or body.rfind("}, ", 0, len(body) * 9 // 10) + 3
    with path.open("w", encoding="utf-8") as file:
        file.write(text[: len(text) - len(body)])
        for number in range(tens):
            if number == tens * 9 // 10:
                at = cut if tens == 1 else 0
                file.write(body[:at] + NEEDLES.get(kind, NEEDLE) + body[at:])
            else:
                file.write(body)


def _build_full_text_index(text: str) -> None:
    """SQLite's, over passages of 600 characters."""
    database = sqlite3.connect(":memory:")
    database.execute("create virtual table passages using fts5(body, tokenize='porter unicode61')")
    parts = ((text[start : start + PASSAGE_CHARS],) for start in range(0, len(text), PASSAGE_CHARS))
    database.executemany("insert into passages values (?)", parts)
    database.commit()
    database.close()


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


def measure(path: Path, split: float, full_text: float) -> None:
    """Prints times as ratios, and the peak of memory above what was there before."""
    select(build(b"warm up\n"), "anything")
    before = _resident_mb()
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        index = build(data)
        megabytes = len(data) / MB
        counted = _Counter()
        first = _timed(lambda: select(index, "timeout of worker-4242 in the payment handler", count_tokens=counted))
        later = max(
            _timed(lambda query=query: select(index, query, count_tokens=counted))
            for query in ("id=31337", "every ERROR of the cache shard", "why did the request fail", "order retry limit 777")
        )
        needle = select(index, "where did the kestrel fly")
        peak = _peak_mb() - before - min(megabytes, _mapped_mb(path))
        print(
            f"{first / megabytes / (full_text / 10):8.2f} {later / split:8.1f} {1000 * later / megabytes:9.1f} {peak:8.0f}"
            f" {needle.searched_bytes / len(data):8.0%} {'yes' if 'kestrel' in needle.text else 'NO':>7} {counted.times / 5:8.0f}"
        )


def measure_sets(folders: list[Path]) -> None:
    """All questions of a kind together, as a multiple of splitting its document for each of them."""
    times: dict[str, list[tuple[float, float]]] = {}
    for folder in folders:
        questions = [json.loads(line) for line in (folder / "questions.jsonl").open(encoding="utf-8")]
        for doc, asked in groupby(sorted(questions, key=_by_doc), _by_doc):
            data = (folder / doc).read_bytes()
            text = data.decode("utf-8", "replace")
            split = min(_timed(lambda text=text: text.lower().split()) for _ in range(3))
            index = build(data)
            select(index, "")
            for question in asked:
                later = _timed(lambda index=index, query=question["question"]: select(index, query))
                times.setdefault(index.kind, []).append((later, split))
    print("kind       questions    later  ms per question")
    for kind, found in sorted(times.items()):
        later, split = (sum(column) for column in zip(*found, strict=True))
        print(f"{kind:10s} {len(found):9d} {later / split:8.1f} {1000 * later / len(found):16.1f}")


def _by_doc(question: dict[str, str]) -> str:
    return question["doc"]


class _Counter:
    """Counts tokens, and its own calls."""

    def __init__(self) -> None:
        self.times = 0

    def __call__(self, text: str) -> int:
        self.times += 1
        return -(-len(text) // 4)


def _mapped_mb(path: Path) -> float:
    """What of the file is in this process: it is the system's cache, which gives way when memory is needed."""
    blocks = Path("/proc/self/smaps").read_text().split("VmFlags")
    mine = [block for block in blocks if str(path) in block]
    return sum(int(line.split()[1]) for block in mine for line in block.splitlines() if line.startswith("Rss:")) * 1024 / MB


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--large", action="store_true", help="100 MB and 1 GB of each kind, too")
    arguments.add_argument("--kind", choices=list(KINDS), help="one kind alone")
    arguments.add_argument("--set", nargs="+", type=Path, help="folders with questions.jsonl, as engine_recall.py reads them")
    arguments.add_argument("--measure", nargs=3, metavar=("FILE", "SPLIT", "FTS5"), help=argparse.SUPPRESS)
    given = arguments.parse_args()
    if given.measure:
        measure(Path(given.measure[0]), float(given.measure[1]), float(given.measure[2]))
        return
    if given.set:
        measure_sets(given.set)
        return
    print("kind             MB    first    later  ms per MB  peak MB  covered  needle   counts")
    for kind in [given.kind] if given.kind else KINDS:
        with tempfile.TemporaryDirectory() as folder:
            block, path = Path(folder) / "block", Path(folder) / "text"
            _write_block(block, kind)
            text = block.read_text("utf-8")
            split = min(_timed(lambda text=text: text.lower().split()) for _ in range(3))
            full_text = min(_timed(lambda text=text: _build_full_text_index(text)) for _ in range(2))
            del text
            for size in (*SMALL_SIZES, 10, *((100, 1000) if given.large else ())):
                _write(path, block, kind, size)
                command = [sys.executable, __file__, "--measure", str(path), str(split), str(full_text)]
                row = subprocess.run(command, capture_output=True, text=True, check=True)  # noqa: S603
                print(f"{kind:14s} {size:4g} {row.stdout.rstrip()}   split {split:.3f} s, FTS5 {full_text:.3f} s", flush=True)


if __name__ == "__main__":
    main()
