"""Scores records by BM25, with the labels above them."""

from __future__ import annotations

from overspill.lexical.outline import Outline
from overspill.lexical.weights import WEIGHTS


class Scorer:
    """What is above records is put together once for each label, because many records share it."""

    def __init__(
        self, outline: Outline, labels: dict[int, dict[int, float]], worth: list[float], literal: set[int], mean_bytes: float
    ) -> None:
        self._outline = outline
        self._labels = labels
        self._worth = worth
        self._literal = literal
        self._base = WEIGHTS.saturation * (1 - WEIGHTS.length)
        self._per_byte = WEIGHTS.saturation * WEIGHTS.length / mean_bytes
        self._above: dict[int, dict[int, float]] = {}
        self._alone: dict[int, float] = {}

    def score(self, record: int, counts: dict[int, float]) -> float:
        """`counts` says how often each term occurs in the record."""
        outline, worth, most = self._outline, self._worth, WEIGHTS.saturation + 1
        if not counts:
            return self._score_labels(outline.under[record])
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

    def _score_labels(self, label: int) -> float:
        """What a record scores that has no term itself."""
        if label not in self._alone:
            above = self._find_above(label) if self._labels else {}
            self._alone[label] = sum((self._worth[term] * share for term, share in above.items()), 0.0)
        return self._alone[label]

    def _find_above(self, label: int) -> dict[int, float]:
        """How much each term counts that is in this label or in one above it. Labels may be nested thousands deep."""
        unknown: list[int] = []
        while label >= 0 and label not in self._above:
            unknown.append(label)
            label = self._outline.label_parents[label]
        above = self._above[label] if label >= 0 else {}
        for below in reversed(unknown):
            if marks := self._labels.get(below):
                above = dict(above)
                for term, exactness in marks.items():
                    above[term] = max(above.get(term, 0.0), exactness * (1.0 if term in self._literal else WEIGHTS.label))
            self._above[below] = above
        return above
