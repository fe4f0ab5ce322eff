"""Times the card of a stored output of 1, 10 and 100 MB, of each kind.

Run with `python benchmarks/cards.py`. Milliseconds are of processor time and depend on the machine. The ratio is to hashing and
writing the same bytes, which storing them takes at least.
"""

from __future__ import annotations

import hashlib
import json
import tempfile
from collections.abc import Callable
from time import process_time

from overspill.gate.cards.draft import CardRoom, draft_cards
from overspill.settings import Settings
from overspill.text import tokens
from overspill.types import Size

MEGABYTES = (1, 10, 100)
ROUNDS = 20
CODE = "def step_{0}(value):\n    total = value + {0}\n    return total\n\n\n"
PAGE = "<h2>Part {0}</h2><p>What part {0} is about, in a few words.</p>\n"
KINDS: dict[str, tuple[str, Callable[[int], str], str]] = {
    "service log": ("", lambda n: f"2026-01-01T00:00:{n % 60:02} INFO worker-{n % 7} request {n} served in {n % 97} ms\n", ""),
    "build log": ("", lambda n: f"[{n}] Compiling src/part_{n}.c\n", "part.c:1: error: no such type\nmake: *** [all] Error 2\n"),
    "JSON rows": ("[", lambda n: json.dumps({"id": n, "path": f"/a/{n}", "meta": {"size": n}}) + ",\n", '{"id": 0}]'),
    "JSON object": ("{", lambda n: f'"key{n}": {{"size": {n}, "name": "n{n}"}},', '"end": 0}'),
    "JSON lines": ("", lambda n: json.dumps({"id": n, "path": f"/a/{n}", "ok": n % 9 > 0}) + "\n", ""),
    "CSV": ("id,path,size,state\n", lambda n: f"{n},/a/{n},{n * 7 % 999},{'ok' if n % 9 else 'bad'}\n", ""),
    "web page": ("<html><body>", PAGE.format, "</body></html>"),
    "code": ("", CODE.format, ""),
}


def fill(kind: str, megabytes: int) -> bytes:
    """The same megabyte again and again: what a card reads of it is read in many places."""
    before, part, after = KINDS[kind]
    parts: list[str] = []
    size = 0
    while size < 1_000_000:
        parts.append(part(len(parts)))
        size += len(parts[-1])
    return before.encode() + "".join(parts).encode() * megabytes + after.encode()


def time_ms(work: Callable[[], object], rounds: int) -> list[float]:
    times: list[float] = []
    for _ in range(rounds):
        start = process_time()
        work()
        times.append((process_time() - start) * 1000)
    return sorted(times)


def store(data: bytes) -> None:
    with tempfile.TemporaryFile() as file:
        file.write(data)
    hashlib.sha256(data).hexdigest()


def report(kind: str, megabytes: int, room: CardRoom) -> None:
    data = fill(kind, megabytes)
    size = Size(len(data), len(data), data.count(b"\n"), len(data) // 4, True)
    times = time_ms(lambda: draft_cards(lambda start, end: data[start:end], size, "out", ("get_tool_output",), room), ROUNDS)
    base = time_ms(lambda: store(data), 3)[0]
    p50, p95 = times[ROUNDS // 2], times[ROUNDS * 19 // 20]
    print(f"{kind:<14}{megabytes:>5}{p50:>9.1f}{p95:>9.1f}{base:>20.1f}{p50 / base:>8.2f}", flush=True)


def main() -> None:
    tokens.load()
    room = CardRoom(Settings(), 12_000)
    print(f"{'kind':<14}{'MB':>5}{'p50 ms':>9}{'p95 ms':>9}{'hash and write ms':>20}{'ratio':>8}")
    for kind in KINDS:
        for megabytes in MEGABYTES:
            report(kind, megabytes, room)


if __name__ == "__main__":
    main()
