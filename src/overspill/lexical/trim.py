"""Shortens records: the lines that tell, or the pieces that contain the terms of the question."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable

from overspill.lexical.index import Index
from overspill.lexical.rank import Ranking
from overspill.lexical.records.lines import iterate_lines, split_long

_PIECE_BYTES = 160
"""Size of the pieces that trimming keeps or drops; smaller if not even two of them fit."""
_MAX_PIECES = 200

Span = tuple[int, int]


def list_telling_lines(index: Index, ranking: Ranking, record: int) -> list[Span]:
    """The lines of a record that contain what was asked for, or its first line."""
    lines = list(iterate_lines(index.text, index.outline.starts[record], index.outline.ends[record]))
    spots = [position for position, _, term in ranking.hits.get(record, []) if ranking.terms[term].telling]
    held = sorted({bisect_right(lines, position, key=lambda line: line[0]) - 1 for position in spots})
    return join_spans([lines[number] for number in held or [0]])


def trim(index: Index, ranking: Ranking, record: int, allowed: float, cost: Callable[[Span], float]) -> list[Span]:
    """The beginning of a record and the pieces that contain its terms, joined if adjacent."""
    size = min(_PIECE_BYTES, int(2 * allowed))
    parts = list(split_long(index.text, index.outline.starts[record], index.outline.ends[record], size))
    worths = _weigh_parts(ranking, record, parts)
    best_first = sorted(range(len(parts)), key=lambda number: (-worths[number], number))
    taken: set[int] = set()
    for number in list(dict.fromkeys((best_first[0], 0, *best_first)))[:_MAX_PIECES]:
        price = cost(parts[number]) + 1
        if price <= allowed and (worths[number] > 0 or number == 0):
            taken.add(number)
            allowed -= price
    return join_spans([parts[number] for number in taken])


def _weigh_parts(ranking: Ranking, record: int, parts: list[Span]) -> list[float]:
    starts = [start for start, _ in parts]
    held: list[set[int]] = [set() for _ in parts]
    for position, _, term in ranking.hits.get(record, []):
        held[bisect_right(starts, position) - 1].add(term)
    worths = [sum(ranking.worth[term] for term in sorted(terms)) for terms in held]
    smooth = [
        0.5 * max(worths[max(0, number - 1) : number] + worths[number + 1 : number + 2], default=0.0)
        for number in range(len(worths))
    ]
    return [own + beside for own, beside in zip(worths, smooth, strict=True)]


def join_spans(spans: list[Span]) -> list[Span]:
    """In order, and as one where they touch or overlap."""
    joined: list[Span] = []
    for start, end in sorted(spans):
        if joined and start <= joined[-1][1]:
            joined[-1] = (joined[-1][0], max(end, joined[-1][1]))
        else:
            joined.append((start, end))
    return joined


def intersect_spans(spans: list[Span], within: list[Span]) -> list[Span]:
    return [(max(start, low), min(end, high)) for start, end in spans for low, high in within if max(start, low) < min(end, high)]
