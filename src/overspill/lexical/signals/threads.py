"""Threads: a question that is about all of a thread is answered by the first reply in it, which may have no word of it."""

from __future__ import annotations

from collections import Counter
from heapq import nlargest
from itertools import chain, repeat

from overspill.lexical.boost import Boost
from overspill.lexical.index import Index
from overspill.lexical.outline import Outline
from overspill.lexical.query import Query
from overspill.lexical.rank import Ranking, idf
from overspill.lexical.weights import WEIGHTS

_MAX_THREADS = 8
"""Threads whose first reply is shown early, the likeliest first."""
_LENGTH = 0.75
"""BM25's b: a thread is longer because more was said, not because it is more about the question."""


def boost_threads(index: Index, query: Query, ranking: Ranking) -> Boost | None:
    """Fuses the order of the records with that of the first replies in the best threads, and keeps the scores of the places."""
    if not index.traits.has_replies or not ranking.scores:
        return None
    scores = _score_threads(index, ranking)
    threads = nlargest(_MAX_THREADS, scores, key=lambda thread: (scores[thread], -thread))
    replies = [reply for thread in threads if (reply := _find_first_reply(index.outline, thread)) >= 0]
    best = ranking.best()
    fused = {record: 1 / (WEIGHTS.fusion + place) for place, record in enumerate(best)}
    for place, reply in enumerate(replies):
        fused[reply] = fused.get(reply, 0.0) + WEIGHTS.first_reply / (WEIGHTS.fusion + place)
    order = sorted(fused, key=lambda record: (-fused[record], record))
    values = [ranking.scores[record] for record in best]
    return Boost(rescored=dict(zip(order, chain(values, repeat(values[-1])), strict=False)))


def _list_threads(index: Index) -> list[int]:
    """By label, the thread that it is in."""
    threads: list[int] = []
    for label, parent in enumerate(index.outline.label_parents):
        threads.append(threads[parent] if parent >= 0 else label)
    return threads


def _measure_threads(index: Index) -> dict[int, int]:
    """Their sizes, in bytes."""
    outline, threads = index.outline, index.remember(_list_threads)
    sizes: dict[int, int] = {}
    for label, start, end in zip(outline.under, outline.starts, outline.ends, strict=True):
        if label >= 0:
            sizes[threads[label]] = sizes.get(threads[label], 0) + end - start
    return sizes


def _score_threads(index: Index, ranking: Ranking) -> dict[int, float]:
    """BM25, with threads as the documents."""
    under, threads, sizes = index.outline.under, index.remember(_list_threads), index.remember(_measure_threads)
    counts: dict[int, Counter[int]] = {}
    for record, spots in ranking.hits.items():
        if (label := under[record]) >= 0:
            counts.setdefault(threads[label], Counter()).update(term for _, _, term in spots)
    holding = Counter(term for held in counts.values() for term in held)
    total, mean = len(sizes), sum(sizes.values()) / max(1, len(sizes))
    worth = [term.weight * idf(total, holding[number]) for number, term in enumerate(ranking.terms)]
    scores: dict[int, float] = {}
    for thread, held in counts.items():
        slow = WEIGHTS.saturation * (1 - _LENGTH + _LENGTH * sizes[thread] / mean)
        scores[thread] = sum(worth[term] * times / (times + slow) for term, times in held.items())
    return scores


def _find_first_reply(outline: Outline, thread: int) -> int:
    """The first record of the second message in a thread, or -1."""
    first = outline.record_from(outline.label_starts[thread])
    opening = -1
    for record in range(first, min(len(outline), first + outline.extents[thread])):
        message = outline.under[record]
        if message == thread:
            continue
        if opening >= 0 and message != opening:
            return record
        opening = message
    return -1
