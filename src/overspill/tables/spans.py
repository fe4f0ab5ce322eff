"""Reads the headers of HTML tables in which a cell spans several columns, or several rows of the header."""

from __future__ import annotations

import re
from collections.abc import Iterable

from overspill.tables.grid import Grid

_CELL = re.compile(rb"<t([hd])\b([^>]{0,500})", re.IGNORECASE)
_SPAN = re.compile(rb"\b(col|row)span\s{0,9}=\s{0,9}[\"']?\s{0,9}(\d{1,3})", re.IGNORECASE)
_MAX_COLUMNS = 500
MAX_HEADER_ROWS = 3


def read_header(rows: Iterable[tuple[bytes, list[str]]]) -> list[list[str]]:
    """The rows of a table's header, as long as the first ones have cells of headers alone. Each is given by its source and by
    what is shown of its cells."""
    grid = Grid()
    for source, names in rows:
        tags = _CELL.findall(source)
        if not tags or any(kind in b"dD" for kind, _ in tags) or len(names) < len(tags):
            break
        grid.begin_row()
        room = _MAX_COLUMNS
        for (_, attributes), name in zip(tags, names, strict=False):
            spans = {which.lower(): max(1, int(many)) for which, many in _SPAN.findall(attributes)}
            columns = min(room, spans.get(b"col", 1))
            grid.add(name, columns, spans.get(b"row", 1), is_header=True)
            room -= columns
        grid.end_row()
    return grid.rows
