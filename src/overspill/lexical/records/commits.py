"""Cuts histories: a commit with its author, message and files, despite blank lines between them."""

from __future__ import annotations

from overspill.lexical.kinds import HISTORY
from overspill.lexical.outline import Outline, Text
from overspill.lexical.records.lines import iterate_lines

_MAX_RECORD_BYTES = 1_500


def is_history(text: Text, start: int) -> bool:
    return HISTORY.match(text, start) is not None


def cut_commits(text: Text, start: int, end: int, outline: Outline) -> None:
    label, open_at, reached = -1, start, start
    for line_start, line_end in iterate_lines(text, start, end):
        commit = HISTORY.match(text, line_start, line_end)
        if commit or line_end - open_at > _MAX_RECORD_BYTES:
            outline.record(open_at, reached, label)
            open_at = line_start
        if commit:
            label = outline.label(line_start, line_end)
        reached = line_end
    outline.record(open_at, reached, label)
