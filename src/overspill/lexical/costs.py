"""Estimates what spans cost in tokens. Counting each one would take longer than everything else."""

from __future__ import annotations

from collections.abc import Callable

from overspill.lexical.index import Index
from overspill.lexical.rank import Ranking
from overspill.lexical.render import render
from overspill.tables.table import Span

_SAMPLED_RECORDS = 8
_MAX_SAMPLE_BYTES = 2_000
_TEXT_RATIO = 0.25
"""Tokens for each byte, where there is no record to count."""
_ROUNDING = 0.5
_ELLIPSIS_TOKENS = 2
"""What the mark between two pieces of a record costs."""


class Costs:
    """Counts the tokens of a few of the best records, and estimates others by their length."""

    def __init__(self, index: Index, ranking: Ranking, count: Callable[[str], int]) -> None:
        self._index = index
        starts, ends = index.outline.starts, index.outline.ends
        records = ranking.best(_SAMPLED_RECORDS) or range(min(_SAMPLED_RECORDS, len(index.outline)))
        spans = [(starts[record], min(ends[record], starts[record] + _MAX_SAMPLE_BYTES)) for record in records]
        size = sum(self._measure(*span) for span in spans)
        self._counted: dict[Span, float] = {}
        self._per_byte = count("\n".join(render(index, *span) for span in spans)) / size if size else _TEXT_RATIO

    def cost_span(self, span: Span) -> float:
        if span not in self._counted:
            self._counted[span] = self._per_byte * self._measure(*span) + _ROUNDING
        return self._counted[span]

    def cost_spans(self, spans: list[Span]) -> float:
        """With the marks between them."""
        return sum(map(self.cost_span, spans)) + _ELLIPSIS_TOKENS * (len(spans) - 1)

    def cost_text(self, text: str) -> float:
        return self._per_byte * len(text.encode("utf-8", "replace")) + _ROUNDING

    def _measure(self, start: int, end: int) -> int:
        """The bytes that a reader sees."""
        part, fill = self._index.text[start:end], self._index.fill
        return len(part) - (part.count(fill) if fill else 0)
