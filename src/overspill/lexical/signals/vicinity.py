"""Vicinity: search results that are near each other in one file are about the same thing, though each is one line."""

from __future__ import annotations

import re
from collections.abc import Iterator

from overspill.lexical.boost import Boost
from overspill.lexical.index import Index
from overspill.lexical.query import Query
from overspill.lexical.rank import Ranking
from overspill.lexical.weights import WEIGHTS

_PLACE = re.compile(rb"([^\n]{1,200}?)[:-](\d{1,9})[:-]")
_MAX_RECORDS = 8
"""How many results on each side of one gain by its words."""
_MAX_DISTANCE_LINES = 200


class _Results:
    """The results with their places: file and line."""

    def __init__(self, index: Index) -> None:
        self._index = index
        self._places: dict[int, tuple[bytes, int]] = {}

    def place(self, record: int) -> tuple[bytes, int]:
        if record not in self._places:
            found = _PLACE.match(self._index.text, self._index.outline.starts[record], self._index.outline.ends[record])
            self._places[record] = (bytes(found[1]), int(found[2])) if found else (b"", 0)
        return self._places[record]

    def list_near(self, record: int) -> Iterator[tuple[int, float]]:
        """The results near one in its file, and how much it counts there."""
        file, line = self.place(record)
        for step in (-1, 1) if file else ():
            for other in range(record + step, record + (_MAX_RECORDS + 1) * step, step):
                if not 0 <= other < len(self._index.outline):
                    break
                there, place = self.place(other)
                if there != file or abs(place - line) > _MAX_DISTANCE_LINES:
                    break
                yield other, WEIGHTS.near_result * 0.5 ** (abs(place - line) / WEIGHTS.near_half_lines)


def boost_vicinity(index: Index, query: Query, ranking: Ranking) -> Boost | None:
    """Adds to the score of each result what is near it. Words of its path are in all of them."""
    if index.traits.layout != "results":
        return None
    results = _Results(index)
    near: dict[int, dict[int, float]] = {}
    for record, spots in ranking.hits.items():
        after_path = index.outline.starts[record] + len(results.place(record)[0])
        terms = {term for start, _, term in spots if start >= after_path}
        for other, share in results.list_near(record) if terms else ():
            known = near.setdefault(other, {})
            known.update({term: max(share, known.get(term, 0.0)) for term in terms})
    scores = dict(ranking.scores)
    for record, shares in near.items():
        own = {term for _, _, term in ranking.hits.get(record, ())}
        gain = sum(ranking.worth[term] * share for term, share in sorted(shares.items()) if term not in own)
        scores[record] = scores.get(record, 0.0) + gain
    return Boost(rescored=scores)
