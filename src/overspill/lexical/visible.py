"""What of a large output a reader sees, if its kind has parts that are hidden."""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator

from overspill.lexical.outline import Source
from overspill.lexical.scan import Finder, Hit
from overspill.tables.table import Span

_MAX_SKIMMED_BYTES = 1_500
"""Searching so much that is hidden, and dropping what is found there, takes less time than a search on each side of it."""


class Visible:
    """Hidden spans are in arrays, because a page may have hundreds of thousands of scripts."""

    def __init__(self, size: int, hidden: Iterable[Span]) -> None:
        starts, ends = array("q"), array("q")
        self._starts, self._ends = starts, ends
        self._searched = [(0, size)]
        for start, end in hidden:
            starts.append(start)
            ends.append(end)
            if end - start > _MAX_SKIMMED_BYTES:
                first, last = self._searched.pop()
                self._searched += [(first, start), (end, last)]

    def find(self, finder: Finder, source: Source) -> Iterator[Hit]:
        """The hits that a reader sees."""
        starts, ends = self._starts, self._ends
        for span in self._searched:
            if not starts:
                yield from finder.hits(source, *span)
                continue
            for hit in finder.hits(source, *span):
                before = bisect_right(starts, hit[0]) - 1
                if before < 0 or hit[0] >= ends[before]:
                    yield hit

    def list_hidden(self, start: int, end: int) -> Iterator[Span]:
        """What is hidden of this span, cut at its edges."""
        numbers = slice(bisect_right(self._ends, start), bisect_left(self._starts, end))
        for first, last in zip(self._starts[numbers], self._ends[numbers], strict=True):
            yield first if first > start else start, last if last < end else end
