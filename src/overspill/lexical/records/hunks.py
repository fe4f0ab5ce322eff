"""Cuts diffs: a hunk is a record, and the file it changes is its label."""

from __future__ import annotations

import re

from overspill.lexical.outline import Outline, Text
from overspill.lexical.records.lines import iterate_lines, split_long

_MAX_HUNK_BYTES = 1_500

_FILE = re.compile(rb"diff --git |Index: |--- \S")
_HUNK = re.compile(rb"@@ ")


def cut_hunks(text: Text, start: int, end: int, outline: Outline) -> None:
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
