"""Sections: a passage of a thread, or a line of a function, is about what the whole of it is about."""

from __future__ import annotations

from functools import cache

from overspill.lexical.boost import Boost
from overspill.lexical.index import Index
from overspill.lexical.outline import Outline
from overspill.lexical.query import Query
from overspill.lexical.rank import Ranking
from overspill.lexical.weights import WEIGHTS


def boost_sections(index: Index, query: Query, ranking: Ranking) -> Boost | None:
    """Adds to the score of each record what the best section around it contains."""
    outline = index.outline
    if not index.traits.has_topics or not len(outline.label_starts):
        return None
    best = _weigh_sections(outline, ranking)
    scores = dict(ranking.scores)
    for record, label in enumerate(outline.under):
        if label >= 0 and best[label]:
            scores[record] = scores.get(record, 0.0) + WEIGHTS.section * best[label]
    return Boost(rescored=scores)


def _weigh_sections(outline: Outline, ranking: Ranking) -> list[float]:
    """By label, what the best of the sections around it is worth. A label precedes those below it."""
    held, sizes = [0] * len(outline.label_starts), [0] * len(outline.label_starts)
    for label, marks in ranking.labels.items():
        held[label] = sum(1 << term for term in marks)
    for record, spots in ranking.hits.items():
        if (label := outline.under[record]) >= 0:
            for _, _, term in spots:
                held[label] |= 1 << term
    for label, start, end in zip(outline.under, outline.starts, outline.ends, strict=True):
        if label >= 0:
            sizes[label] += end - start
    for label in range(len(held) - 1, -1, -1):
        if (parent := outline.label_parents[label]) >= 0:
            held[parent] |= held[label]
            sizes[parent] += sizes[label]

    @cache
    def value(terms: int) -> float:
        return sum(worth for number, worth in enumerate(ranking.worth) if terms >> number & 1)

    best: list[float] = []
    for label, parent in enumerate(outline.label_parents):
        own = value(held[label]) / (1 + sizes[label] / WEIGHTS.section_half_bytes)
        best.append(max(own, best[parent]) if parent >= 0 else own)
    return best
