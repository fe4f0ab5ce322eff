"""Subsections: a question may name a heading and, in the same breath, one of the headings below it: the conclusion on X."""

from __future__ import annotations

from overspill.lexical.boost import Boost
from overspill.lexical.index import Index
from overspill.lexical.query import Query
from overspill.lexical.rank import Ranking
from overspill.lexical.weights import WEIGHTS
from overspill.lexical.words import read_lexicon, split_words, stem

_MIN_COVERED_SHARE = 0.8
"""Of what the words of the question are worth, in the headings above a record."""
_MAX_RECORDS = 4
"""Of a subsection that are shown before everything else."""
_MAX_HEADING_BYTES = 200


def boost_subsections(index: Index, query: Query, ranking: Ranking) -> Boost | None:
    """Puts the beginning of a subsection first if it and the headings above it have nearly all of the question's words."""
    outline = index.outline
    if not index.traits.has_headings or not ranking.labels:
        return None
    met = {term for spots in ranking.hits.values() for _, _, term in spots}.union(*ranking.labels.values())
    ending = _find_ending_words(ranking)
    asked = ending.union(number for number in met if ranking.terms[number].telling)
    least = _MIN_COVERED_SHARE * sum(ranking.worth[number] for number in asked)
    raised: dict[int, float] = {}
    top = max(ranking.scores.values(), default=0.0)
    for label in _list_labels(index, ranking, ending):
        own, above = asked.intersection(ranking.labels.get(label, ())), set[int]()
        if _names_ending(index, label):
            own |= ending
        parent = outline.label_parents[label]
        while parent >= 0:
            above.update(asked.intersection(ranking.labels.get(parent, ())))
            parent = outline.label_parents[parent]
        if not above or own <= above or sum(ranking.worth[number] for number in own | above) < least:
            continue
        first = outline.record_from(outline.label_starts[label])
        for place, record in enumerate(range(first, min(len(outline), first + _MAX_RECORDS))):
            if outline.under[record] == label:
                raised[record] = top * (WEIGHTS.answering_row - WEIGHTS.row_step * place)
    return Boost(raised=raised) if raised else None


def _list_labels(index: Index, ranking: Ranking, ending: set[int]) -> list[int]:
    """Labels that may be the subsection: with a word of the question, or below one that has."""
    outline = index.outline
    if not ending:
        return list(ranking.labels)
    pairs = enumerate(outline.label_parents)
    return [label for label, parent in pairs if label in ranking.labels or parent in ranking.labels]


def _find_ending_words(ranking: Ranking) -> set[int]:
    """The words of a question that ask how something ended."""
    stems = set(map(stem, read_lexicon("ending")))
    return {number for number, term in enumerate(ranking.terms) if term.telling and term.key in stems}


def _names_ending(index: Index, label: int) -> bool:
    start = index.outline.label_starts[label]
    heading = bytes(index.text[start : min(index.outline.label_ends[label], start + _MAX_HEADING_BYTES)])
    return not read_lexicon("ending").isdisjoint(split_words(heading.decode("utf-8", "replace").lower()))
