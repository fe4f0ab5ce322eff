"""Times the card of fresh text of each kind and size, in processor time, and compares it with another version.

Run with `python benchmarks/gate/cards.py`. Each round uses a new text, so caches from the previous round do not help. With
`--against DIR`, rounds alternate with the version whose checkout is DIR, in a separate process. The last column is the ratio to
encoding, hashing and writing the same text, the minimum for storing it.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from time import process_time

SIZES = {"10 KB": 10_000, "100 KB": 100_000, "262 KB": 262_144, "1 MB": 1_000_000, "10 MB": 10_000_000}
ROUNDS = 9
WORDS = (
    "the card of a stored output says what is in it so that a model asks for the right part and reads no more".split()  # noqa: SIM905
)
Random = random.Random


def words(rng: Random, least: int, most: int) -> str:
    return " ".join(rng.choices(WORDS, k=rng.randint(least, most)))


def log_line(rng: Random, n: int) -> str:
    level = rng.choices(("INFO", "DEBUG", "WARN", "ERROR"), (80, 15, 4, 1))[0]
    said = rng.choice(
        ("request {} served in {} ms", "job {} took {} s", "user {} logged in from 10.0.0.{}", "cache miss for key {}:{}")
    )
    when = f"2026-01-02T{n // 3600 % 24:02}:{n // 60 % 60:02}:{n % 60:02}.{rng.randrange(1000):03}Z"
    return f"{when} {level} [worker-{rng.randrange(8)}] app.web {said.format(rng.randrange(10**6), rng.randrange(200))}\n"


def build_line(rng: Random, n: int) -> str:
    if rng.random() < 0.02:
        return f"src/part_{n}.c:{rng.randrange(900)}: warning: unused variable 'v{n}' [-Wunused-variable]\n"
    return f"[{n}] Compiling src/{rng.choice(WORDS)}/part_{n}.c ({rng.randrange(900)} ms)\n"


def row(rng: Random, n: int) -> dict[str, object]:
    state = rng.choice(("open", "closed", "merged"))
    meta = {"size": rng.randrange(9_000), "tags": ["a", "b"][: n % 3]}
    return {
        "id": n,
        "path": f"/a/{rng.randrange(10**6)}",
        "state": state,
        "title": words(rng, 3, 9),
        "ok": n % 9 > 0,
        "meta": meta,
    }


def csv_line(rng: Random, n: int) -> str:
    state, user = rng.choice(("ok", "bad", "late")), f"user{rng.randrange(99)}@example.org"
    return f"{n},{words(rng, 1, 3)},{rng.randrange(10**5) / 100},{state},2026-01-{1 + n % 28:02},{user}\n"


def nested(rng: Random, n: int) -> str:
    return f'"key{n}": {json.dumps({"size": n, "name": words(rng, 1, 3), "deps": {"a": f"^{n}.0", "b": [1, 2, n]}})},\n'


def code_part(rng: Random, n: int) -> str:
    body = "".join(
        f"    value_{k} = compute(value, {rng.randrange(999)})  # {words(rng, 2, 6)}\n" for k in range(rng.randint(2, 9))
    )
    return f'def step_{n}(value: int, *, limit: int = {n}) -> int:\n    """{words(rng, 4, 9)}."""\n{body}    return value\n\n\n'


def diff_part(rng: Random, n: int) -> str:
    file = f"src/{rng.choice(WORDS)}/part_{n}.py"
    lines = "".join(f"{rng.choice('  +-')}    value_{k} = {rng.randrange(999)}\n" for k in range(rng.randint(5, 25)))
    return f"diff --git a/{file} b/{file}\n--- a/{file}\n+++ b/{file}\n@@ -{n},9 +{n},9 @@ def f():\n{lines}"


def match_line(rng: Random, n: int) -> str:
    path = f"src/{WORDS[n // 90 % len(WORDS)]}/part_{n // 9}.py"
    return f"{path}:{1 + n % 9 * 7}:    result = find_{rng.choice(WORDS)}({rng.randrange(999)})\n"


def commit(rng: Random, n: int) -> str:
    body = f"    {words(rng, 8, 14)}\n" * (n % 3)
    head = f"commit {rng.getrandbits(160):040x}\nAuthor: A B <a@example.org>\nDate:   Thu Jan 1 00:00:{n % 60:02} 2026 +0000\n\n"
    return f"{head}    {words(rng, 3, 9)}\n\n{body}\n"


def pod_line(rng: Random, n: int) -> str:
    name, state = f"web-{n:06}-{rng.getrandbits(20):05x}", rng.choice(("Running", "Pending", "CrashLoopBackOff"))
    return f"{rng.choice(('prod', 'test')):12}{name:26}1/1     {state:19}{rng.randrange(30):<11}{rng.randrange(1, 99)}d\n"


def html_part(rng: Random, n: int) -> str:
    items = "".join(f'<li><a href="/part/{n}/{k}">{words(rng, 2, 5)}</a></li>\n' for k in range(3))
    return f'<div class="part"><h2>Part {n}</h2>\n<p>{words(rng, 20, 60)}.</p>\n<ul>\n{items}</ul></div>\n'


Make = Callable[[Random, int], str]
KINDS: dict[str, tuple[str, Make, str]] = {
    "service log": ("", log_line, ""),
    "build log": ("", build_line, "part.c:1: error: no such type\nmake: *** [all] Error 2\n"),
    "CSV": ("id,name,total,state,day,mail\n", csv_line, ""),
    "JSON rows": ("[", lambda rng, n: json.dumps(row(rng, n)) + ",\n", '{"id": 0}]'),
    "JSON lines": ("", lambda rng, n: json.dumps(row(rng, n)) + "\n", ""),
    "JSON object": ("{", nested, '"end": 0}'),
    "prose": ("", lambda rng, n: words(rng, 60, 140).capitalize() + ".\n\n", ""),
    "Markdown": (
        "# Guide\n\n",
        lambda rng, n: f"## Part {n}\n\n{words(rng, 40, 90).capitalize()}.\n\n- {words(rng, 4, 9)}\n\n",
        "",
    ),
    "web page": ("<html><body>", html_part, "</body></html>"),
    "code": ("import os\n\n\n", code_part, ""),
    "diff": ("", diff_part, ""),
    "search results": ("", match_line, ""),
    "history": ("", commit, ""),
    "aligned columns": ("NAMESPACE   NAME                      READY   STATUS             RESTARTS   AGE\n", pod_line, ""),
}


def fill(kind: str, size: int, seed: int) -> str:
    """A large text is a part of itself again and again: what a card reads of it is read in many places."""
    before, make, after = KINDS[kind]
    rng, parts, filled = Random(seed), list[str](), len(before) + len(after)
    part_size = min(size, 1_000_000)
    while filled < part_size:
        parts.append(make(rng, len(parts)))
        filled += len(parts[-1])
    if size == part_size:
        del parts[-1]
    return before + "".join(parts) * (size // part_size) + after


def store(text: str) -> None:
    data = text.encode()
    with tempfile.TemporaryFile() as file:
        file.write(data)
    hashlib.sha256(data).hexdigest()


def time_card(kind: str, size: int, seed: int) -> tuple[float, float]:
    """Milliseconds for the card, with the import and the vocabulary done before; and for storing the text."""
    from overspill.gate.cards.draft import CardRoom, draft_cards  # noqa: PLC0415  # of the version that this process times
    from overspill.settings import Settings  # noqa: PLC0415
    from overspill.store.meter import size_of  # noqa: PLC0415
    from overspill.text import tokens  # noqa: PLC0415

    tokens.load()
    text = fill(kind, size, seed)
    data, measured = text.encode(), size_of(text, tokens.ESTIMATE)
    room = CardRoom(Settings(), 12_000)
    start = process_time()
    drafts = draft_cards(lambda start, end: data[start:end], measured, "out", ("get_tool_output",), room)
    next(iter(drafts))
    middle = process_time()
    store(text)
    return (middle - start) * 1000, (process_time() - middle) * 1000


def serve() -> None:
    """Times each request, one per line, in the version that PYTHONPATH names."""
    for asked in sys.stdin:
        kind, size, seed = json.loads(asked)
        print(json.dumps(time_card(kind, size, seed)), flush=True)


class Version:
    def __init__(self, folder: Path) -> None:
        self._process = subprocess.Popen(  # noqa: S603  # this file
            [sys.executable, __file__, "--serve"],
            env={**os.environ, "PYTHONPATH": str(folder / "src")},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def time(self, kind: str, size: int, seed: int) -> tuple[float, float]:
        assert self._process.stdin
        assert self._process.stdout
        self._process.stdin.write(json.dumps((kind, size, seed)) + "\n")
        self._process.stdin.flush()
        card, stored = json.loads(self._process.stdout.readline())
        return card, stored


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--against", type=Path, metavar="DIR", help="another checkout, timed in turn")
    parser.add_argument("--kind", action="append", choices=KINDS, help="only this kind; may be repeated")
    parser.add_argument("--size", action="append", choices=SIZES, help="only this size; may be repeated")
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        serve()
        return
    versions = [Version(folder) for folder in (options.against, Path(__file__).parents[2]) if folder]
    print(
        f"{'kind':<16}{'size':>8}"
        + (f"{'before ms':>11}" if options.against else "")
        + f"{'card ms':>10}{'storing ms':>12}{'ratio':>8}"
    )
    for kind in options.kind or KINDS:
        for name in options.size or SIZES:
            for version in versions:
                version.time(kind, SIZES[name], 0)
            turns = [[version.time(kind, SIZES[name], 1 + turn) for version in versions] for turn in range(ROUNDS)]
            cards = [statistics.median(turn[number][0] for turn in turns) for number in range(len(versions))]
            stored = statistics.median(turn[-1][1] for turn in turns)
            shown = "".join(f"{ms:>10.2f}" for ms in cards)
            print(f"{kind:<16}{name:>8} {shown}{stored:>12.2f}{cards[-1] / stored:>8.1f}", flush=True)


if __name__ == "__main__":
    main()
