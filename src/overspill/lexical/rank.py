"""Scores records for a query: rare terms count most, in the record itself or in the labels above it."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator
from functools import partial
from heapq import nlargest
from itertools import chain, islice, pairwise, product

from msgspec import Struct

from overspill.lexical.clues import find_sole_places, score_definitions
from overspill.lexical.index import Index
from overspill.lexical.outline import Outline
from overspill.lexical.query import Query, Term
from overspill.lexical.scan import Finder, Hit
from overspill.lexical.weights import WEIGHTS, idf
from overspill.lexical.words import read_stems

_MIN_BYTES_PER_HIT = 400
"""Terms that together occur more often than this are used only as a last resort."""
_MAX_PHRASE_GAP_BYTES = 8
"""Two terms further apart are not a phrase."""
_MAX_RECORDS_BY_LABEL = 400
"""A label alone makes the records below it candidates only if there are at most this many."""
_MAX_FEW_RECORDS = 20
"""With so few records, terms that are in all of them still count."""


class _Hits(Struct):
    """Hits by record, terms by label, how often each term occurs in each record, and how many records were read."""

    records: dict[int, list[Hit]]
    labels: dict[int, set[int]]
    found: dict[int, dict[int, int]]
    seen: int


class Ranking(Struct):
    """Scores by record, the hits behind them, and the worth of each term."""

    scores: dict[int, float]
    hits: dict[int, list[Hit]]
    terms: tuple[Term, ...]
    worth: list[float]
    labels: dict[int, set[int]]
    matches: set[int]
    """The records that match the question. Those that share only its wording are left out if others match better."""
    more: bool
    """Whether counting stopped early and there may be more matches."""
    everywhere: bool
    """Whether all terms that were found are in every record. No record is then a better answer than another."""
    uncounted: bool
    """Whether words of the question were ignored for occurring nearly everywhere."""
    cut: bool
    """Whether words were ignored because there are too many."""
    asked: frozenset[str] = frozenset()
    """The keys of all terms that the question asks for, including near synonyms and terms that occur nearly everywhere."""

    def holds(self, record: int) -> bool:
        """Whether the record itself matches the question, not only its labels."""
        return any(self.terms[term].telling for _, _, term in self.hits.get(record, ()))

    def best(self, count: int) -> list[int]:
        """A few records with the highest scores. Comparing scores alone is much faster than comparing pairs."""
        least = min(nlargest(count, self.scores.values()), default=0.0)
        few = [record for record, score in self.scores.items() if score >= least]
        return sorted(few, key=lambda record: (-self.scores[record], record))[:count]


def rank(index: Index, query: Query) -> Ranking:
    outline = index.outline
    every = _drop_task_words(query.terms) if index.traits.is_code else query.terms
    terms, hits = index.samples.search(every, _MIN_BYTES_PER_HIT, partial(_collect, index))
    labels, found, total = hits.labels, hits.found, hits.seen
    extents = outline.extents
    direct: Counter[int] = Counter(chain.from_iterable(found.values()))
    for label, marks in labels.items():
        for term in marks:
            direct[term] += extents[label]
    present = {number for number, term in enumerate(terms) if term.telling and direct[number]} or set(direct)
    asked = {number for number in present if direct[number] < total or total <= _MAX_FEW_RECORDS} or present
    worth = _weigh_terms(terms, [min(total, direct[number]) for number in range(len(terms))], total, asked)
    mean = (outline.ends[total - 1] - outline.starts[0]) / total if total else 1.0
    literal = {number for number, term in enumerate(terms) if term.literal}
    scores: dict[int, float] = {}
    candidates, matches = _find_candidates(outline, found, labels, extents, asked)
    scorer = Scorer(outline, labels, worth, literal, mean)
    for record in candidates:
        scores[record] = scorer.score(record, found.get(record, {}))
    gains = [_score_phrases(hits.records, terms, query.pairs, total)]
    if index.traits.has_definitions:
        gains.append(score_definitions(index.text, hits.records, terms, worth))
    for record, gain in chain.from_iterable(map(dict[int, float].items, gains)):
        scores[record] += gain
    top = max(scores.values(), default=0.0)
    for record in find_sole_places(index.text, hits.records, terms):
        scores[record] = max(scores[record], top + WEIGHTS.row_step * scores[record])
    uncounted = asked != present or any(term.telling for term in {*every}.difference(terms))
    everywhere = total > _MAX_FEW_RECORDS and bool(direct) and min(direct.values()) >= total
    named = frozenset(term.key for term in every if term.telling or term.instead_of)
    more = total < len(outline) or index.has_more
    return Ranking(scores, hits.records, terms, worth, labels, matches, more, everywhere, uncounted, query.cut, named)


def _drop_task_words(terms: tuple[Term, ...]) -> tuple[Term, ...]:
    """Drops words for the task if there are others: code that needs a fix does not say so."""
    task = read_stems("task")
    left = tuple(term for term in terms if term.literal or task.isdisjoint((term.key, term.instead_of)))
    return left if any(term.telling for term in left) else terms


def _collect(index: Index, terms: tuple[Term, ...], most: int | None) -> tuple[_Hits, set[int]]:
    """The hits, and the terms that occur in records or labels."""
    outline = index.outline
    label_starts, label_ends = outline.label_starts, outline.label_ends
    found = _Hits({}, {}, {}, len(outline))
    finder = Finder(terms, code=index.traits.is_code)
    hits = chain.from_iterable(finder.hits(index.text, *span) for span in (index.spans if terms else ()))
    spots, counts = list[tuple[int, int, int]](), dict[int, int]()
    last = label = label_end = 0
    next_label = label_starts[0] if label_starts else len(index.text)
    for hit in islice(hits, most):
        start, _, term = hit
        if start >= next_label:
            label = bisect_right(label_starts, start) - 1
            label_end = label_ends[label]
            next_label = label_starts[label + 1] if label + 1 < len(label_starts) else len(index.text)
        if start < label_end:
            found.labels.setdefault(label, set()).add(term)
        if start >= last:
            if (record := outline.record_at(start)) < 0:
                continue
            last = outline.ends[record]
            spots = found.records[record] = []
            counts = found.found[record] = {}
        spots.append(hit)
        counts[term] = counts.get(term, 0) + 1
    if (left := next(hits, None)) is not None:
        found.seen = max(1, outline.record_from(left[0]) - 1)
    return found, set(chain.from_iterable((*found.labels.values(), *found.found.values())))


def _weigh_terms(terms: tuple[Term, ...], holding: list[int], total: int, asked: set[int]) -> list[float]:
    """The worth of each term. Even rare wording of the request is worth less than the rarest other term.

    A synonym gets the worth of a word that does not occur.
    """
    absent = {term.key for term, times in zip(terms, holding, strict=True) if term.telling and not times}
    worth = [term.weight * idf(total, holding[number]) for number, term in enumerate(terms)]
    most = max((worth[number] for number in asked), default=0.0)
    return [
        each if term.telling or not times or term.instead_of in absent else min(each, term.weight * most)
        for each, term, times in zip(worth, terms, holding, strict=True)
    ]


def _find_candidates(
    outline: Outline, found: dict[int, dict[int, int]], labels: dict[int, set[int]], extents: list[int], asked: set[int]
) -> tuple[set[int], set[int]]:
    """The records to score, and those that match the question."""
    candidates = set(found).union(*_keep_small(_records_under(outline, labels, extents)))
    above = list(_records_under(outline, (label for label, marks in labels.items() if not asked.isdisjoint(marks)), extents))
    matches = {record for record, counts in found.items() if not asked.isdisjoint(counts)}.union(*_keep_small(above))
    if matches:
        return candidates, matches
    # Only labels above very many records match, so all records below them match equally: take the first ones.
    matches.update(*above)
    return candidates.union(sorted(matches)[:_MAX_RECORDS_BY_LABEL]), matches


def _records_under(outline: Outline, labels: Iterable[int], extents: list[int]) -> Iterator[range]:
    for label in labels:
        first = bisect_left(outline.starts, outline.label_starts[label])
        yield range(first, min(first + extents[label], len(outline)))


def _keep_small(under: Iterable[range]) -> Iterator[range]:
    return (records for records in under if len(records) <= _MAX_RECORDS_BY_LABEL)


def _score_phrases(
    hits: dict[int, list[Hit]], terms: tuple[Term, ...], pairs: frozenset[tuple[str, str]], total: int
) -> dict[int, float]:
    """Scores terms that follow each other as in the query. Rare phrases are worth more."""
    numbers: dict[str, list[int]] = {}
    for number, term in enumerate(terms):
        numbers.setdefault(term.key, []).append(number)
    wanted = {pair for one, two in pairs for pair in product(numbers.get(one, ()), numbers.get(two, ()))}
    held: dict[int, set[tuple[int, int]]] = {}
    for record, spots in hits.items():
        for (start, end, first), (later, _, second) in pairwise(spots):
            if (first, second) in wanted and (start == later or 0 <= later - end <= _MAX_PHRASE_GAP_BYTES):
                held.setdefault(record, set()).add((first, second))
    spread = Counter(pair for phrases in held.values() for pair in phrases)
    worth = {pair: WEIGHTS.phrase * idf(total, times) for pair, times in spread.items()}
    return {record: sum(worth[pair] for pair in phrases) for record, phrases in held.items()}


class Scorer:
    """Combines the labels above records once for each label, because many records share them."""

    def __init__(
        self, outline: Outline, labels: dict[int, set[int]], worth: list[float], literal: set[int], mean_bytes: float
    ) -> None:
        self._outline = outline
        self._labels = labels
        self._worth = worth
        self._literal = literal
        self._base = WEIGHTS.saturation * (1 - WEIGHTS.length)
        self._per_byte = WEIGHTS.saturation * WEIGHTS.length / mean_bytes
        self._above: dict[int, dict[int, float]] = {}
        self._alone: dict[int, float] = {}

    def score(self, record: int, counts: dict[int, int]) -> float:
        """`counts` says how often each term occurs in the record."""
        outline, worth, most = self._outline, self._worth, WEIGHTS.saturation + 1
        if not counts:
            label = outline.under[record]
            if label not in self._alone:
                above = self._find_above(label) if self._labels else {}
                self._alone[label] = sum((worth[term] * share for term, share in above.items()), 0.0)
            return self._alone[label]
        norm = self._base + self._per_byte * (outline.ends[record] - outline.starts[record])
        above = self._find_above(outline.under[record]) if self._labels else None
        if not above:
            score = 0.0
            for term, times in counts.items():
                score += worth[term] * times * most / (times + norm)
            return score
        shares = {term: times * most / (times + norm) for term, times in counts.items()}
        for term, share in above.items():
            own = shares.get(term)
            shares[term] = share if own is None else max(share, own + WEIGHTS.label_and_record * share)
        return sum(worth[term] * share for term, share in shares.items())

    def _find_above(self, label: int) -> dict[int, float]:
        """The worth of each term in this label and those above it. Labels may be nested thousands deep."""
        unknown: list[int] = []
        while label >= 0 and label not in self._above:
            unknown.append(label)
            label = self._outline.label_parents[label]
        above = self._above[label] if label >= 0 else {}
        for below in reversed(unknown):
            if marks := self._labels.get(below):
                above = dict(above)
                for term in marks:
                    above[term] = 1.0 if term in self._literal else WEIGHTS.label
            self._above[below] = above
        return above
