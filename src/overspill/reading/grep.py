"""Lines that match a pattern, with context, in the style of grep: `12:hit`, `11-context`, `--` between groups.

A line too long to show appears as `12 (byte 5000, char 4980):…text…`, with the position of the first character shown.
"""

from __future__ import annotations

from itertools import islice

from msgspec import Struct

from overspill.errors import BadRequest
from overspill.reading.positions import View
from overspill.reading.ranges import Bound, clip, require_whole_number
from overspill.reading.search import Hit, Search, compile_pattern
from overspill.store.protocols import Reader
from overspill.text.encoding import character_start, decode

_MAX_COUNTED_HITS = 1000
_MAX_CONTEXT_LINES = 200
_MAX_REACH_BYTES = 500
_MIN_REACH_BYTES = 4
_MAX_ROW_PREFIX_BYTES = 80  # more than a line number and a position need
_MAX_SHOWN_BYTES_PER_BYTE = 3  # an invalid byte is shown as U+FFFD


class Grep(Struct, frozen=True):
    """The answer to a search. It covers only the bytes searched_from..searched_to."""

    text: str
    hits: int
    """Hits shown in the text."""
    total: int
    """Hits found, including those that did not fit into the text."""
    exact: bool
    """Whether `total` counts all hits after `searched_from`. If not, there may be more."""
    searched_from: int
    searched_to: int
    next: int | None
    """The byte to continue from without losing or repeating a hit."""
    context: int
    """Lines of context on each side of a hit: fewer than requested if more do not fit."""
    is_cut: bool = False
    """Whether even the row of the first hit does not fit. The text then has only its beginning."""


def grep(
    reader: Reader,
    view: View,
    pattern: object,
    bound: Bound,
    *,
    context: object = 2,
    ignore_case: bool = False,
    literal: bool = False,
    start_byte: object = 0,
) -> Grep:
    start, around = require_whole_number("from", start_byte, 0), require_whole_number("context", context, 0)
    if start > view.stored_bytes:
        raise BadRequest(f"from {start} is past the end: the output has {view.stored_bytes} bytes.")
    start = view.from_stored(start)
    if not isinstance(pattern, str):
        raise BadRequest(f"The pattern must be a string, not {pattern!r}.")
    compiled = compile_pattern(pattern, ignore_case=ignore_case, literal=literal)
    line, line_start = view.find_line(start)
    buffer = reader.buffer()[: view.bytes]
    page = _Page(buffer, view, bound, min(around, _MAX_CONTEXT_LINES), line)
    search = Search(buffer, compiled, start, line_start=line_start, reach=page.reach)
    hits = search.hits()
    hit = next(hits, None)
    waiting = 0
    while hit:
        following = next(hits, None)
        if not page.add(hit, following):
            waiting = 1 + sum(1 for _ in islice(hits, _MAX_COUNTED_HITS)) + (following is not None)
            break
        hit = following
    resume = page.resume(hit) if hit else search.reached
    return Grep(
        text="".join(page.text),
        hits=page.hits,
        total=page.hits + waiting,
        exact=search.reached == view.bytes,
        searched_from=view.to_stored(start),
        searched_to=view.to_stored(max(search.reached, resume), is_end=True),
        next=view.to_stored(resume, is_end=True) if resume < view.bytes else None,
        context=page.context,
        is_cut=page.is_cut,
    )


class _Page:
    """The rows of an answer, added group by group while they fit."""

    def __init__(self, buffer: memoryview, view: View, bound: Bound, context: int, line: int) -> None:
        self.text: list[str] = []
        self.hits = 0
        self.context = context
        self.is_cut = False
        self.reach = max(
            min(_MAX_REACH_BYTES, (bound.bytes - _MAX_ROW_PREFIX_BYTES) // (2 * _MAX_SHOWN_BYTES_PER_BYTE)), _MIN_REACH_BYTES
        )
        self._buffer = buffer
        self._view = view
        self._room = bound
        self._asked = context
        self._line = line - 1
        self._byte = self._next = 0

    def add(self, hit: Hit, following: Hit | None) -> bool:
        """Adds a hit if it fits, and returns whether it did. The first one always fits, with less context if necessary."""
        context = self._asked
        text, last = self._group(hit, following, context)
        while not self._room.holds(text):
            if self.hits:
                return False
            if not context:
                text, self.is_cut = clip(text, self._room), True
                break
            self.context = context = context // 2
            text, last = self._group(hit, following, context)
        self.text.append(text)
        self._room = self._room.after(text)
        self.hits += 1
        self._line, self._byte, self._next = last, hit.end, hit.next
        return True

    def resume(self, hit: Hit) -> int:
        """The byte to continue from, to show this hit with the context not shown yet."""
        line = self._view.line_at(hit.start)
        first = max(line - self._asked, self._line + 1)
        return self._view.line_start(first) if first <= line else self._next

    def _group(self, hit: Hit, following: Hit | None, context: int) -> tuple[str, int]:
        """The rows of a hit, following the previous ones, and the last line among them."""
        line, line_start = self._view.find_line(hit.start)
        separator = "\n" if self.hits else ""
        if not self._asked:  # the quick way, for a search without context
            return separator + self._hit_row(line, line_start, hit), line
        first = max(line - context, self._line + 1)
        last = line + context
        # A match at the very end is where the next line would begin.
        if context and following and (following.start < (end := self._view.line_start(last + 1)) or end == self._view.bytes):
            last = min(max(self._view.line_at(following.start) - 1, line), last)
        rows = ["--"] if self.hits and first > self._line + 1 else []
        rows += [self._context_row(number) for number in range(first, line)]
        rows.append(self._hit_row(line, line_start, hit))
        rows += [
            self._context_row(number) for number in range(line + 1, last + 1) if self._view.line_start(number) < self._view.bytes
        ]
        return separator + "\n".join(rows), last

    def _hit_row(self, line: int, line_start: int, hit: Hit) -> str:
        start = max(line_start, self._byte)
        if hit.start - start > self.reach:
            start = self._character(hit.start - self.reach)
        return self._row(line, ":", line_start, start, hit.end)

    def _context_row(self, line: int) -> str:
        start = self._view.line_start(line)
        data = bytes(self._buffer[start : min(start + 2 * self.reach, self._view.line_start(line + 1))])
        return self._row(line, "-", start, start, self._character(start + len(data.rstrip(b"\r\n"))))

    def _row(self, line: int, mark: str, line_start: int, start: int, end: int) -> str:
        text = decode(bytes(self._buffer[start:end]))
        before = start > line_start
        after = end < len(self._buffer) and self._buffer[end] not in b"\r\n"
        if not before and not after:
            return f"{line}{mark}{text}"
        place = f" (byte {self._view.to_stored(start)}, char {self._view.char_at(start)})"
        return f"{line}{place}{mark}{'…' if before else ''}{text}{'…' if after else ''}"

    def _character(self, byte: int) -> int:
        """The byte, or the start of the character that contains it."""
        start = max(byte - 3, 0)
        return start + character_start(bytes(self._buffer[start : max(byte + 3, 0)]), max(byte, 0) - start)
