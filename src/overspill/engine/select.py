"""From a question to what a model reads."""

from __future__ import annotations

import math
from collections.abc import Callable

from msgspec import Struct

from overspill.engine.choose import Filling, Piece
from overspill.engine.decode import decode
from overspill.engine.failures import failure_scores, first_message, stretches, verdicts
from overspill.engine.index import Index
from overspill.engine.ordering import ordered_rows
from overspill.engine.query import Query, parse
from overspill.engine.rank import Ranking, rank
from overspill.engine.show import locator, shown

_STRETCH = 0.8
"""Most of the budget that the stretch before a sign of giving up may take."""
_CLOSING = 32
"""Tokens kept for the last line."""


class Found(Struct, frozen=True):
    """One stretch of the stored bytes: `text` is exactly what stands from `start_byte` to `end_byte`."""

    text: str
    start_byte: int
    end_byte: int
    start_line: int
    end_line: int
    locator: str
    score: float


class Selection(Struct, frozen=True):
    """What was found. `text` is for a model to read; `excerpts` is for checking it against the stored bytes."""

    excerpts: tuple[Found, ...]
    text: str
    confidence: float
    matched: int
    kind: str
    searched_bytes: int
    total_bytes: int


def select(index: Index, query: str, *, max_tokens: int = 2000, count_tokens: Callable[[str], int] | None = None) -> Selection:
    count: Callable[[str], float] = count_tokens or (lambda text: len(text) / 4)
    asked = parse(query)
    ranking = rank(index, asked)
    filling = Filling(index, ranking, max_tokens - _CLOSING, count)
    order = _order(index, asked, ranking)
    if asked.failure:
        _take_causes(index, asked, filling, order)
    filling.take(order)
    pieces = _merged(index, filling.pieces)
    while True:
        excerpts = _excerpts(index, pieces)
        text = _text(index, pieces, excerpts, len(ranking.scores), len(filling.records))
        if count(text) <= max_tokens or not pieces:
            break
        pieces.remove(min(pieces, key=lambda piece: (piece.score, piece.start)))
    return Selection(tuple(excerpts), text, 0.0, len(ranking.scores), index.kind, index.searched_bytes, index.total_bytes)


def _take_causes(index: Index, query: Query, filling: Filling, order: list[tuple[int, float]]) -> None:
    """Where the cause of a failure is likeliest to be read: before the first sign of giving up, at its first mention, at the end."""
    top = order[0][1] if order else 1.0
    before, end = stretches(index)
    if query.listing and (failed := verdicts(index)):
        scores = dict(order)
        filling.take(sorted(((record, scores.get(record, 0.0)) for record in failed), key=lambda pair: -pair[1]), 0.7)
        return
    share = max(0.5, min(_STRETCH, 450 / filling.max_tokens))
    filling.take([(record, top) for record in before], share)
    filling.take([(record, top) for record in first_message(index)])
    filling.take([(record, top) for record in end], (1 - share) / 2)


def _order(index: Index, query: Query, ranking: Ranking) -> list[tuple[int, float]]:
    scores = ranking.scores
    if query.failure:
        _blame(index, ranking)
    if query.after or query.before:
        for record in ranking.best(5):
            for step, wanted in ((1, query.after), (-1, query.before)):
                beside = record + step
                if 0 <= beside < len(index.outline):
                    scores[beside] = max(scores.get(beside, 0.0), scores[record] * (0.95 if wanted else 0.6))
    if rows := ordered_rows(index, query, ranking):
        top = max(scores.values(), default=1.0)
        for number, record in enumerate(rows):
            scores[record] = max(scores.get(record, 0.0), top * (1.2 - 0.05 * number))
    return [(record, scores[record]) for record in ranking.best()]


def _blame(index: Index, ranking: Ranking) -> None:
    """A question about a failure: what looks like its cause, and what the question names besides."""
    top = max(ranking.scores.values(), default=1.0)
    for record, share in failure_scores(index).items():
        ranking.scores[record] = ranking.scores.get(record, 0.0) * 0.3 + top * share


def _merged(index: Index, pieces: list[Piece]) -> list[Piece]:
    """Pieces in document order; those with only white space between them become one."""
    merged: list[Piece] = []
    for piece in sorted(pieces):
        before = merged[-1] if merged else None
        if before and piece.start <= before.end:
            merged[-1] = Piece(before.start, max(before.end, piece.end), before.record, max(before.score, piece.score))
        elif before and piece.start - before.end < 4000 and not shown(index, before.end, piece.start).strip(" ,\t\n"):
            merged[-1] = Piece(before.start, piece.end, before.record, max(before.score, piece.score))
        else:
            merged.append(piece)
    return merged


def _excerpts(index: Index, pieces: list[Piece]) -> list[Found]:
    found: list[Found] = []
    line, reached = 1, 0
    for piece in pieces:
        line += _line_ends(index, reached, piece.start)
        last = line + _line_ends(index, piece.start, max(piece.start, piece.end - 1))
        place = locator(index, piece.record, line) if piece.record >= 0 else f"L{line}"
        text = decode(bytes(index.source[piece.start : piece.end]))
        found.append(Found(text, piece.start, piece.end, line, last, place, round(piece.score, 3)))
        reached = piece.start
    return found


def _line_ends(index: Index, start: int, end: int) -> int:
    part = index.source[start:end]
    return part.count(b"\n") + part.count(b"\r") - part.count(b"\r\n")


def _text(index: Index, pieces: list[Piece], excerpts: list[Found], matched: int, showing: int) -> str:
    lines: list[str] = []
    for piece, excerpt in zip(pieces, excerpts, strict=True):
        lines.append(f"[{excerpt.locator}]")
        lines.append(shown(index, piece.start, piece.end))
    lines.append(f"(matched {matched} records, showing {showing}; for the rest ask more narrowly or raise max_tokens)")
    return "\n".join(lines)
