"""Stored text in windows: bounded, at the exact bytes, with line numbers. Works for any size, and for lines of any length."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeAlias

from msgspec import Struct

from overspill.reading.positions import View
from overspill.store.protocols import Reader
from overspill.text.encoding import character_start, decode
from overspill.text.regex import regex

WINDOW_BYTES = 48 << 10
WINDOW_LINES = 400
_LINES_BEFORE = 8
"""How many lines are shown above the requested line."""
_LINE_END = regex(rb"\r\n|\n|\r")
_MAX_CHARACTER_BYTES = 4
ROW_BYTES = 16
HEX_WINDOW_BYTES = ROW_BYTES * 256
Span: TypeAlias = tuple[int, int]


class TextPiece(Struct, frozen=True):
    """Text of a line that is either all marked or all unmarked."""

    text: str
    is_marked: bool = False


class Line(Struct, frozen=True):
    """A line, or the part of a long one that is in the window."""

    number: int
    start: int
    end: int
    """Where the line ends, without its line break."""
    pieces: tuple[TextPiece, ...]
    is_continued: bool = False
    """Whether it began before the window."""
    continues: bool = False
    """Whether it ends after the window."""

    @property
    def text(self) -> str:
        return "".join(piece.text for piece in self.pieces)

    @property
    def is_marked(self) -> bool:
        return any(piece.is_marked for piece in self.pieces)


class TextWindow(Struct, frozen=True):
    """The bytes start..end. `before` and `after` are where its neighbours begin, if there are any."""

    start: int
    end: int
    total: int
    lines: tuple[Line, ...]
    before: int | None
    after: int | None


def make_window(
    reader: Reader, view: View, start: int, marks: Sequence[Span] = (), find: Callable[[bytes], Iterable[Span]] | None = None
) -> TextWindow:
    """The window that begins at a byte, or at the character that contains it. `find` searches it for more to mark."""
    total = view.bytes
    start = _align(reader, min(max(start, 0), max(total - 1, 0)))
    data = _cut(reader.read(start, min(start + WINDOW_BYTES + _MAX_CHARACTER_BYTES, total)), total - start)
    end = start + len(data)
    if find is not None:
        marks = join_spans([*marks, *((start + first, start + last) for first, last in find(data))])
    return TextWindow(
        start=start,
        end=end,
        total=total,
        lines=tuple(_split(data, start, view, total, marks)),
        before=find_before(reader, start) if start else None,
        after=end if end < total else None,
    )


def join_spans(spans: Iterable[Span]) -> list[Span]:
    """Sort spans, and merge spans that overlap."""
    joined: list[Span] = []
    for start, end in sorted(spans):
        if joined and start < joined[-1][1]:
            joined[-1] = joined[-1][0], max(end, joined[-1][1])
        else:
            joined.append((start, end))
    return joined


def find_line(view: View, line: int) -> int:
    """Return where a window begins that shows this line, with a few lines before it."""
    return view.line_start(max(1, line - _LINES_BEFORE))


def find_byte(reader: Reader, view: View, byte: int) -> int:
    """Return where a window begins that shows this byte, with a few lines before it."""
    byte = min(max(byte, 0), max(view.bytes - 1, 0))
    line, line_start = view.find_line(byte)
    if byte - line_start > WINDOW_BYTES // 4:  # inside a very long line
        return _align(reader, byte - WINDOW_BYTES // 8)
    above = view.line_start(max(1, line - _LINES_BEFORE))
    return above if byte - above < WINDOW_BYTES // 2 else line_start


def _align(reader: Reader, byte: int) -> int:
    first = max(0, byte - _MAX_CHARACTER_BYTES)
    return first + character_start(reader.read(first, byte + _MAX_CHARACTER_BYTES), byte - first)


def _cut(data: bytes, left: int) -> bytes:
    """Cut data to a window of whole lines, or of whole characters if no line fits. `left`: bytes to the end of the text."""
    ends = [found.end() for found, _ in zip(_LINE_END.finditer(data), range(WINDOW_LINES), strict=False)]
    if len(ends) == WINDOW_LINES:
        return data[: ends[-1]]
    if left <= WINDOW_BYTES:
        return data
    # A CR at the very end may be half of a CRLF line break.
    fitting = [end for end in ends if end <= WINDOW_BYTES and data[end - 1 : end + 1] != b"\r\n"]
    return data[: fitting[-1] if fitting else character_start(data, WINDOW_BYTES)]


def find_before(reader: Reader, end: int) -> int:
    """Return where the window begins that ends at this byte."""
    first = max(0, end - WINDOW_BYTES)
    data = reader.read(first, end)
    starts = [found.end() for found in _LINE_END.finditer(data) if found.end() < len(data)]
    if first == 0:
        starts.insert(0, 0)
    if not starts:
        return _align(reader, first)
    return first + (starts[-WINDOW_LINES] if len(starts) >= WINDOW_LINES else starts[0])


def _split(data: bytes, start: int, view: View, total: int, marks: Sequence[Span]) -> Iterator[Line]:
    if not data:
        return
    firsts, lasts = [first for first, _ in marks], [last for _, last in marks]
    number, line_start = view.find_line(start)
    at, is_continued = 0, line_start < start
    ends = [(found.start(), found.end()) for found in _LINE_END.finditer(data)]
    if not ends or ends[-1][1] < len(data):
        ends.append((len(data), len(data)))
    for end, following in ends:
        here = marks[bisect_right(lasts, start + at) : bisect_left(firsts, start + end)]
        continues = end == following and start + end < total
        pieces = tuple(_mark(data, start, at, end, here))
        yield Line(number, start + at, start + end, pieces, is_continued, continues)
        at, number, is_continued = following, number + 1, False


def _mark(data: bytes, base: int, at: int, end: int, marks: Sequence[Span]) -> Iterator[TextPiece]:
    """`marks` are in order and do not overlap."""
    for first, last in marks:
        first, last = max(first - base, at), min(last - base, end)
        if first >= last:
            continue
        if first > at:
            yield TextPiece(decode(data[at:first]))
        yield TextPiece(decode(data[first:last]), is_marked=True)
        at = last
    if at < end:
        yield TextPiece(decode(data[at:end]))


class HexRow(Struct, frozen=True):
    start: int
    hexadecimal: str
    characters: str


class HexRows(Struct, frozen=True):
    rows: tuple[HexRow, ...]
    start: int
    total: int
    before: int | None
    after: int | None


def make_hex_rows(reader: Reader, start: int) -> HexRows:
    """Make the window that contains this byte. A position past the end gives the last window."""
    total = reader.size
    start = min(max(start, 0), max(total - 1, 0)) // HEX_WINDOW_BYTES * HEX_WINDOW_BYTES
    data = reader.read(start, start + HEX_WINDOW_BYTES)
    characters = "".join(chr(byte) if 32 <= byte < 127 else "." for byte in data)
    rows = tuple(
        HexRow(start + at, data[at : at + ROW_BYTES].hex(" "), characters[at : at + ROW_BYTES])
        for at in range(0, len(data), ROW_BYTES)
    )
    end = start + len(data)
    return HexRows(rows, start, total, max(0, start - HEX_WINDOW_BYTES) if start else None, end if end < total else None)
