"""Context: a record beside the one that names the subject may have the answer, and together they may hold all of the question."""

from __future__ import annotations

from overspill.lexical.boost import Boost
from overspill.lexical.index import Index
from overspill.lexical.query import Query
from overspill.lexical.rank import Ranking

_AFTER_SHARE, _BEFORE_SHARE = 0.6, 0.4
"""How much a term counts that is just before a record, or just after it. Answers come after questions."""
_HALF_BYTES = 250
"""At this distance from the record it counts half as much."""
_MAX_DISTANCE_BYTES = 1_000
_MAX_RECORDS = 4
"""How many records on each side of a term gain by it."""
_SHORT_BYTES = 300
"""A longer record says by itself what it is about, so that its context counts less."""
_QUOTE_FACTOR = 0.5
"""How much a record counts that only repeats another."""


def boost_context(index: Index, query: Query, ranking: Ranking) -> Boost | None:
    """Adds to the score of each record what is around it and not in it."""
    if not index.traits.has_context:
        return None
    near: dict[int, dict[int, float]] = {}
    starts, ends = index.outline.starts, index.outline.ends
    for record, spots in ranking.hits.items():
        last = {term: end for _, end, term in spots}
        for after in range(record + 1, min(len(starts), record + 1 + _MAX_RECORDS)):
            if starts[after] - ends[record] > _MAX_DISTANCE_BYTES:
                break
            _note(near, after, {term: starts[after] - end for term, end in last.items()}, _AFTER_SHARE)
        first = {term: start for start, _, term in reversed(spots)}
        for before in range(record - 1, max(-1, record - 1 - _MAX_RECORDS), -1):
            if starts[record] - ends[before] > _MAX_DISTANCE_BYTES:
                break
            _note(near, before, {term: start - ends[before] for term, start in first.items()}, _BEFORE_SHARE)
    scores = dict(ranking.scores)
    for record, shares in near.items():
        if index.outline.table_of(record):
            continue  # the rows around one are about something else
        own = {term for _, _, term in ranking.hits.get(record, ())}
        size = ends[record] - starts[record]
        scores[record] = scores.get(record, 0.0) + min(1.0, _SHORT_BYTES / size) * sum(
            ranking.worth[term] * share for term, share in shares.items() if term not in own
        )
    if quotes := index.traits.quotes:
        for record in scores:
            if quotes.match(index.text, starts[record]):
                scores[record] *= _QUOTE_FACTOR
    return Boost(rescored=scores)


def _note(near: dict[int, dict[int, float]], record: int, distances: dict[int, int], most: float) -> None:
    """How much each term counts for a record from which it is this far."""
    known = near.setdefault(record, {})
    for term, distance in distances.items():
        if distance <= _MAX_DISTANCE_BYTES:
            share = most * 0.5 ** (distance / _HALF_BYTES)
            if known.get(term, 0.0) < share:
                known[term] = share
