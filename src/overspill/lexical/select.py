"""Answers a question with text for a model and excerpts that can be checked against the stored bytes."""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Callable

from msgspec import Struct

from overspill.lexical.cells import MOST_ROWS
from overspill.lexical.confidence import estimate_confidence, measure_coverage
from overspill.lexical.expansion import expand
from overspill.lexical.fill import BudgetFill, Piece
from overspill.lexical.index import Index
from overspill.lexical.plan import RUNNING, Plan, plan
from overspill.lexical.query import parse
from overspill.lexical.rank import Ranking, rank
from overspill.lexical.render import Tally, describe_none_fits, describe_nothing_found, make_locator, render, write_closing_line
from overspill.text.encoding import decode

_MAX_GAP_BYTES = 4_000
_FIRST_AIM = 1.25
"""The first plan aims at this multiple of the room."""
_MAX_ROUNDS = 6


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


class Selection(Struct, frozen=True):
    """`text` is for a model, without colours, tags and escapes; `excerpts` are the stored bytes behind it."""

    excerpts: tuple[Found, ...]
    text: str
    confidence: float
    matched: int
    kind: str
    searched_bytes: int
    total_bytes: int
    is_complete: bool
    """Whether nothing was left out for want of room: a larger budget would change nothing."""


def select(index: Index, query: str, *, max_tokens: int = 2000, count_tokens: Callable[[str], int] | None = None) -> Selection:
    """The records that answer `query`. `text` is never over `max_tokens`; by default, four characters count as a token."""
    count = count_tokens or _estimate_tokens
    asked = parse(query)
    ranking = rank(index, asked)
    if index.kind == "prose":
        ranking = expand(index, asked, ranking)
    least = Tally(len(ranking.matches), more=ranking.more, uncounted=ranking.uncounted, cut=ranking.cut)
    room = max_tokens - count(write_closing_line(index, least)) - 1
    if index.kind in RUNNING:
        # Read them now, so that a later question about a failure costs no more than any other.
        _ = index.signs
    way = plan(index, asked, ranking, room)
    draft = _fit(index, ranking, way, room, max_tokens, count) if way.matches or way.evidence else _NOTHING
    if asked.listing and not way.ordered and index.kind in (*RUNNING, "diff") and draft.tally.showing < draft.tally.matched:
        draft = max(draft, _fit(index, ranking, way, room, max_tokens, count, brief=True), key=lambda each: each.tally.showing)
    excerpts, text, is_complete = draft.excerpts, draft.text, draft.is_complete
    if not excerpts:
        messages = (
            describe_none_fits(index, least, max_tokens) if way.matches else describe_nothing_found(index, query, cut=ranking.cut)
        )
        text = next((line for line in messages if count(line) <= max_tokens), "")
        is_complete = not way.matches and not way.evidence and text == messages[0]
    trust = estimate_confidence(asked, ranking, measure_coverage(index, ranking), way.evidence) if excerpts else 0.0
    return Selection(excerpts, text, trust, len(way.matches), index.kind, index.searched_bytes, index.total_bytes, is_complete)


class _Draft(Struct, frozen=True):
    excerpts: tuple[Found, ...]
    text: str
    tally: Tally
    is_complete: bool


_NOTHING = _Draft((), "", Tally(0), is_complete=False)


def _fit(
    index: Index, ranking: Ranking, way: Plan, room: float, max_tokens: int, count: Callable[[str], int], *, brief: bool = False
) -> _Draft:
    """Assembled records cost more or less than planned, so each round corrects the plan by what was measured."""
    aim = _FIRST_AIM * room
    taken: list[list[Piece]] = []
    for _ in range(_MAX_ROUNDS):
        filling = BudgetFill(index, ranking, room, aim, count, brief=brief)
        for step in way.steps:
            filling.take(step.order, step.share)
        taken = filling.taken
        draft = _assemble(index, ranking, way, taken, is_complete=filling.is_complete and not brief)
        if (used := count(draft.text)) <= max_tokens:
            return draft
        aim *= max_tokens / used
    while taken:
        taken = taken[:-1]
        draft = _assemble(index, ranking, way, taken)
        if count(draft.text) <= max_tokens:
            return draft
    return _NOTHING


def _assemble(index: Index, ranking: Ranking, way: Plan, taken: list[list[Piece]], *, is_complete: bool = False) -> _Draft:
    pieces = _merge_pieces(index, [piece for record in taken for piece in record])
    excerpts = _excerpts(index, pieces)
    tally = _tally(index, pieces, ranking, way)
    text = "\n".join([*_texts(index, pieces, excerpts), write_closing_line(index, tally)])
    return _Draft(tuple(excerpts), text, tally, is_complete)


def _tally(index: Index, pieces: list[Piece], ranking: Ranking, way: Plan) -> Tally:
    """A record counts as shown even if only a part of it is."""
    starts, ends = index.outline.starts, index.outline.ends
    there = {record for piece in pieces for record in range(bisect_right(ends, piece.start), bisect_left(starts, piece.end))}
    showing = len(there & way.matches)
    shortened = any(piece.trimmed for piece in pieces)
    compared = MOST_ROWS if way.partly else 0
    return Tally(
        len(way.matches), showing, len(there) - showing, shortened, ranking.more, ranking.uncounted, ranking.cut, compared
    )


def _estimate_tokens(text: str) -> int:
    return math.ceil(len(text) / 4)


def _merge_pieces(index: Index, pieces: list[Piece]) -> list[Piece]:
    """Pieces in document order, merged if there is nothing to read between them."""
    merged: list[Piece] = []
    for piece in sorted(pieces):
        before = merged[-1] if merged else None
        if before and (piece.start <= before.end or _are_adjacent(index, before.end, piece.start)):
            trimmed = before.trimmed or piece.trimmed
            merged[-1] = Piece(before.start, max(before.end, piece.end), before.record, max(before.score, piece.score), trimmed)
        else:
            merged.append(piece)
    return merged


def _are_adjacent(index: Index, end: int, start: int) -> bool:
    return start - end < _MAX_GAP_BYTES and not render(index, end, start).strip(" ,\t\r\n")


def _excerpts(index: Index, pieces: list[Piece]) -> list[Found]:
    found: list[Found] = []
    for piece in pieces:
        line = index.line_at(piece.start)
        last = index.line_at(piece.end - 1)
        place = make_locator(index, piece.record, piece.start, line)
        text = decode(bytes(index.source[piece.start : piece.end]))
        found.append(Found(text, piece.start, piece.end, line, last, place, round(piece.score, 3), piece.trimmed))
    return found


def _texts(index: Index, pieces: list[Piece], excerpts: list[Found]) -> list[str]:
    parts: list[str] = []
    previous = -1
    for piece, excerpt in zip(pieces, excerpts, strict=True):
        continues = piece.trimmed and piece.record == previous
        parts.append("[…]" if continues else f"[{excerpt.locator}]")
        parts.append(render(index, piece.start, piece.end))
        previous = piece.record
    return parts
