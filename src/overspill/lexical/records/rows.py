"""Cuts tables in text: delimited rows, or columns aligned with spaces."""

from __future__ import annotations

import re

from overspill.lexical.kinds import find_delimiter
from overspill.lexical.outline import Cells, Outline, Table, Text
from overspill.lexical.records.lines import is_blank, iterate_lines
from overspill.text.encoding import decode

_RULE = re.compile(rb"[\s|+=:-]{3,}$")
_SAMPLE_BYTES = 48_000
_SAMPLED_ROWS = 50
_GAP = re.compile(rb"\s{2,}")
_ROW = re.compile(rb"(?:[^\"\n]++|\"[^\"]*+\")*+(?:\n|\Z)")


def cut_delimited(text: Text, start: int, end: int, outline: Outline) -> None:
    mark = find_delimiter(decode(bytes(text[start : min(end, start + _SAMPLE_BYTES)])).splitlines())
    position, header, first = start, -1, len(outline)
    if text.find(b'"', start, end) < 0:
        position = _line_end(text, start, end)
        header = outline.label(start, position)
        for line_start, line_end in iterate_lines(text, position, end):
            if line_end - line_start > 2 or not is_blank(text[line_start:line_end]):
                outline.record(line_start, line_end, header)
        position = end
    while position < end:
        found = _ROW.match(text, position, end)
        stop = found.end() if found and found.end() > position else _line_end(text, position, end)
        if header < 0:
            header = outline.label(position, stop)
        elif not is_blank(text[position:stop]):
            outline.record(position, stop, header)
        position = stop
    if len(outline) > first:
        outline.tables.append(Table(first, len(outline), header, "delimited", mark or ","))
    elif header >= 0:
        outline.record(outline.label_starts[header], outline.label_ends[header])


def cut_columns(text: Text, start: int, end: int, outline: Outline) -> None:
    """The first line of each block names the columns. Lines drawn between rows are skipped."""
    header, first = -1, 0
    for line_start, line_end in iterate_lines(text, start, end):
        line = bytes(text[line_start:line_end])
        if is_blank(line):
            _note_columns(text, header, first, outline)
            header = -1
        elif _RULE.match(line):
            continue
        elif header < 0:
            header, first = outline.label(line_start, line_end), len(outline)
        else:
            outline.record(line_start, line_end, header)
    _note_columns(text, header, first, outline)


def _note_columns(text: Text, header: int, first: int, outline: Outline) -> None:
    if header < 0:
        return
    start, end = outline.label_starts[header], outline.label_ends[header]
    if len(outline) > first:
        rows = [
            bytes(text[outline.starts[row] : outline.ends[row]]) for row in range(first, min(first + _SAMPLED_ROWS, len(outline)))
        ]
        outline.tables.append(Table(first, len(outline), header, _cells(bytes(text[start:end]), rows)))
    else:
        outline.record(start, end)


def _cells(header: bytes, rows: list[bytes]) -> Cells:
    """Wide gaps separate cells. If that splits rows differently from their header, single spaces do, except in the last cell."""
    if b"|" in header:
        return "pipes"
    wide = sum(len(_GAP.split(row.strip())) == len(_GAP.split(header.strip())) for row in rows)
    narrow = sum(len(row.split()) >= len(header.split()) for row in rows)
    return "words" if narrow > max(wide, 0.9 * len(rows)) else "spaced"


def _line_end(text: Text, position: int, end: int) -> int:
    found = text.find(b"\n", position, end)
    return found + 1 if found >= 0 else end
