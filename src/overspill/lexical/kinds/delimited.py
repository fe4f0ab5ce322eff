"""Delimited rows: CSV, TSV, and tables with semicolons or bars."""

from __future__ import annotations

import re

from msgspec.structs import replace

from overspill.lexical.kinds.kind import CutEmbedded, Kind, Traits
from overspill.lexical.kinds.log import begins_with_stamp
from overspill.lexical.kinds.sample import Sample
from overspill.lexical.outline import RESUMED, Outline, Table
from overspill.tables.bars import is_rule
from overspill.tables.delimited import Heading, find_heading, iterate_rows, take_heading
from overspill.tables.table import Text
from overspill.text import pieces
from overspill.text.lines import FILLERS

_MAX_ABOVE = 6
_MIN_ROWS = 4
_ROW = re.compile(rb"(?:[^\"\n]++|\"[^\"]*+\")*+(?:\n|\Z)")


_OPENS_INSIDE = re.compile(rb"[^\",;|\t\n]*+\"[,;|\t\n]")
"""The end of a quoted cell, where a row should begin."""


def _is_delimited(sample: Sample) -> bool:
    lines = sample.lines
    if len(lines) < 1 or any(map(is_rule, lines[: _MAX_ABOVE + 2])) or begins_with_stamp(lines[0]):
        return False
    return find_heading(sample.data, sample.start, sample.end, _MIN_ROWS, FILLERS) is not None


def _cut_delimited(text: Text, start: int, end: int, outline: Outline, cut_embedded: CutEmbedded) -> None:
    header, heading = outline.header, Heading(first=start)
    if header != RESUMED:
        heading = take_heading(text, start, end, FILLERS)
    elif pieces.find(text, b'"', start, end) >= 0:
        heading = replace(heading, format=take_heading(text, start, end, FILLERS).format)
    for span in heading.above:
        outline.record(*span)
    header = outline.label(*heading.header) if heading.header else header
    first = len(outline)
    outline.record_all(iterate_rows(text, heading.format.mark, heading.first, end, omit=FILLERS), header)
    if len(outline) > first:
        outline.tables.append(Table(first, len(outline), header, heading.format))
    elif heading.header:
        outline.record(*heading.header)


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
