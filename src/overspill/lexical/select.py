"""Answers a question with text for a model and excerpts that can be checked against the stored bytes."""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence

from msgspec import Struct

from overspill.lexical.boost import Signal
from overspill.lexical.cells import MOST_ROWS
from overspill.lexical.confidence import estimate_confidence, measure_features
from overspill.lexical.costs import Costs
from overspill.lexical.fill import Addition, BudgetFill, Piece
from overspill.lexical.index import Index
from overspill.lexical.plan import Plan, plan
from overspill.lexical.query import parse
from overspill.lexical.rank import Ranking, rank
from overspill.lexical.render import Tally, describe_none_fits, describe_nothing_found, make_locator, render, write_closing_line
from overspill.lexical.signals import SIGNALS, compares_rows
from overspill.text.encoding import decode

_MAX_GAP_BYTES = 4_000
_AIM = 1.25
"""Planned costs may be this much too high."""
_HIGHER_AIMS = (2.0, 4.0)
"""What to try if costs were estimated still higher, so that room is left."""


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
    """The same as a model reads it: without colours, tags and escapes."""


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


def select(
    index: Index,
    query: str,
    *,
    max_tokens: int = 2000,
    count_tokens: Callable[[str], int] | None = None,
    signals: Sequence[Signal] = SIGNALS,
) -> Selection:
    """The records that answer `query`. `text` is never over `max_tokens`; by default, four characters count as a token."""
    count = count_tokens or _estimate_tokens
    asked = parse(query)
    index = index.focus(asked.terms, is_failure=asked.failure, compares_rows=compares_rows(index, asked))
    found = rank(index, asked)
    least = Tally(len(found.matches), more=found.more, uncounted=found.uncounted, cut=found.cut)
    way = plan(index, asked, found, signals)
    ranking = way.ranking
    brief = way.matches if asked.listing and not way.ordered and index.traits.has_telling_lines else set(way.brief)
    draft = _fit(index, ranking, way, brief, max_tokens, count) if way.matches or way.evidence else _NOTHING
    excerpts, text, is_complete = draft.excerpts, draft.text, draft.is_complete
    if not excerpts:
        messages = describe_none_fits(least, max_tokens) if way.matches else describe_nothing_found(index, query, cut=ranking.cut)
        text = next((line for line in messages if count(line) <= max_tokens), "")
        is_complete = not way.matches and not way.evidence and text == messages[0]
    trust = estimate_confidence(asked, found, measure_features(index, asked, found, way.evidence)) if excerpts else 0.0
    return Selection(excerpts, text, trust, len(way.matches), index.kind, index.total_bytes, index.total_bytes, is_complete)


class _Draft(Struct, frozen=True):
    excerpts: tuple[Found, ...]
    text: str
    tally: Tally
    is_complete: bool = False


_NOTHING = _Draft((), "", Tally(0))


def _fit(index: Index, ranking: Ranking, way: Plan, brief: set[int], max_tokens: int, count: Callable[[str], int]) -> _Draft:
    """The longest beginning of the additions that fits, and as much of the next one."""
    filling = BudgetFill(index, ranking, way.steps, brief, Costs(index, ranking, count))
    additions = filling.additions
    for aim in (_AIM, *_HIGHER_AIMS):
        filling.climb(aim * max_tokens)
        if filling.is_complete or count(_assemble(index, ranking, way, additions).text) > max_tokens:
            break
    taken = over = len(additions)
    while taken and (excess := count(_assemble(index, ranking, way, additions[:taken]).text) - max_tokens) > 0:
        over = taken
        least = additions[taken - 1].spent - excess
        taken = min(taken - 1, bisect_right(additions, least, key=lambda addition: addition.spent))
    while taken + 1 < over and count(_assemble(index, ranking, way, additions[: taken + 1]).text) <= max_tokens:
        taken += 1
    draft = _assemble(index, ranking, way, additions[:taken]) if taken else _NOTHING
    if taken == len(additions):
        return _Draft(draft.excerpts, draft.text, draft.tally, filling.is_complete)
    following = additions[taken]
    before = next(
        (each.spans for each in reversed(additions[:taken]) if each.record == following.record), list[tuple[int, int]]()
    )
    for shorter in reversed(filling.shorten(following, before)):
        longer = _assemble(index, ranking, way, [*additions[:taken], shorter])
        if count(longer.text) <= max_tokens:
            return longer
    return draft


def _assemble(index: Index, ranking: Ranking, way: Plan, additions: list[Addition]) -> _Draft:
    """A later addition of a record replaces an earlier one."""
    latest = {addition.record: addition.pieces for addition in additions}
    headers = [addition.header for addition in additions if addition.header]
    pieces = _merge_pieces(index, [*headers, *(piece for parts in latest.values() for piece in parts)])
    excerpts = _excerpts(index, pieces)
    tally = _tally(index, pieces, ranking, way)
    return _Draft(tuple(excerpts), "\n".join([*_texts(pieces, excerpts), write_closing_line(index, tally)]), tally)


def _tally(index: Index, pieces: list[Piece], ranking: Ranking, way: Plan) -> Tally:
    """A record counts as shown even if only a part of it is."""
    starts, ends = index.outline.starts, index.outline.ends
    there = {record for piece in pieces for record in range(bisect_right(ends, piece.start), bisect_left(starts, piece.end))}
    showing = len(there & way.matches)
    shortened = any(piece.trimmed for piece in pieces)
    compared = min(MOST_ROWS, len(index.outline)) if way.partly else 0
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
        shown = render(index, piece.start, piece.end)
        found.append(Found(text, piece.start, piece.end, line, last, place, round(piece.score, 3), piece.trimmed, shown))
    return found


def _texts(pieces: list[Piece], excerpts: list[Found]) -> list[str]:
    parts: list[str] = []
    previous = -1
    for piece, excerpt in zip(pieces, excerpts, strict=True):
        continues = piece.trimmed and piece.record == previous
        parts.append("[…]" if continues else f"[{excerpt.locator}]")
        parts.append(excerpt.shown)
        previous = piece.record
    return parts
