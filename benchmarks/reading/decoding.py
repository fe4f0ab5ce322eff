"""What decoding costs: plain text, which needs none, and compressed text. Run: python benchmarks/reading/decoding.py [megabytes…]

Storing an output records whether it is plain text, next to its characters and lines. Only outputs of an earlier version are
checked when they are first searched. This compares the check with the search that follows it.
"""

from __future__ import annotations

import bz2
import gzip
import lzma
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from overspill.decoding import decode
from overspill.lexical.index import build
from overspill.lexical.select import select
from overspill.reading import Bound, grep
from overspill.reading.positions import View
from overspill.store.files.output import FileReader
from overspill.text import tokens

ROUNDS = 5
LAST = b"FATAL payments worker crashed\n"
LINES = {
    "ASCII": b"2026-01-02T03:04:05Z INFO worker[17] request %d served in 12 ms, next one queued, nothing new\n",
    "accented": "2026-01-02T03:04:05Z INFO Größe %d geändert, naïve Anfrage № 17 erledigt, nächste wartet\n".encode(),
}
COMPRESSIONS: dict[str, Callable[[bytes], bytes]] = {
    "gzip": gzip.compress,
    "bzip2": bz2.compress,
    "xz": lambda data: lzma.compress(data, preset=1),
}


@contextmanager
def stored(data: bytes) -> Iterator[FileReader]:
    with tempfile.NamedTemporaryFile() as file:
        file.write(data)
        file.flush()
        reader = FileReader(os.open(file.name, os.O_RDONLY))
        try:
            yield reader
        finally:
            reader.close()


def fastest(action: Callable[[], object]) -> float:
    """Seconds of processor time, which other programs do not lengthen."""

    def once() -> float:
        start = time.process_time()
        action()
        return time.process_time() - start

    return min(once() for _ in range(ROUNDS))


def make_text(line: bytes, megabytes: int) -> bytes:
    return b"".join(line % number for number in range(megabytes * 1_000_000 // len(line))) + LAST


def ask_engine(reader: FileReader) -> None:
    index = build(reader.buffer())
    index.prepare()
    select(index, "why did the payments worker crash", max_tokens=500, count_tokens=lambda text: tokens.count(text).tokens)


def compare_plain(name: str, line: bytes, megabytes: int) -> None:
    with stored(make_text(line, megabytes)) as reader:
        assert decode(reader).reader is reader
        known = fastest(lambda: decode(reader, is_plain=True))
        check = fastest(lambda: decode(reader))
        view = View(reader)
        search = fastest(lambda: grep(reader, view, "no such words", Bound(12_288)))
        extraction = fastest(lambda: ask_engine(reader))
    for what, seconds in (("noted", known), ("checked", check)):
        ratios = f"grep × {1 + seconds / search:.3f}   extract × {1 + seconds / extraction:.3f}"
        print(f"{megabytes:4} MB {name:9} {what:8} {seconds * 1000:7.2f} ms   {ratios}")


def compare_compressed(name: str, compress: Callable[[bytes], bytes], megabytes: int) -> None:
    data = make_text(LINES["ASCII"], megabytes)
    with stored(compress(data)) as packed, stored(data) as plain:
        decoding = fastest(lambda: decode(packed))
        extraction = fastest(lambda: ask_engine(plain))
    print(
        f"{megabytes:4} MB {name:9} decoding {decoding:6.2f} s   an extraction takes {1 + decoding / extraction:.2f} of the time"
    )


if __name__ == "__main__":
    for size in map(int, sys.argv[1:] or ("1", "10", "100")):
        for name, line in LINES.items():
            compare_plain(name, line, size)
    for name, compress in COMPRESSIONS.items():
        compare_compressed(name, compress, 10)
