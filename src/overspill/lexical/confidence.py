"""Estimates how sure an answer is, from how much of the question the best record contains and from the text's structure."""

from __future__ import annotations

from overspill.lexical.index import Index
from overspill.lexical.query import Query
from overspill.lexical.rank import Ranking

_EVEN_ODDS_COVERAGE = 0.34
"""The share of the question's worth in one record at which an answer is as likely right as wrong."""
_MISSING_TERM_FACTOR = 0.5
"""Applies if an identifier, number or version in the question is nowhere in the text."""

_ARBITRARY_CONFIDENCE = 0.1
"""The confidence of an answer whose records are only the first of many alike."""


def measure_coverage(index: Index, ranking: Ranking) -> float:
    """The worth of the terms in the best record or its labels, as a share of the worth of all terms."""
    total = sum(ranking.worth)
    best = ranking.best(1)
    if not best or not total:
        return 0.0
    held = {term for _, _, term in ranking.hits.get(best[0], [])}
    for label in index.outline.lineage(best[0]):
        held.update(ranking.labels.get(label, {}))
    return sum(ranking.worth[term] for term in held) / total


def estimate_confidence(query: Query, ranking: Ranking, share: float, evidence: float) -> float:
    present = {term for spots in ranking.hits.values() for _, _, term in spots} | {
        term for marks in ranking.labels.values() for term in marks
    }
    absent = any(term.literal and number not in present for number, term in enumerate(ranking.terms))
    trust = 1 - 0.5 ** (share / _EVEN_ODDS_COVERAGE)
    if absent and not query.failure:
        trust *= _MISSING_TERM_FACTOR
    if ranking.everywhere or query.vague:
        trust = _ARBITRARY_CONFIDENCE
    return round(max(trust, evidence), 3)
