"""Neighbours: what is below a heading, and what comes after or before a record."""

from __future__ import annotations

from overspill.lexical.boost import Boost
from overspill.lexical.index import Index
from overspill.lexical.query import Query
from overspill.lexical.rank import Ranking
from overspill.lexical.weights import WEIGHTS

_MAX_ANCHORS = 5
"""Best records whose neighbours count if the question says "after" or "before"."""


def boost_bodies(index: Index, query: Query, ranking: Ranking) -> Boost | None:
    """A heading that matches about as well as anything says little without the record below it."""
    outline = index.outline
    raised: dict[int, float] = {}
    least = WEIGHTS.heading * max(ranking.scores.values(), default=0.0)
    for label in ranking.labels:
        heading = outline.record_at(outline.label_starts[label])
        is_counted = ranking.scores.get(heading, 0.0) > least and (not query.listing or heading in ranking.matches)
        if (is_counted or heading in raised) and heading + 1 < len(outline) and outline.under[heading + 1] == label:
            own = max(ranking.scores[heading] if is_counted else 0.0, raised.get(heading, 0.0))
            raised[heading + 1] = max(raised.get(heading + 1, 0.0), own * WEIGHTS.body)
    return Boost(raised=raised) if raised else None


def boost_neighbours(index: Index, query: Query, ranking: Ranking) -> Boost | None:
    """ "What comes after X": the records beside those that are X."""
    if not (query.after or query.before):
        return None
    raised: dict[int, float] = {}
    for record in ranking.best(_MAX_ANCHORS):
        for step, asked in ((1, query.after), (-1, query.before)):
            beside = record + step
            if 0 <= beside < len(index.outline):
                share = WEIGHTS.asked_side if asked else WEIGHTS.other_side
                raised[beside] = max(raised.get(beside, 0.0), ranking.scores[record] * share)
    return Boost(raised=raised)
