"""Diffs: a hunk is a record, and the file it changes is its label."""

from __future__ import annotations

import re

from overspill.lexical.kinds.kind import CutEmbedded, Kind, Traits
from overspill.lexical.kinds.sample import Sample
from overspill.lexical.outline import Outline
from overspill.lexical.records.lines import find_first, split_long
from overspill.tables.table import Text
from overspill.text.lines import iterate_lines

_MAX_HUNK_BYTES = 1_500

_FILE = re.compile(rb"diff --git |Index: |--- \S")
_HUNK = re.compile(rb"@@ ")
_DIFF = re.compile(r"(?:diff --git |@@ -\d|--- \S|\+\+\+ \S|Index: )")
_SURE_MARK = re.compile(r"diff --git |@@ -\d|\+\+\+ \S")
"""What only a diff has: comments of some languages begin with dashes."""
_MIN_CHANGED_SHARE = 0.7


def _is_diff(sample: Sample) -> bool:
    lines = sample.lines
    marks = sum(bool(_DIFF.match(line)) for line in lines)
    if marks < 2 or not any(map(_SURE_MARK.match, lines)):
        return False
    return sum(line[:1] in "+- @" for line in lines) > _MIN_CHANGED_SHARE * len(lines)


def cut_hunks(text: Text, start: int, end: int, outline: Outline, cut_embedded: CutEmbedded) -> None:
    label, opened, in_header = -1, start, False
    for line_start, line_end in iterate_lines(text, start, end):
        line = text[line_start : line_start + 12]
        if _FILE.match(line) and not in_header:
            _record_hunk(text, opened, line_start, label, outline)
            label = outline.label(line_start, line_end)
            opened, in_header = line_start, True
        elif _HUNK.match(line):
            if not in_header:
                _record_hunk(text, opened, line_start, label, outline)
                opened = line_start
            in_header = False
    _record_hunk(text, opened, end, label, outline)


def _record_hunk(text: Text, start: int, end: int, label: int, outline: Outline) -> None:
    for part in split_long(text, start, end, _MAX_HUNK_BYTES):
        outline.record(*part, label)


DIFF = Kind(
    "diff",
    _is_diff,
    cut_hunks,
    Traits(is_code=True, has_telling_lines=True, layout="hunks"),
    find_start=find_first(re.compile(rb"\n(?=diff --git |@@ )"), re.compile(rb"\n")),
)
