"""From a question to what a model reads, and what can be checked against the stored bytes."""

from __future__ import annotations

import math
from collections.abc import Callable

from msgspec import Struct

from overspill.engine.choose import Filling, Piece
from overspill.engine.index import Index
from overspill.engine.plan import RUNNING, Plan, plan
from overspill.engine.query import parse
from overspill.engine.rank import Ranking, rank
from overspill.engine.show import closing, locator, nothing_found, shown
from overspill.engine.trust import confidence, coverage
from overspill.text import decode

_NOTHING = 0.05
"""Share of the question's worth below which the best record does not speak of it at all."""
_GAP = 4_000
_PARTS = (1.0, 0.92, 0.84, 0.7, 0.5, 0.3, 0.15, 0.07)


class Found(Struct, frozen=True):
    """One stretch of the stored bytes: `text` is exactly what stands from `start_byte` to `end_byte`."""

    text: str
    start_byte: int
    end_byte: int
    start_line: int
    end_line: int
    locator: str
    score: float
    trimmed: bool = False
    """True when the record is longer than this excerpt of it."""


class Selection(Struct, frozen=True):
    """`text` is for a model to read: colours, tags and escapes left out; `excerpts` are the stored bytes it was read from."""

    excerpts: tuple[Found, ...]
    text: str
    confidence: float
    matched: int
    kind: str
    searched_bytes: int
    total_bytes: int


def select(index: Index, query: str, *, max_tokens: int = 2000, count_tokens: Callable[[str], int] | None = None) -> Selection:
    """The records that answer `query`; `text` is never over `max_tokens`, by default counted as a quarter of the characters."""
    count = count_tokens or _quarter
    asked = parse(query)
    ranking = rank(index, asked)
    room = max_tokens - count(closing(index, ranking.matched, 0)) - 1
    if index.kind in RUNNING:
        # Read now, a question about a failure later costs no more than any other.
        _ = index.signs
    way = plan(index, asked, ranking, room)
    share = coverage(index, ranking)
    excerpts: tuple[Found, ...] = ()
    text = ""
    if share >= _NOTHING or way.evidence:
        # Planning adds up parts; put together they may count for more. Then the least are dropped, or less is planned for.
        for part in _PARTS:
            filling = _filled(index, ranking, plan(index, asked, ranking, room * part), room * part, count)
            excerpts, text = _within(index, filling, ranking.matched, max_tokens, count)
            if excerpts:
                break
    if not excerpts:
        text = nothing_found(index, query, max_tokens, count)
    trust = confidence(asked, ranking, share, way.evidence) if excerpts else 0.0
    return Selection(excerpts, text, trust, ranking.matched, index.kind, index.searched_bytes, index.total_bytes)


def _filled(index: Index, ranking: Ranking, way: Plan, room: float, count: Callable[[str], int]) -> Filling:
    filling = Filling(index, ranking, room, count)
    for step in way.steps:
        filling.take(step.order, step.share)
    return filling


def _within(
    index: Index, filling: Filling, matched: int, max_tokens: int, count: Callable[[str], int]
) -> tuple[tuple[Found, ...], str]:
    pieces = _merged(index, filling.pieces)
    while pieces:
        excerpts = _excerpts(index, pieces)
        showing = _showing(index, pieces, filling.records)
        last = closing(index, max(matched, showing), showing, shortened=any(piece.trimmed for piece in pieces))
        text = "\n".join([*_texts(index, pieces, excerpts), last])
        if count(text) <= max_tokens:
            return tuple(excerpts), text
        pieces.remove(min(pieces, key=lambda piece: (piece.score, piece.start)))
    return (), ""


def _showing(index: Index, pieces: list[Piece], taken: set[int]) -> int:
    """How many of the records taken are still there, at least in part."""
    starts, ends = index.outline.starts, index.outline.ends
    return sum(any(piece.start < ends[record] and starts[record] < piece.end for piece in pieces) for record in taken)


def _quarter(text: str) -> int:
    return math.ceil(len(text) / 4)


def _merged(index: Index, pieces: list[Piece]) -> list[Piece]:
    """Pieces in document order; those with nothing to read between them become one."""
    merged: list[Piece] = []
    for piece in sorted(pieces):
        before = merged[-1] if merged else None
        if before and (piece.start <= before.end or _touch(index, before.end, piece.start)):
            trimmed = before.trimmed or piece.trimmed
            merged[-1] = Piece(before.start, max(before.end, piece.end), before.record, max(before.score, piece.score), trimmed)
        else:
            merged.append(piece)
    return merged


def _touch(index: Index, end: int, start: int) -> bool:
    return start - end < _GAP and not shown(index, end, start).strip(" ,\t\r\n")


def _excerpts(index: Index, pieces: list[Piece]) -> list[Found]:
    found: list[Found] = []
    line, reached = 1, 0
    for piece in pieces:
        line += _line_ends(index, reached, piece.start)
        last = line + _line_ends(index, piece.start, piece.end - 1)
        place = locator(index, piece.record, piece.start, line)
        text = decode(bytes(index.source[piece.start : piece.end]))
        found.append(Found(text, piece.start, piece.end, line, last, place, round(piece.score, 3), piece.trimmed))
        reached = piece.start
    return found


def _line_ends(index: Index, start: int, end: int) -> int:
    part = index.source[start:end]
    return part.count(b"\n") + part.count(b"\r") - part.count(b"\r\n")


def _texts(index: Index, pieces: list[Piece], excerpts: list[Found]) -> list[str]:
    parts: list[str] = []
    previous = -1
    for piece, excerpt in zip(pieces, excerpts, strict=True):
        goes_on = piece.trimmed and piece.record == previous
        parts.append("[…]" if goes_on else f"[{excerpt.locator}]")
        parts.append(shown(index, piece.start, piece.end))
        previous = piece.record
    return parts
