"""What extraction costs: time and requests against one map and one reduce, tokens sent, checking quotes against reading the file.

Run: python benchmarks/models/extract.py
Figures are ratios, so that they mean the same on any machine: of the worst round for waiting, of the best for computing.
"""

from __future__ import annotations

import mmap
import random
import re
import tempfile
import time
from hashlib import sha256
from pathlib import Path

import anyio

from overspill.extraction import Document, Policy, extract
from overspill.extraction.chunks import Span, plan
from overspill.extraction.provenance import Located, ModelQuote, locate
from overspill.models.protocol import Request, Response
from overspill.models.targets import Targets
from overspill.store.meter import size_of
from overspill.testing import ScriptedModel

LATENCY = 0.5
ROUNDS = 5
QUOTES = 200
WORDS = [
    f"{a}{b}{c}"
    for a in ("con", "re", "trans", "inter")
    for b in ("nect", "quest", "fer", "val", "port")
    for c in ("ion", "ed", "ing", "s")
]


class File:
    """A stored output, mapped as the file store does."""

    def __init__(self, path: Path) -> None:
        with path.open("rb") as file:
            self._map = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        self.size = len(self._map)

    def read(self, start: int, end: int) -> bytes:
        return self._map[start:end]

    def buffer(self) -> memoryview:
        return memoryview(self._map)

    def close(self) -> None:
        self._map.close()


def log_lines(size: int) -> list[str]:
    chance = random.Random(7)  # noqa: S311
    lines: list[str] = []
    while size > 0:
        number = len(lines)
        said = " ".join(chance.choices(WORDS, k=8))
        lines.append(
            f"2026-01-{number % 28 + 1:02d}T10:{number % 60:02d}:00Z INFO [worker-{number % 16}] request={number} {said}"
        )
        size -= len(lines[-1]) + 1
    return lines


def document_of(path: Path, content: str) -> Document:
    path.write_text(content)
    reader = File(path)
    return Document("session-x/y", "logs", "{}", reader, size_of(content), sha256(content.encode()).hexdigest())


def reply(request: Request) -> Response:
    found = re.search(r"<ai-agent-([0-9a-f]+)-FINAL", request.system)
    assert found
    first = re.search(r"^.*request=\d+.*$", request.messages[0].text, re.MULTILINE)
    quote = first[0].removeprefix("> ") if first else ""
    content = f"Something was found here.\nQUOTES:\n> {quote}\nCONFIDENCE: 90"
    return Response(f"<ai-agent-{found[1]}-FINAL>{content}</ai-agent-{found[1]}-FINAL>")


async def map_and_reduce(folder: Path) -> None:
    document = document_of(folder / "log-1mb", "\n".join(log_lines(1_000_000)))
    worst = 0.0
    for _ in range(ROUNDS):
        model = ScriptedModel(reply, name="test/gpt-4o", context_window=128_000, max_output_tokens=8_000, latency=LATENCY)
        started = time.perf_counter()
        result = await extract(
            document, "what was found", mode="full-chunked", model=Targets([model]), policy=Policy(concurrency=8)
        )
        worst = max(worst, (time.perf_counter() - started) / (2 * LATENCY))
    sent = sum(
        size_of(request.system + "".join(message.text for message in request.messages)).tokens for request in model.requests
    )
    chunks = result.chunks_total
    print(f"1 MB, window 128k: {chunks} chunks, {len(model.requests)} requests (n + 1 = {chunks + 1})")
    print(f"time / (one map + one reduce of {LATENCY} s each): {worst:.2f} (limit 1.50)")
    print(f"tokens sent / tokens of the document: {sent / document.size.tokens:.3f} (limit 1.150)")


def timed_locate(document: Document, quotes: list[ModelQuote], chunks: tuple[Span, ...]) -> tuple[float, Located]:
    started = time.perf_counter()
    located = locate(document.reader, quotes, chunks)
    return time.perf_counter() - started, located


def check_quotes(folder: Path) -> None:
    path = folder / "log-10mb"
    lines = log_lines(10_000_000)
    document = document_of(path, "\n".join(lines))
    chunks = plan(document.reader, 110_000, 10, lambda span: (span.end - span.start) // 4)
    data = path.read_bytes()
    asked = [lines[number] for number in sorted(random.Random(3).sample(range(len(lines)), QUOTES))]  # noqa: S311
    scopes = [next(chunk for chunk in chunks if chunk.start <= data.find(line.encode()) < chunk.end) for line in asked]
    kinds = {
        "as they are, from known chunks (limit 1.00)": [
            ModelQuote(line, scope) for line, scope in zip(asked, scopes, strict=True)
        ],
        "as they are, from anywhere": [ModelQuote(line) for line in asked],
        "other white space, from known chunks": [
            ModelQuote(line.replace(" ", "  "), scope) for line, scope in zip(asked, scopes, strict=True)
        ],
    }
    for kind, quotes in kinds.items():
        reading: list[float] = []
        checking: list[float] = []
        for _ in range(ROUNDS):
            started = time.perf_counter()
            for _ in range(20):
                path.read_bytes()
            reading.append(time.perf_counter() - started)
            seconds, located = timed_locate(document, quotes, chunks)
            assert located.missing == 0
            checking.append(seconds)
        ratio = min(checking) / min(reading)
        print(f"{QUOTES} quotes in 10 MB, {kind}: {ratio:.2f} of reading the file twenty times")


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        anyio.run(map_and_reduce, Path(folder))
        check_quotes(Path(folder))


if __name__ == "__main__":
    main()
