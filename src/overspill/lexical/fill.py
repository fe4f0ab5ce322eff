"""Fills the budget: best records first, long ones trimmed, the header of a table once for all its rows."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence

from msgspec import Struct

from overspill.lexical.index import Index
from overspill.lexical.rank import Ranking
from overspill.lexical.records.lines import iterate_lines, split_long
from overspill.lexical.render import render

_MAX_MISFITS = 100
"""Stop after this many records that do not fit."""
_LOCATOR_TOKENS = 4
"""An estimate, good enough for planning."""
_MAX_RECORD_SHARE = 0.6
"""Share of the budget that one record may take before it is trimmed."""
_MIN_TRIMMED_TOKENS = 40
"""Trimming a record to less is not worth it."""
_PIECE_BYTES = 160
"""Size of the pieces that trimming keeps or drops; smaller if not even two of them fit."""
_MAX_HEADER_CHARS = 400


class Piece(Struct, frozen=True, order=True):
    """A span to show; `record` is -1 for the header of a table."""

    start: int
    end: int
    record: int
    score: float
    trimmed: bool = False


class BudgetFill:
    """Costs may add up to `aim`; shares are of `max_tokens`. With `brief`, only the matching lines of a record are kept."""

    def __init__(
        self, index: Index, ranking: Ranking, max_tokens: float, aim: float, count: Callable[[str], float], *, brief: bool
    ) -> None:
        self.index = index
        self.ranking = ranking
        self.count = count
        self.max_tokens = min(max_tokens, aim)
        self.left = aim
        self.brief = brief
        self.taken: list[list[Piece]] = []
        """The pieces of each record, with the header added for it, in the order they were added."""
        self.records: set[int] = set()
        self._headers: set[int] = set()
        self.is_complete = True
        """Whether every record was added, and whole."""

    def take(self, order: Sequence[tuple[int, float]], share: float = 1.0) -> None:
        """Adds records in the given order while they fit into `share` of the budget, or into all that is left."""
        reserved = max(0.0, self.left - share * self.max_tokens) if share < 1 else 0.0
        tries = _MAX_MISFITS
        for record, score in order:
            if tries == 0 or self.left - reserved < _LOCATOR_TOKENS:
                self.is_complete = False
                return
            if record not in self.records and not self._add(record, score, self.left - reserved):
                self.is_complete = False
                tries -= 1

    def _add(self, record: int, score: float, room: float) -> bool:
        outline = self.index.outline
        start, end = outline.starts[record], outline.ends[record]
        header, extra = self._header_cost(record)
        extra += 1 if {record - 1, record + 1} & self.records else _LOCATOR_TOKENS
        allowed = min(room - extra, max(_MIN_TRIMMED_TOKENS, _MAX_RECORD_SHARE * self.max_tokens))
        spans = self._telling_lines(record) if self.brief else [(start, end)]
        cost = (
            sum(self.count(render(self.index, *span)) for span in spans) if end - start <= 32 * self.max_tokens else allowed + 1
        )
        if cost > allowed:
            spans = self._trim(record, allowed) if allowed >= _MIN_TRIMMED_TOKENS else []
            cost = sum(self.count(render(self.index, *span)) + 1 for span in spans)
        if not spans or cost + extra > room:
            return False
        self.left -= cost + extra
        self.records.add(record)
        trimmed = spans != [(start, end)]
        self.is_complete &= not trimmed
        pieces = [Piece(*span, record, score, trimmed) for span in spans]
        if header >= 0:
            self._headers.add(header)
            pieces.append(Piece(outline.label_starts[header], outline.label_ends[header], -1, score))
        self.taken.append(pieces)
        return True

    def _header_cost(self, record: int) -> tuple[int, float]:
        outline = self.index.outline
        label = outline.under[record]
        table = outline.table_of(record)
        if (
            table is None
            or table.header < 0
            or table.header != label
            or label in self._headers
            or outline.record_at(outline.label_starts[label]) in self.records
        ):
            return -1, 0.0
        if outline.label_ends[label] - outline.label_starts[label] > _MAX_HEADER_CHARS * 8:
            return -1, 0.0
        text = render(self.index, outline.label_starts[label], outline.label_ends[label])
        return (label, self.count(text) + 1) if len(text) <= _MAX_HEADER_CHARS else (-1, 0.0)

    def _telling_lines(self, record: int) -> list[tuple[int, int]]:
        """The lines of a record that contain what was asked for, or its first line."""
        outline, terms = self.index.outline, self.ranking.terms
        lines = list(iterate_lines(self.index.text, outline.starts[record], outline.ends[record]))
        spots = [position for position, _, term in self.ranking.hits.get(record, []) if terms[term].telling]
        held = sorted({bisect_right(lines, position, key=lambda line: line[0]) - 1 for position in spots})
        return _join_spans([lines[number] for number in held or [0]])

    def _trim(self, record: int, allowed: float) -> list[tuple[int, int]]:
        """The beginning of a record and the pieces that contain its terms, joined if adjacent."""
        outline = self.index.outline
        size = min(_PIECE_BYTES, int(2 * allowed))
        parts = list(split_long(self.index.text, outline.starts[record], outline.ends[record], size))
        worths = self._worths(record, parts)
        best_first = sorted(range(len(parts)), key=lambda number: (-worths[number], number))
        order = list(dict.fromkeys((best_first[0], 0, *best_first)))
        taken: set[int] = set()
        for number in order[:200]:
            cost = self.count(render(self.index, *parts[number])) + 1
            if cost <= allowed and (worths[number] > 0 or number == 0):
                taken.add(number)
                allowed -= cost
        return _join_spans([parts[number] for number in sorted(taken)])

    def _worths(self, record: int, parts: list[tuple[int, int]]) -> list[float]:
        starts = [start for start, _ in parts]
        held: list[set[int]] = [set() for _ in parts]
        for position, _, term in self.ranking.hits.get(record, []):
            held[bisect_right(starts, position) - 1].add(term)
        worths = [sum(self.ranking.worth[term] for term in sorted(terms)) for terms in held]
        smooth = [
            0.5 * max(worths[max(0, number - 1) : number] + worths[number + 1 : number + 2], default=0.0)
            for number in range(len(worths))
        ]
        return [own + beside for own, beside in zip(worths, smooth, strict=True)]


def _join_spans(spans: list[tuple[int, int]]) -> list[tuple[int, int]]:
    joined: list[tuple[int, int]] = []
    for start, end in spans:
        if joined and joined[-1][1] == start:
            joined[-1] = (joined[-1][0], end)
        else:
            joined.append((start, end))
    return joined
