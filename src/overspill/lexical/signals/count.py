"""Answers "how many" with records that have a number before a word of the question, as in `58 passed`."""

from __future__ import annotations

from overspill.lexical.boost import Boost, Step, order_by_score
from overspill.lexical.index import Index
from overspill.lexical.query import Query
from overspill.lexical.rank import Ranking
from overspill.text.regex import regex

_COUNTS_SHARE = 0.3
_NUMBER = regex(rb"(?<![\w./-])\d[\d,.]{0,12} \Z")
_MAX_NUMBER_BYTES = 12
"""How far before a word to look for its number."""


def boost_counts(index: Index, query: Query, ranking: Ranking) -> Boost | None:
    if not query.counting:
        return None
    counts = {
        record: ranking.scores[record]
        for record, spots in ranking.hits.items()
        if any(
            ranking.terms[term].telling and _NUMBER.search(index.text[max(0, start - _MAX_NUMBER_BYTES) : start])
            for start, _, term in spots
        )
    }
    return Boost(first=(Step(order_by_score(counts), lambda tokens: _COUNTS_SHARE * tokens),)) if counts else None
