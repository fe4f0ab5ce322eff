"""Columns aligned with spaces, as `kubectl get`, `ps` and `df` print them."""

from __future__ import annotations

import re
from itertools import pairwise

from overspill.tables.bars import Barred, split_at_bars
from overspill.tables.names import make_unique
from overspill.tables.table import RowFormat

_WORD = re.compile(r"\S+")
_MIN_NAMED_SHARE = 0.7
"""Of the words of a header, how many must begin a column. With fewer, rows are not aligned."""


class Aligned(RowFormat, frozen=True):
    """`bounds` are the positions, in characters, at which all cells but the first begin."""

    bounds: tuple[int, ...] = ()

    def split(self, row: str) -> list[str]:
        row = row.rstrip("\r\n").expandtabs()
        edges = [0, *self.bounds, max(len(row), *self.bounds)]
        return [row[start:end].strip() for start, end in pairwise(edges)]


class Worded(RowFormat, frozen=True):
    """Single words are cells, and the last has the rest."""

    def split(self, row: str) -> list[str]:
        return row.strip().split(None, len(self.names) - 1)


def find_format(header: str, rows: list[str]) -> RowFormat:
    """Cells begin after gaps that no row crosses. If rows are not aligned, single words are cells."""
    if "|" in header:
        return Barred(tuple(make_unique(split_at_bars(header))))
    header, *rows = (line.rstrip("\r\n").expandtabs() for line in (header, *rows))
    gutters = _find_gutters([header, *rows])
    bounds = tuple(
        start for start, end in gutters if _WORD.search(header[:start]) and _begins_cell(header, rows, end, _next(gutters, end))
    )
    words = header.split()
    if bounds and len(bounds) + 1 >= _MIN_NAMED_SHARE * len(words):
        edges = [0, *bounds, len(header)]
        return Aligned(tuple(make_unique(header[start:end] for start, end in pairwise(edges))), bounds)
    return Worded(tuple(make_unique(words)))


def _begins_cell(header: str, rows: list[str], start: int, end: int | None) -> bool:
    """Whether a column begins here. A word of the header that follows another after one space and has nothing below it is part of
    that name: `Mounted on`."""
    is_apart = start < 2 or header[start - 2 : start].isspace()
    return bool(header[start:end].strip()) and (is_apart or any(row[start:end].strip() for row in rows))


def _next(gutters: list[tuple[int, int]], position: int) -> int | None:
    return next((start for start, _ in gutters if start > position), None)


def _find_gutters(lines: list[str]) -> list[tuple[int, int]]:
    """Runs of positions that are blank in every line, between positions that are not."""
    width = max(map(len, lines))
    used = bytearray(width)
    for line in lines:
        for word in _WORD.finditer(line):
            used[word.start() : word.end()] = b"\1" * (word.end() - word.start())
    found = [(gap.start(), gap.end()) for gap in re.finditer(rb"\0+", bytes(used))]
    return [(start, end) for start, end in found if start > 0 and end < width]
