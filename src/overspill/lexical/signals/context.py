"""Context: a record beside the one that names the subject may have the answer, and together they may hold all of the question."""

from __future__ import annotations

from collections import defaultdict

from overspill.lexical.boost import Boost
from overspill.lexical.index import Index
from overspill.lexical.outline import Outline
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
    outline, hits, worth = index.outline, ranking.hits, ranking.worth
    near = _find_near_terms(outline, hits)
    starts, ends = outline.starts, outline.ends
    scores, full_bytes = dict(ranking.scores), WEIGHTS.context_full_bytes
    for record, shares in near.items():
        if outline.tables and outline.table_of(record):
            continue  # the rows around one are about something else
        for _, _, term in hits.get(record, ()):
            shares.pop(term, None)
        gain = 0.0
        for term, share in shares.items():
            gain += worth[term] * share
        size = ends[record] - starts[record]
        scores[record] = scores.get(record, 0.0) + (gain if size <= full_bytes else full_bytes / size * gain)
    if quotes := index.traits.quotes:
        for record in scores:
            if quotes.match(index.text, starts[record]):
                scores[record] *= WEIGHTS.quote
    return Boost(rescored=scores)


def _find_near_terms(outline: Outline, hits: dict[int, list[tuple[int, int, int]]]) -> dict[int, dict[int, float]]:
    """By record, how much each term around it counts."""
    near: dict[int, dict[int, float]] = defaultdict(dict)
    starts, ends, total = outline.starts, outline.ends, len(outline)
    for record, spots in hits.items():
        if (
            outline.tables
            and (table := outline.table_of(record))
            and table.first + _MAX_RECORDS <= record < table.last - _MAX_RECORDS
        ):
            continue  # only rows are near enough
        start, end = starts[record], ends[record]
        last = {term: end for _, end, term in spots}
        for after in range(record + 1, min(total, record + 1 + _MAX_RECORDS)):
            edge = starts[after]
            if edge - end > _MAX_DISTANCE_BYTES:
                break
            known = near[after]
            for term, place in last.items():
                if (distance := abs(edge - place)) <= _MAX_DISTANCE_BYTES and (share := _BEFORE[distance]) > known.get(term, 0.0):
                    known[term] = share
        first = {term: start for start, _, term in reversed(spots)}
        for before in range(record - 1, max(-1, record - 1 - _MAX_RECORDS), -1):
            edge = ends[before]
            if start - edge > _MAX_DISTANCE_BYTES:
                break
            known = near[before]
            for term, place in first.items():
                if (distance := abs(place - edge)) <= _MAX_DISTANCE_BYTES and (share := _AFTER[distance]) > known.get(term, 0.0):
                    known[term] = share
    return near
