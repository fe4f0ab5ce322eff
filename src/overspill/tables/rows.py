"""Reads every row of every table in an output, for SQL. The `_row` of a loaded row leads back to its place."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias

from overspill.tables.delimited import Delimited, find_delimited, find_heading, read_heading
from overspill.tables.events import COMMIT, read_commits, read_events
from overspill.tables.json_rows import read_exactly
from overspill.tables.lines import find_tables, is_sure
from overspill.tables.markup import read_elements, read_page
from overspill.tables.table import FoundTable, JsonRows, Row, Text, number_lines
from overspill.text.lines import iterate_lines

TableRow: TypeAlias = tuple[FoundTable, Row]
_BLANKS = b" \t\r\n\xef\xbb\xbf"
_MAX_SHORT_BYTES = 4_096
"""Up to this size, a table may be too short to be recognised."""


def read_tables(text: Text, layout: str) -> Iterator[TableRow]:
    """All rows in the order of the text. Raises Unreadable if its tables cannot be read."""
    match layout:
        case "documents":
            table, lines = FoundTable(JsonRows()), enumerate(iterate_lines(text, 0, len(text)), 1)
            stripped = ((number, span, bytes(text[slice(*span)]).strip(_BLANKS)) for number, span in lines)
            return ((table, Row(number, span, read_exactly(line))) for number, span, line in stripped if line)
        case "page":
            return read_page(text)
        case "elements":
            return read_elements(text)
        case "commits" if COMMIT.search(text):
            return read_commits(text)
        case "events":
            return read_events(text)
        case _:
            return _read_lines(text, layout)


def find_line_tables(text: Text, layout: str) -> Iterator[FoundTable]:
    """Tables made of lines: delimited or aligned rows, boxes, `ls -l`, access logs. In other text, finds only certain
    tables. Short text without any may also be a few delimited rows."""
    if layout == "rows":
        yield find_delimited(text, read_heading(text), len(text))
        return
    is_empty = True
    for table in find_tables(text, 0, len(text)):
        if layout == "aligned" or is_sure(text, table):
            is_empty = False
            yield table
    if is_empty and layout != "aligned" and len(text) <= _MAX_SHORT_BYTES and (heading := find_heading(text, min_rows=2)):
        yield find_delimited(text, heading, len(text))


def _read_lines(text: Text, layout: str) -> Iterator[TableRow]:
    number_line = number_lines(text)
    for table in find_line_tables(text, layout):
        for number, span in enumerate(zip(table.starts, table.ends, strict=True), 1):
            where = number if isinstance(table.format, Delimited) else number_line(span[0])
            yield table, table.format.read(where, span, text)
