"""Writes drafts of an answer: pieces in document order, joined if there is nothing between them, and a last line.

Finding an answer takes several drafts, which share most of their pieces. Each piece is therefore written only once.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence

from msgspec import Struct

from overspill.lexical.index import Index
from overspill.lexical.plan import Plan
from overspill.lexical.reply.fill import Addition, Piece
from overspill.lexical.reply.render import Shown, make_locator, render, write_closing_line
from overspill.lexical.rows.cells import MOST_ROWS
from overspill.text.encoding import decode

_MAX_GAP_BYTES = 4_000
_BLANKS = b" ,\t\r\n"


class Found(Struct, frozen=True):
    """One span of the stored bytes: `text` is exactly the content from `start_byte` to `end_byte`."""

    text: str
    start_byte: int
    end_byte: int
    start_line: int
    end_line: int
    locator: str
    score: float
    trimmed: bool = False
    """Whether the record is longer than this excerpt."""
    shown: str = ""
    """The text as a model reads it: without colours, tags and escapes."""


class Draft(Struct, frozen=True):
    pieces: tuple[Piece, ...]
    text: str
    is_complete: bool = False
    """Whether nothing was left out for lack of room. A larger budget would then change nothing."""


class Drafts:
    def __init__(self, index: Index, way: Plan, *, has_noise: bool) -> None:
        self._index = index
        self._way = way
        self._has_noise = has_noise
        self._written: dict[Piece, tuple[str, str]] = {}
        self._adjacent: dict[tuple[int, int], bool] = {}

    def write(self, additions: Sequence[Addition]) -> Draft:
        """The draft with these additions. A later addition of a record replaces an earlier one."""
        latest = {addition.record: addition.pieces for addition in additions}
        headers = [addition.header for addition in additions if addition.header]
        pieces = self._merge([*headers, *(piece for record in sorted(latest) for piece in latest[record])])
        closing = write_closing_line(self._index, self._way.ranking, len(self._way.matches), self._count(pieces))
        parts: list[str] = []
        previous = -1
        for piece in pieces:
            locator, shown = self._write_piece(piece)
            parts += ("[…]" if piece.trimmed and piece.record == previous else f"[{locator}]", shown)
            previous = piece.record
        return Draft(tuple(pieces), "\n".join([*parts, closing]))

    def _merge(self, pieces: list[Piece]) -> list[Piece]:
        """Pieces in document order, merged if there is nothing to read between them."""
        merged: list[Piece] = []
        for piece in sorted(pieces):
            before = merged[-1] if merged else piece
            gap = piece.start - before.end
            if merged and (gap <= 0 or (gap < _MAX_GAP_BYTES and self._are_adjacent(before.end, piece.start))):
                trimmed, score = before.trimmed or piece.trimmed, max(before.score, piece.score)
                merged[-1] = Piece(before.start, max(before.end, piece.end), before.record, score, trimmed)
            else:
                merged.append(piece)
        return merged

    def _are_adjacent(self, end: int, start: int) -> bool:
        is_blank = self._adjacent.get((end, start))
        if is_blank is None:
            first = bytes(self._index.text[end:start]).translate(None, self._index.fill).lstrip(_BLANKS)[:1]
            # Rendering matters only if the first character is neither blank nor a letter or digit.
            is_blank = not first or (not first.isalnum() and not render(self._index, end, start).strip(" ,\t\r\n"))
            self._adjacent[end, start] = is_blank
        return is_blank

    def _write_piece(self, piece: Piece) -> tuple[str, str]:
        """The locator of a piece and its text as a model reads it."""
        written = self._written.get(piece)
        if written is None:
            place = make_locator(self._index, piece.record, piece.start)
            written = self._written[piece] = place, render(self._index, piece.start, piece.end)
        return written

    def write_excerpt(self, piece: Piece) -> Found:
        index, start, end = self._index, piece.start, piece.end
        (place, shown), text = self._write_piece(piece), decode(bytes(index.source[start:end]))
        lines = index.line_at(start), index.line_at(end - 1)
        return Found(text, start, end, *lines, place, round(piece.score, 3), piece.trimmed, shown)

    def _count(self, pieces: list[Piece]) -> Shown:
        """What these pieces show. A record counts as shown even if only part of it is."""
        outline = self._index.outline
        starts, records = outline.starts, len(outline)
        there: set[int] = set()
        for piece in pieces:
            record = piece.record if piece.record >= 0 else bisect_right(outline.ends, piece.start)
            while record < records and starts[record] < piece.end:
                there.add(record)
                record += 1
        matches = len(there & self._way.matches)
        compared = min(MOST_ROWS, records) if self._way.partly else 0
        is_trimmed = any(piece.trimmed for piece in pieces)
        return Shown(matches, len(there) - matches, is_trimmed, self._has_noise, compared, self._way.notes)
