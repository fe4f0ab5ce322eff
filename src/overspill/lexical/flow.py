"""Passes part of a record's score to its neighbours: the answer is often next to the record that names the subject."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence

from msgspec import Struct
from msgspec.structs import replace

from overspill.lexical.index import Index
from overspill.lexical.outline import Outline
from overspill.lexical.query import Query
from overspill.lexical.rank import Ranking

_MAX_BESIDE = 4
"""How many records on each side of a word gain from it."""
_FULL_BYTES = 300
"""The neighbours of a longer record count less, because it says itself what it is about."""
_MAX_LEADING = 10
"""How many of the best records lead to others."""
_MAX_BODY_BYTES = 4_000
"""A longer body, such as that of a class, does not belong to its definition as a whole."""
_MAX_REPLIES = 3
_MAX_REPLY_DISTANCE = 200
"""The largest distance of a reply, in records. Further down a long thread, messages reply to something else."""


class Reach(Struct, frozen=True):
    """The share that counts at distance zero, and the distance at which it has halved."""

    share: float
    half_bytes: int

    def fade(self, distance: int) -> float:
        return self.share / (1 + distance / self.half_bytes)


BEFORE = Reach(0.6, 150)
"""A word before a record. It counts more than one after it, because answers follow questions."""
AFTER = Reach(0.4, 150)
"""A word after a record."""
SECTION = Reach(0.8, 2_000)
"""The words of a section count for each record in it: less in larger sections, which have more words by chance."""
FOLLOWING = 0.95
"""What is in the body of a definition, or on the side that the question asks for, ranks just after the record it belongs to."""
REPLY = 0.9
"""The share of a message's score that the next message of the thread gets, and from that the one after it."""


def flow(index: Index, query: Query, ranking: Ranking) -> dict[int, float]:
    """The scores with the surroundings of each record: the words near it, its section, and the record that it follows."""
    scores = dict(ranking.scores)
    beside = _score_beside(index, ranking) if index.traits.has_context else ()
    sections = _score_sections(index.outline, ranking) if index.traits.has_topics else ()
    for record, gain in (*beside, *sections):
        scores[record] = scores.get(record, 0.0) + gain
    best = replace(ranking, scores=scores).best(_MAX_LEADING)
    following = [(other, share * scores[record]) for record in best for other, share in _list_following(index, query, record)]
    for record, score in following:
        scores[record] = max(score, scores.get(record, 0.0))
    return scores


def _score_beside(index: Index, ranking: Ranking) -> Iterator[tuple[int, float]]:
    """What nearby words add to each record that lacks them. Table rows gain nothing: their neighbours are about other things."""
    outline, places = index.outline, index.remember(_list_threads)
    starts, ends, has_tables = outline.starts, outline.ends, bool(outline.tables)
    spoken: dict[int, dict[int, tuple[int, int]]] = defaultdict(dict)  # by term and record: its first start and last end
    for record, spots in ranking.hits.items():
        for start, end, term in spots:
            spoken[term][record] = spoken[term].get(record, (start, end))[0], end
    gains: dict[int, float] = defaultdict(float)
    for term, held in spoken.items():
        shares: dict[int, float] = {}
        for record, (first, last) in held.items():
            for step, reach, edges, place in ((1, BEFORE, starts, last), (-1, AFTER, ends, first)):
                share, half = reach.share, reach.half_bytes
                for other in range(record + step, record + step * (_MAX_BESIDE + 1), step):
                    is_apart = other in held or not 0 <= other < len(places) or places[other] != places[record]
                    if is_apart or (has_tables and outline.table_of(other)):
                        break
                    faded = share / (1 + abs(edges[other] - place) / half)
                    if faded > shares.get(other, 0.0):
                        shares[other] = faded
        for record, share in shares.items():
            gains[record] += ranking.worth[term] * share
    return ((record, gain * min(1.0, _FULL_BYTES / (ends[record] - starts[record]))) for record, gain in gains.items())


def _list_threads(index: Index) -> Sequence[int]:
    """For each record, the thread of its message."""
    outline = index.outline
    threads: list[int] = []
    for label, parent in enumerate(outline.label_parents if index.traits.has_replies else ()):
        threads.append(threads[parent] if parent >= 0 else label)
    are_threads = any(label != thread for label, thread in enumerate(threads))
    return [threads[label] if are_threads and label >= 0 else -1 for label in outline.under]


def _score_sections(outline: Outline, ranking: Ranking) -> Iterator[tuple[int, float]]:
    """What the best section around each record adds, including the headings above it. A label precedes those below it."""
    held = [set(ranking.labels.get(label, ())) for label in range(len(outline.label_starts))]
    sizes = [0] * len(held)
    for record, (label, start, end) in enumerate(zip(outline.under, outline.starts, outline.ends, strict=True)):
        if label >= 0:
            sizes[label] += end - start
            held[label].update(term for _, _, term in ranking.hits.get(record, ()))
    for label in range(len(held) - 1, -1, -1):
        if (parent := outline.label_parents[label]) >= 0:
            held[parent] |= held[label]
            sizes[parent] += sizes[label]
    named, best = list[set[int]](), list[float]()
    for label, parent in enumerate(outline.label_parents):
        named.append(set(ranking.labels.get(label, ())) | (named[parent] if parent >= 0 else set()))
        own = SECTION.fade(sizes[label]) * sum(ranking.worth[term] for term in held[label] | named[label])
        best.append(max(own, best[parent]) if parent >= 0 else own)
    return ((record, best[label]) for record, label in enumerate(outline.under) if label >= 0 and best[label])


def _list_following(index: Index, query: Query, record: int) -> Iterator[tuple[int, float]]:
    """The records that one leads to, and their share of its score."""
    if query.after and record + 1 < len(index.outline):
        yield record + 1, FOLLOWING
    if query.before and record:
        yield record - 1, FOLLOWING
    outline = index.outline
    heading = outline.label_at(outline.starts[record])
    for below in range(record + 1, len(outline) if index.traits.has_definitions else 0):
        if outline.ends[below] - outline.starts[record] > _MAX_BODY_BYTES or heading not in outline.lineage(below):
            break
        yield below, FOLLOWING
    for place, reply in enumerate(_find_replies(index, record) if index.traits.has_replies else (), 1):
        yield reply, REPLY**place


def _find_replies(index: Index, record: int) -> Iterator[int]:
    """The first records of the next messages in the same thread."""
    under, places = index.outline.under, index.remember(_list_threads)
    message, replies = under[record], 0
    for after in range(record + 1, min(len(under), record + 1 + _MAX_REPLY_DISTANCE)):
        if places[after] != places[record] or replies == _MAX_REPLIES:
            return
        if under[after] != message:
            message, replies = under[after], replies + 1
            yield after
