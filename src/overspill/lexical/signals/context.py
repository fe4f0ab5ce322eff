"""Context: a record beside the one that names the subject may have the answer, and together they may hold all of the question."""

from __future__ import annotations

from overspill.lexical.boost import Boost
from overspill.lexical.index import Index
from overspill.lexical.query import Query
from overspill.lexical.rank import Ranking
from overspill.lexical.weights import WEIGHTS

_MAX_DISTANCE_BYTES = 1_000
_MAX_RECORDS = 4
"""How many records on each side of a term gain by it."""


_FADE = tuple(0.5 ** (distance / WEIGHTS.context_half_bytes) for distance in range(_MAX_DISTANCE_BYTES + 1))
_BEFORE = tuple(WEIGHTS.before_record * share for share in _FADE)
_AFTER = tuple(WEIGHTS.after_record * share for share in _FADE)
"""By distance, how much a term counts that is before or after a record."""


def boost_context(index: Index, query: Query, ranking: Ranking) -> Boost | None:
    """Adds to the score of each record what is around it and not in it."""
    if not index.traits.has_context:
        return None
    near = _find_near_terms(index, ranking)
    starts, ends, worth = index.outline.starts, index.outline.ends, ranking.worth
    scores = dict(ranking.scores)
    for record, shares in near.items():
        if index.outline.table_of(record):
            continue  # the rows around one are about something else
        for _, _, term in ranking.hits.get(record, ()):
            shares.pop(term, None)
        gain = sum(worth[term] * share for term, share in shares.items())
        scores[record] = scores.get(record, 0.0) + min(1.0, WEIGHTS.context_full_bytes / (ends[record] - starts[record])) * gain
    if quotes := index.traits.quotes:
        for record in scores:
            if quotes.match(index.text, starts[record]):
                scores[record] *= WEIGHTS.quote
    return Boost(rescored=scores)


def _find_near_terms(index: Index, ranking: Ranking) -> dict[int, dict[int, float]]:
    """By record, how much each term around it counts."""
    near: dict[int, dict[int, float]] = {}
    outline = index.outline
    starts, ends, total = outline.starts, outline.ends, len(outline)
    for record, spots in ranking.hits.items():
        if (table := outline.table_of(record)) and table.first + _MAX_RECORDS <= record < table.last - _MAX_RECORDS:
            continue  # only rows are near enough
        last = {term: end for _, end, term in spots}
        for after in range(record + 1, min(total, record + 1 + _MAX_RECORDS)):
            if starts[after] - ends[record] > _MAX_DISTANCE_BYTES:
                break
            _note(near, after, starts[after], last, _BEFORE)
        first = {term: start for start, _, term in reversed(spots)}
        for before in range(record - 1, max(-1, record - 1 - _MAX_RECORDS), -1):
            if starts[record] - ends[before] > _MAX_DISTANCE_BYTES:
                break
            _note(near, before, ends[before], first, _AFTER)
    return near


def _note(near: dict[int, dict[int, float]], record: int, edge: int, places: dict[int, int], shares: tuple[float, ...]) -> None:
    """How much each term counts for a record with this edge."""
    known = near.get(record)
    if known is None:
        known = near[record] = {}
    for term, place in places.items():
        distance = abs(edge - place)
        if distance <= _MAX_DISTANCE_BYTES:
            share = shares[distance]
            if term not in known or known[term] < share:
                known[term] = share
