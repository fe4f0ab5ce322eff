"""Estimates how sure an answer is: whether the best record matches the question, and whether anything in the text does.

`benchmarks/engine/confidence.py` fits the weights and shows how far to trust them.
"""

from __future__ import annotations

import math
from operator import mul

from msgspec import Struct
from msgspec.structs import astuple

from overspill.lexical.index import Index
from overspill.lexical.query import Query, list_failure_words
from overspill.lexical.rank import Ranking
from overspill.lexical.words import read_lexicon, stem

_ARBITRARY_CONFIDENCE = 0.1
"""The confidence of an answer whose records are only the first of many equally good ones."""
_LEAST_CONFIDENCE_IN_OTHER_WORDS = 0.1
"""The least confidence in code and pages, which often use other words than the question. Without its words, they may still answer
it: eight of ten such answers were right."""


class Features(Struct, frozen=True):
    """Signs that an answer is right, each 0…1."""

    share: float
    """The worth of the terms in the best record or its labels, as a share of the worth of all terms."""
    missing: float
    """The weight of the terms that occur nowhere in the text, which may be about something else."""
    structure: float
    """How strongly the structure of the text supports the answer (a failure, an order), as far as the terms occur."""
    literal: float
    """Whether the best record has an identifier or number from the question. Words can be ambiguous; these are not."""


class ConfidenceWeights(Struct, frozen=True):
    base: float = -1.81
    share: float = 2.57
    missing: float = -3.49
    structure: float = 1.36
    literal: float = 1.88


CONFIDENCE_WEIGHTS = ConfidenceWeights()


def measure_features(index: Index, query: Query, ranking: Ranking, evidence: float) -> Features:
    present = {term for spots in ranking.hits.values() for _, _, term in spots}.union(*ranking.labels.values())
    # The structure shows that something ran and failed, so the text need not repeat the question's words for it.
    phrasing = list_failure_words(query.text) | set(map(stem, read_lexicon("runs"))) if query.failure and evidence else set[str]()
    asked = [number for number, term in enumerate(ranking.terms) if term.telling and term.key not in phrasing]
    weight = sum(ranking.terms[number].weight for number in asked)
    missing = sum(ranking.terms[number].weight for number in asked if number not in present) / weight if weight else 0.0
    worth = sum(ranking.worth[number] for number in asked)
    held: set[int] = set()
    for record in ranking.best(1):
        labels = index.outline.lineage(record)
        held.update((term for _, _, term in ranking.hits.get(record, ())), *(ranking.labels.get(label, ()) for label in labels))
    return Features(
        share=sum(ranking.worth[number] for number in asked if number in held) / worth if worth else float(not asked),
        missing=missing,
        structure=evidence * (1 - missing),
        literal=float(any(ranking.terms[number].literal for number in held)),
    )


def estimate_confidence(index: Index, query: Query, ranking: Ranking, evidence: float) -> float:
    """The confidence, 0…1. At least four in five answers at 0.5 or more should be right."""
    if ranking.everywhere or query.vague:
        return _ARBITRARY_CONFIDENCE
    least = _LEAST_CONFIDENCE_IN_OTHER_WORDS if index.traits.is_code or index.traits.is_markup else 0.0
    return max(least, round(weigh(measure_features(index, query, ranking, evidence), CONFIDENCE_WEIGHTS), 3))


def weigh(features: Features, weights: ConfidenceWeights) -> float:
    base, *others = astuple(weights)
    return 1 / (1 + math.exp(-base - sum(map(mul, others, astuple(features)))))
