"""Every row of every table in a text. SQL loads them, and the `_row` that it gives them leads back to one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TypeAlias

from overspill.tables.commits import COMMIT, read_commits
from overspill.tables.delimited import MAX_HEADING_BYTES, Heading, find_heading, iterate_rows, take_heading
from overspill.tables.elements import read_elements
from overspill.tables.events import read_events
from overspill.tables.json_rows import read_exactly
from overspill.tables.lines import find_tables, is_sure
from overspill.tables.pages import read_page
from overspill.tables.table import FoundTable, JsonRows, Omission, Row, Text, Unreadable, number_lines
from overspill.text.humanize import format_size, quote_line
from overspill.text.lines import iterate_lines

TableRow: TypeAlias = tuple[FoundTable, Row]
_MAX_SHORT_BYTES = 4_096
"""Of a text that is too short to be recognised as a table."""


def read_tables(text: Text, layout: str) -> Iterator[TableRow]:
    """In the order of the text, but for JSON. Raises Unreadable if its tables cannot be read."""
    match layout:
        case "documents":
            return _read_lines(text)
        case "rows":
            return _read_delimited(text, read_heading(text))
        case "page":
            return read_page(text)
        case "elements":
            return read_elements(text)
        case "commits" if COMMIT.search(text):
            return read_commits(text)
        case "events":
            return read_events(text)
        case "aligned":
            return _read_shown(text, find_tables(text, 0, len(text)))
        case _:
            return _read_others(text)


def _read_lines(text: Text) -> Iterator[TableRow]:
    """Lines of JSON."""
    table = FoundTable(JsonRows())
    for number, (start, end) in enumerate(iterate_lines(text, 0, len(text)), 1):
        if line := bytes(text[start:end]).strip(b" \t\r\n\xef\xbb\xbf"):
            yield table, Row(number, (start, end), read_exactly(line))


def _read_others(text: Text) -> Iterator[TableRow]:
    """In a text that is mostly something else, only what is surely a table; and a few rows alone."""
    is_empty = True
    for each in _read_shown(text, (table for table in find_tables(text, 0, len(text)) if is_sure(text, table))):
        is_empty = False
        yield each
    if is_empty and len(text) <= _MAX_SHORT_BYTES and (heading := find_heading(text, min_rows=2)):
        yield from _read_delimited(text, heading)


def _read_shown(text: Text, tables: Iterable[FoundTable]) -> Iterator[TableRow]:
    """Lines that show tables: aligned columns, boxes, `ls -l` and access logs."""
    number = number_lines(text)
    for table in tables:
        for span in zip(table.starts, table.ends, strict=True):
            yield table, table.format.read(number(span[0]), span, text)


def read_heading(text: Text) -> Heading:
    """Of a text that is known to be delimited. Raises Unreadable if its header is too long."""
    heading = take_heading(text)
    if heading.first >= MAX_HEADING_BYTES < len(text):
        raise Unreadable(f"the row that names its columns is longer than {format_size(MAX_HEADING_BYTES)}.")
    return heading


def list_omissions(text: Text, heading: Heading) -> tuple[Omission, ...]:
    """The rows above the header."""
    if not heading.above:
        return ()
    said = quote_line(bytes(text[heading.above[0][0] : heading.above[-1][1]]).decode("utf-8", "replace").strip())
    return (Omission(len(heading.above), f"row{'s' * (len(heading.above) > 1)} above the header left out: {said}"),)


def _read_delimited(text: Text, heading: Heading) -> Iterator[TableRow]:
    table = FoundTable(heading.format, heading.header, above=heading.above, omissions=list_omissions(text, heading))
    for number, span in enumerate(iterate_rows(text, heading.format.mark, heading.first, len(text)), 1):
        yield table, table.format.read(number, span, text)
