"""Windows: a plain full-text search over short stretches of text gives a second opinion on which records come first.

An answer is often beside the words of the question rather than in one record with them, and the weights that suit most questions
do not suit all. A record that comes early by either way is shown early.
"""

from __future__ import annotations

import math
from collections import Counter
from heapq import nsmallest
from itertools import chain, repeat
from typing import TypeAlias

from overspill.lexical.boost import Boost
from overspill.lexical.index import Index
from overspill.lexical.query import Query
from overspill.lexical.rank import Ranking
from overspill.lexical.weights import WEIGHTS

_STEP_BYTES = 300
"""Windows are two steps long, and each begins in the middle of the one before."""
_SAMPLED_RECORDS = 50
"""How many of the best records are measured."""
_MAX_WINDOWS = 300
"""The best windows; the records in others keep their place."""
_MIN_SHARE = 0.5
"""How much of a record is in a window that has it."""

Window: TypeAlias = tuple[int, int]
"""The label of the thread that it is in, or -1, and the step at which it begins."""


def boost_windows(index: Index, query: Query, ranking: Ranking) -> Boost | None:
    """Puts records in the order of both rankings, fused by rank, and gives them the scores that their places had."""
    best = ranking.best() if index.traits.is_running_text else []
    if not best or _measure_mean(index, best[:_SAMPLED_RECORDS]) > _STEP_BYTES:
        return None  # records of such a length are windows themselves
    fused = {record: 1 / (WEIGHTS.fusion + place) for place, record in enumerate(best)}
    for place, record in enumerate(_rank_by_window(index, ranking)):
        fused[record] = fused.get(record, 0.0) + 1 / (WEIGHTS.fusion + place)
    order = sorted(fused, key=lambda record: (-fused[record], record))
    values = [ranking.scores[record] for record in best]
    return Boost(rescored=dict(zip(order, chain(values, repeat(values[-1])), strict=False)))


def _measure_mean(index: Index, records: list[int]) -> float:
    return sum(index.outline.ends[record] - index.outline.starts[record] for record in records) / len(records)


def _rank_by_window(index: Index, ranking: Ranking) -> list[int]:
    """The records in the best windows, each by the best window that has it."""
    outline, best = index.outline, dict[int, float]()
    for score, (topic, window) in _score_windows(index, ranking):
        first, last = window * _STEP_BYTES, (window + 2) * _STEP_BYTES
        record = max(0, outline.record_from(first) - 1)
        while record < len(outline) and outline.starts[record] < last:
            start, end = outline.starts[record], outline.ends[record]
            is_inside = min(end, last) - max(start, first) >= min(_STEP_BYTES, _MIN_SHARE * (end - start))
            if is_inside and _find_topic(index, record) == topic:
                best.setdefault(record, score)
            record += 1
    return sorted(best, key=lambda record: (-best[record], -ranking.scores.get(record, 0.0), record))


def _find_topic(index: Index, record: int) -> int:
    """The thread that a record is in: what is beside it in another one is about something else."""
    return index.outline.lineage(record)[-1] if index.traits.has_topics and index.outline.under[record] >= 0 else -1


def _score_windows(index: Index, ranking: Ranking) -> list[tuple[float, Window]]:
    """The best windows by BM25, all words of the question being worth the same."""
    steps: dict[Window, dict[int, int]] = {}
    for record, spots in ranking.hits.items():
        topic = _find_topic(index, record)
        for start, _, term in spots:
            counts = steps.setdefault((topic, start // _STEP_BYTES), {})
            counts[term] = counts.get(term, 0) + 1
    windows = {(topic, window) for topic, step in steps for window in (step - 1, step)}
    held = {(topic, step): _add(steps.get((topic, step)), steps.get((topic, step + 1))) for topic, step in windows}
    holding = Counter(term for counts in held.values() for term in counts)
    total = max(len(held), index.total_bytes // _STEP_BYTES)
    worth = [
        (term.weight if term.instead_of else 1.0) * math.log(1 + (total - holding[number] + 0.5) / (holding[number] + 0.5))
        for number, term in enumerate(ranking.terms)
    ]
    most = WEIGHTS.saturation + 1
    scores = [
        (sum(worth[term] * times * most / (times + WEIGHTS.saturation) for term, times in counts.items()), window)
        for window, counts in held.items()
        if len(counts) > 1  # with one word of the question, it says no more than the record that has the word
    ]
    return nsmallest(_MAX_WINDOWS, scores, key=lambda pair: (-pair[0], pair[1]))


def _add(one: dict[int, int] | None, other: dict[int, int] | None) -> dict[int, int]:
    if not one or not other:
        return one or other or {}
    return one | {term: times + one.get(term, 0) for term, times in other.items()}
