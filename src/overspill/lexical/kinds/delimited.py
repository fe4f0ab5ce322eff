"""Delimited rows: CSV, TSV, and tables with semicolons or bars."""

from __future__ import annotations

import csv
import re
from collections import Counter
from collections.abc import Iterable

from overspill.lexical.kinds.kind import CutEmbedded, Kind, Traits
from overspill.lexical.kinds.log import begins_with_stamp
from overspill.lexical.kinds.sample import Sample
from overspill.lexical.outline import NO_LABEL, RESUMED, Outline, Table, Text
from overspill.lexical.records.lines import is_blank, iterate_lines
from overspill.text import pieces
from overspill.text.encoding import decode

_SAMPLE_BYTES = 48_000
_MARKDOWN_RULE = re.compile(r"\|(?:[\s:]*+-++[\s:]*+\|)++\s*+$")
_ROW = re.compile(rb"(?:[^\"\n]++|\"[^\"]*+\")*+(?:\n|\Z)")


_OPENS_INSIDE = re.compile(rb"[^\",;|\t\n]*+\"[,;|\t\n]")
"""The end of a quoted cell, where a row should begin."""


def _is_delimited(sample: Sample) -> bool:
    lines = sample.lines
    is_markdown = len(lines) > 1 and _MARKDOWN_RULE.match(lines[1]) is not None
    return len(lines) > 2 and not is_markdown and not begins_with_stamp(lines[0]) and bool(find_delimiter(sample.whole_lines))


def find_delimiter(lines: list[str], min_rows: int = 3) -> str:
    """The character that splits these lines into the same number of cells, or an empty string. The last may be cut off."""
    best, width = "", 1
    for mark in ",\t;|":
        rows = [row for row in _rows(lines[:400], mark) if row]
        if len(rows) < min_rows:
            continue
        cells, times = Counter(map(len, rows)).most_common(1)[0]
        if cells > width and times >= 0.85 * len(rows) and len(rows[0]) == cells and _looks_tabular(rows, mark):
            best, width = mark, cells
    return best


def _rows(lines: list[str], mark: str) -> Iterable[list[str]]:
    try:
        return list(csv.reader((line + "\n" for line in lines), delimiter=mark))[:-1]
    except csv.Error:
        return []


def _looks_tabular(rows: list[list[str]], mark: str) -> bool:
    """Commas also separate clauses, and semicolons end statements; in a table, header cells are short and cells are filled."""
    widest = max(len(cell) for cell in rows[0])
    spaced = sum(row[1][:1] == " " for row in rows if len(row) > 1) if mark == "," else 0
    filled = sum(any(row[1:]) for row in rows)
    return widest <= 60 and spaced < 0.5 * len(rows) and filled > 0.5 * len(rows)


def _cut_delimited(text: Text, start: int, end: int, outline: Outline, cut_embedded: CutEmbedded) -> None:
    position, header, first = start, outline.header, len(outline)
    sample = b"" if header == RESUMED else bytes(text[start : min(end, start + _SAMPLE_BYTES)])
    mark = find_delimiter(decode(sample).splitlines())
    if pieces.find(text, b'"', start, end) < 0:
        if header == NO_LABEL:
            position = _line_end(text, start, end)
            header = outline.label(start, position)
        for line_start, line_end in iterate_lines(text, position, end):
            if line_end - line_start > 2 or not is_blank(text[line_start:line_end]):
                outline.record(line_start, line_end, header)
        position = end
    while position < end:
        found = _ROW.match(text, position, end)
        stop = found.end() if found and found.end() > position else _line_end(text, position, end)
        if header == NO_LABEL:
            header = outline.label(position, stop)
        elif not is_blank(text[position:stop]):
            outline.record(position, stop, header)
        position = stop
    if len(outline) > first:
        outline.tables.append(Table(first, len(outline), header, "delimited", mark or ","))
    elif header >= 0:
        outline.record(outline.label_starts[header], outline.label_ends[header])


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
