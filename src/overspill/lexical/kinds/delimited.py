"""Delimited rows: CSV, TSV, and tables with semicolons or bars."""

from __future__ import annotations

import csv
import re
from collections import Counter
from typing import NamedTuple

from overspill.lexical.kinds.kind import CutEmbedded, Kind, Traits
from overspill.lexical.kinds.log import begins_with_stamp
from overspill.lexical.kinds.sample import Sample
from overspill.lexical.outline import NO_LABEL, RESUMED, Outline, Table, Text
from overspill.lexical.records.lines import is_blank, iterate_lines
from overspill.text import pieces
from overspill.text.encoding import decode

_SAMPLE_BYTES = 48_000
_MAX_ABOVE = 6
_MIN_TITLED_CELLS = 3
"""A line above rows of two cells is as likely to be a sentence above others that have a comma."""
NUMBER = re.compile(r"\s*+[-+]?[\d.,]*\d\s*+%?$")
_MARKDOWN_RULE = re.compile(r"\|(?:[\s:]*+-++[\s:]*+\|)++\s*+$")
_ROW = re.compile(rb"(?:[^\"\n]++|\"[^\"]*+\")*+(?:\n|\Z)")


_OPENS_INSIDE = re.compile(rb"[^\",;|\t\n]*+\"[,;|\t\n]")
"""The end of a quoted cell, where a row should begin."""


class Dialect(NamedTuple):
    """How rows are written. `above` counts the rows above the header, such as a title; blank lines are no rows."""

    mark: str
    above: int = 0


def _is_delimited(sample: Sample) -> bool:
    lines = sample.lines
    is_markdown = any(map(_MARKDOWN_RULE.match, lines[1 : _MAX_ABOVE + 2]))
    return len(lines) > 2 and not is_markdown and not begins_with_stamp(lines[0]) and find_dialect(sample.whole_lines) is not None


def find_dialect(lines: list[str], min_rows: int = 3) -> Dialect | None:
    """With the character that splits these lines into the same number of cells. The last line may be cut off."""
    best, width = None, 1
    for mark in ",\t;|":
        rows = [row for row in _rows(lines[:400], mark) if not is_blank_row(row)]
        if len(rows) < min_rows:
            continue
        cells = Counter(map(len, rows)).most_common(1)[0][0]
        above = _count_above(rows, cells)
        table = rows[above:]
        is_even = sum(len(row) == cells for row in table) >= 0.85 * len(table)
        if cells > width and is_even and len(table) >= min_rows and len(table[0]) == cells and _looks_tabular(table, mark):
            best, width = Dialect(mark, above), cells
    return best


def is_blank_row(cells: list[str]) -> bool:
    return not cells or (len(cells) == 1 and not cells[0].strip())


def _rows(lines: list[str], mark: str) -> list[list[str]]:
    try:
        return list(csv.reader((line + "\n" for line in lines), delimiter=mark))[:-1]
    except csv.Error:
        return []


def _count_above(rows: list[list[str]], cells: int) -> int:
    """How many rows are above the header: they have fewer cells, or most of theirs are empty."""
    if cells < _MIN_TITLED_CELLS:
        return 0
    for number, row in enumerate(rows[: _MAX_ABOVE + 1]):
        if len(row) == cells and 2 * sum(map(bool, row)) > cells:
            is_filled_out = any(len(above) == cells for above in rows[:number])
            # Below a first row with empty names, a row with numbers is data.
            return 0 if is_filled_out and any(map(NUMBER.match, row)) else number
    return 0


def _looks_tabular(rows: list[list[str]], mark: str) -> bool:
    """Commas also separate clauses, and semicolons end statements; in a table, header cells are short and cells are filled."""
    widest = max(len(cell) for cell in rows[0])
    spaced = sum(row[1][:1] == " " for row in rows if len(row) > 1) if mark == "," else 0
    filled = sum(any(row[1:]) for row in rows)
    return widest <= 60 and spaced < 0.5 * len(rows) and filled > 0.5 * len(rows)


def _cut_delimited(text: Text, start: int, end: int, outline: Outline, cut_embedded: CutEmbedded) -> None:
    position, header = start, outline.header
    sample = b"" if header == RESUMED else bytes(text[start : min(end, start + _SAMPLE_BYTES)])
    mark, above = find_dialect(decode(sample).split("\n")) or Dialect(",")
    has_quotes = pieces.find(text, b'"', start, end) >= 0
    while header == NO_LABEL and position < end:
        stop = _row_end(text, position, end) if has_quotes else _line_end(text, position, end)
        if is_blank(text[position:stop]):
            pass
        elif above:
            outline.record(position, stop)
            above -= 1
        else:
            header = outline.label(position, stop)
        position = stop
    first = len(outline)
    if not has_quotes:
        for line_start, line_end in iterate_lines(text, position, end):
            if line_end - line_start > 2 or not is_blank(text[line_start:line_end]):
                outline.record(line_start, line_end, header)
        position = end
    while position < end:
        stop = _row_end(text, position, end)
        if not is_blank(text[position:stop]):
            outline.record(position, stop, header)
        position = stop
    if len(outline) > first:
        outline.tables.append(Table(first, len(outline), header, "delimited", mark))
    elif header >= 0:
        outline.record(outline.label_starts[header], outline.label_ends[header])


def _row_end(text: Text, position: int, end: int) -> int:
    found = _ROW.match(text, position, end)
    return found.end() if found and found.end() > position else _line_end(text, position, end)


def _line_end(text: Text, position: int, end: int) -> int:
    found = pieces.find(text, b"\n", position, end)
    return found + 1 if found >= 0 else end


def _find_row_start(window: bytes) -> int:
    """A line end between quotation marks is part of a cell, and a row that begins inside a cell has an odd number of them."""
    first = window.find(b"\n") + 1
    start = first
    while start and (found := _ROW.match(window, start)):
        if found[0].count(b'"') % 2 == 0 and found[0].count(b"\n") <= 1 and not _OPENS_INSIDE.match(found[0]):
            return start
        start = window.find(b"\n", start) + 1
    return first or -1


CSV = Kind(
    "csv",
    _is_delimited,
    _cut_delimited,
    Traits(is_celled=True, has_one_header=True, size_places=6, locator="line", layout="rows"),
    find_start=_find_row_start,
)
