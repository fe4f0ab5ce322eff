"""Columns aligned with spaces, as `ps`, `kubectl get` and many others print them."""

from __future__ import annotations

import re

from overspill.lexical.kinds.kind import CutEmbedded, Kind, Traits
from overspill.lexical.kinds.sample import Sample
from overspill.lexical.outline import NO_LABEL, RESUMED, Outline, Table
from overspill.lexical.reading import read_line
from overspill.lexical.records.lines import is_blank, iterate_lines
from overspill.tables.aligned import Worded, find_format
from overspill.tables.table import Text

_RULE = re.compile(rb"[\s|+=:-]{3,}$")
_SAMPLED_ROWS = 2_000
_GAPS = re.compile(r"\S(?: {2,}|\t+)(?=\S)")
_DRAWN_LINE = re.compile(r"[\s|+=-]{4,}$")
_MIN_ALIGNED_SHARE = 0.7


def _are_columns(sample: Sample) -> bool:
    lines = sample.lines
    aligned = sum(_count_gaps(line) >= 2 for line in lines) + sum(_DRAWN_LINE.match(line) is not None for line in lines)
    if aligned <= _MIN_ALIGNED_SHARE * len(lines):
        return False
    return not sample.is_wordy or (lines[0].isupper() and _count_gaps(lines[0]) >= 2)


def _count_gaps(line: str) -> int:
    return len(_GAPS.findall(line)) if "  " in line or "\t" in line else 0


def _cut_columns(text: Text, start: int, end: int, outline: Outline, cut_embedded: CutEmbedded) -> None:
    """The first line of each block names the columns. Lines drawn between rows are skipped."""
    header, first = outline.header, len(outline)
    for line_start, line_end in iterate_lines(text, start, end):
        line = bytes(text[line_start:line_end])
        if is_blank(line):
            _note_columns(text, header, first, outline)
            header = NO_LABEL
        elif _RULE.match(line):
            continue
        elif header == NO_LABEL:
            header, first = outline.label(line_start, line_end), len(outline)
        else:
            outline.record(line_start, line_end, header)
    _note_columns(text, header, first, outline)


def _note_columns(text: Text, header: int, first: int, outline: Outline) -> None:
    if header == NO_LABEL:
        return
    if header == RESUMED:
        if len(outline) > first:
            outline.tables.append(Table(first, len(outline), header, Worded()))
        return
    start, end = outline.label_starts[header], outline.label_ends[header]
    if len(outline) > first:
        sampled = range(first, min(first + _SAMPLED_ROWS, len(outline)))
        rows = [read_line(text, outline.starts[row], outline.ends[row]) for row in sampled]
        outline.tables.append(Table(first, len(outline), header, find_format(read_line(text, start, end), rows)))
    else:
        outline.record(start, end)


COLUMNS = Kind(
    "columns",
    _are_columns,
    _cut_columns,
    Traits(is_celled=True, has_one_header=True, size_places=6, locator="line", layout="aligned"),
)
