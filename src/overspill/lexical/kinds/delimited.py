"""Delimited rows: CSV, TSV, and tables with semicolons or bars."""

from __future__ import annotations

import re

from overspill.lexical.kinds.kind import CutEmbedded, Kind, Traits
from overspill.lexical.kinds.log import begins_with_stamp
from overspill.lexical.kinds.sample import Sample
from overspill.lexical.outline import NO_LABEL, RESUMED, Outline, Table
from overspill.tables.bars import is_rule
from overspill.tables.delimited import Delimited, Dialect, find_dialect, split_row
from overspill.tables.names import make_unique
from overspill.tables.table import Text
from overspill.text import pieces
from overspill.text.encoding import decode
from overspill.text.lines import is_blank, iterate_lines, read_line

_SAMPLE_BYTES = 48_000
_MAX_ABOVE = 6
_ROW = re.compile(rb"(?:[^\"\n]++|\"[^\"]*+\")*+(?:\n|\Z)")


_OPENS_INSIDE = re.compile(rb"[^\",;|\t\n]*+\"[,;|\t\n]")
"""The end of a quoted cell, where a row should begin."""


def _is_delimited(sample: Sample) -> bool:
    lines = sample.lines
    has_rule = any(map(is_rule, lines[: _MAX_ABOVE + 2]))
    return len(lines) > 2 and not has_rule and not begins_with_stamp(lines[0]) and find_dialect(sample.whole_lines) is not None


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
        names = split_row(read_line(text, outline.label_starts[header], outline.label_ends[header]), mark) if header >= 0 else ()
        outline.tables.append(Table(first, len(outline), header, Delimited(tuple(make_unique(names)), mark)))
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
