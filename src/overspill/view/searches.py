"""Questions about one output, bounded in time and number: a pattern, words, a JSON query, or SQL."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from threading import BoundedSemaphore
from typing import Literal, TypeAlias, TypeVar

import anyio
import anyio.to_thread
from msgspec import Struct

from overspill.errors import BadRequest
from overspill.lexical.select import select
from overspill.reading import Bound
from overspill.reading.query import query
from overspill.reading.search import Search, compile_pattern
from overspill.retrieval.views import EngineIndexes
from overspill.sql.answers import read_answer, spell_cell
from overspill.sql.library import Source, SqlLibrary
from overspill.text import patterns
from overspill.text.encoding import decode
from overspill.text.patterns import Pattern
from overspill.view.rendering import ShownText
from overspill.view.windows import Span

Way: TypeAlias = Literal["grep", "ask", "query", "sql"]
WAYS: dict[str, Way] = {"grep": "grep", "ask": "ask", "query": "query", "sql": "sql"}
MAX_HITS = 200
MAX_ROWS = 500
MAX_SECONDS = 30
_SQL_SECONDS = 10
_MAX_WAIT_SECONDS = 10
_REACH_BYTES = 300
"""The bytes of a line shown on each side of a match."""
A = TypeVar("A")


class SearchHit(Struct, frozen=True):
    line: int
    span: Span
    before: str
    text: str
    after: str


class SearchResult(Struct, frozen=True):
    """`hits` for a pattern or a question, `text` for a JSON query, `columns` and `rows` for SQL."""

    hits: tuple[SearchHit, ...] = ()
    text: str = ""
    columns: tuple[str, ...] = ()
    rows: tuple[tuple[str, ...], ...] = ()
    notes: tuple[str, ...] = ()


class Searches:
    """At most two questions run at the same time; others wait for a while."""

    def __init__(self) -> None:
        self._slots = BoundedSemaphore(2)
        self._indexes = EngineIndexes()
        self._tables = SqlLibrary()

    def close(self) -> None:
        self._tables.close()

    async def run(self, work: Callable[[], A]) -> A:
        """Run `work` in a thread. Raises BadRequest if it takes too long, although it then occupies its slot until it ends."""

        def wait_and_work() -> A:
            if not self._slots.acquire(timeout=_MAX_WAIT_SECONDS):
                raise BadRequest("Other questions are still being answered. Try again in a moment.")
            try:
                return work()
            finally:
                self._slots.release()

        with anyio.move_on_after(MAX_SECONDS):
            return await anyio.to_thread.run_sync(wait_and_work, abandon_on_cancel=True)
        raise BadRequest(f"This took longer than {MAX_SECONDS} seconds. Ask for less, or use the command line.")

    def ask(self, way: Way, words: str, text: ShownText, key: str) -> SearchResult:
        """Answer a question. Blocks. `key` is the same for the same bytes."""
        match way:
            case "grep":
                return find_pattern(text, words)
            case "ask":
                selected = select(self._indexes.get(key, text.reader), words)
                if not selected.excerpts:
                    return SearchResult(notes=(selected.text,))
                hits = [
                    SearchHit(each.start_line, (each.start_byte, each.end_byte), "", each.shown or each.text, "")
                    for each in sorted(selected.excerpts, key=lambda each: (each.start_byte, each.end_byte))
                ]
                closing = selected.text.rpartition("\n")[2]
                sure = f"Confidence {selected.confidence:.2f}. Read as {selected.kind}."
                return SearchResult(tuple(hits), notes=(closing, sure))
            case "query":
                found = query(text.reader, words, Bound(64 << 10))
                rest = f"The string continues after its first {found.next:,} characters." if found.next else ""
                return SearchResult(text=found.text, notes=tuple(filter(None, [found.note or rest])))
            case "sql":
                answer = read_answer(self._tables.query(words, {"output": Source(key, text.reader)}, _SQL_SECONDS))
                rows = tuple(tuple(spell_cell(cell) for cell in row) for row in answer.rows[:MAX_ROWS])
                left = (f"The first {len(rows):,} of {answer.total:,} rows.",) if len(rows) < answer.total else ()
                return SearchResult(columns=answer.columns, rows=rows, notes=(*answer.notes, *left))


def compile_words(words: str) -> Pattern:
    """Compile a pattern. If it is all in lower case, it also matches capitals."""
    return compile_pattern(words, ignore_case=words == words.lower(), literal=False)


def find_spans(pattern: Pattern, data: bytes) -> Iterator[Span]:
    """Every match that is not empty."""
    return (span for span in patterns.find_spans(pattern, data, 0, len(data)) if span[1] > span[0])


def find_pattern(text: ShownText, words: str) -> SearchResult:
    pattern, due = compile_words(words), time.monotonic() + MAX_SECONDS / 2
    buffer = text.reader.buffer()[: text.view.bytes]
    search, hits = Search(buffer, pattern, 0, line_start=0, reach=_REACH_BYTES), list[SearchHit]()
    for block in search.blocks():
        if time.monotonic() > due:
            note = f"Only the first {search.reached:,} of {len(buffer):,} bytes were searched in time."
            return SearchResult(tuple(hits), notes=(note,))
        for found in block:
            if len(hits) == MAX_HITS:
                return SearchResult(tuple(hits), notes=(f"The first {MAX_HITS} hits. There are more.",))
            hits.append(_make_hit(text, buffer, pattern, found.start, found.end))
    return SearchResult(tuple(hits), notes=(f"{len(hits):,} hits in {len(buffer):,} bytes.",))


def _make_hit(text: ShownText, buffer: memoryview, pattern: Pattern, start: int, end: int) -> SearchHit:
    line, line_start = text.view.find_line(start)
    first = max(line_start, start - _REACH_BYTES)
    shown = bytes(buffer[first:end])
    here = start - first
    found = pattern.search(shown, here)
    last = found.end() if found and here == found.start() < found.end() else len(shown)
    return SearchHit(line, (start, first + last), decode(shown[:here]), decode(shown[here:last]), decode(shown[last:]))
