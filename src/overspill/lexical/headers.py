"""Reads the headers of HTML tables in which a cell spans several columns, or several rows of the header."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice

from msgspec import Struct

_CELL = re.compile(rb"<t([hd])\b([^>]{0,500})", re.IGNORECASE)
_SPAN = re.compile(rb"\b(col|row)span\s{0,9}=\s{0,9}[\"']?\s{0,9}(\d{1,3})", re.IGNORECASE)
_MAX_COLUMNS = 500
MAX_HEADER_ROWS = 3


class HeaderCell(Struct, frozen=True):
    name: str
    columns: int
    rows: int


def read_header_row(source: bytes, names: list[str]) -> list[HeaderCell]:
    """The cells of one row, by its source and by what is shown of it. None if they are not all cells of a header."""
    tags = [(kind.lower(), dict(_read_spans(attributes))) for kind, attributes in _CELL.findall(source)]
    if not tags or any(kind == b"d" for kind, _ in tags) or len(names) < len(tags):
        return []
    named = zip(names, tags, strict=False)
    return [HeaderCell(name, max(1, spans.get(b"col", 1)), max(1, spans.get(b"row", 1))) for name, (_, spans) in named]


def _read_spans(attributes: bytes) -> Iterator[tuple[bytes, int]]:
    for which, many in _SPAN.findall(attributes):
        yield which.lower(), int(many)


def join_header_rows(rows: list[list[HeaderCell]]) -> list[str]:
    """The names of the columns: those of the cells above each other, from above."""
    names: list[list[str]] = []
    below: list[int] = []
    """By column, how many more rows the cell above takes."""
    for row in rows:
        free = (number for number in range(_MAX_COLUMNS) if number >= len(below) or not below[number])
        taken = [(cell, number) for cell in row for number in islice(free, cell.columns)]
        below = [max(0, rest - 1) for rest in below]
        for cell, number in taken:
            missing = number + 1 - len(names)
            names += [[] for _ in range(missing)]
            below += [0] * missing
            names[number].append(cell.name)
            below[number] = cell.rows - 1
    return [" ".join(filter(None, each)) for each in names]
