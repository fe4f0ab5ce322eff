"""Histories: a commit with its author, message and files, however many blank lines part them."""

from __future__ import annotations

import re

from overspill.engine.outline import Outline, Text
from overspill.engine.records.lines import lines_of

LONGEST = 1_500

_COMMIT = re.compile(rb"commit [0-9a-f]{7,64}\b")


def is_history(text: Text, start: int) -> bool:
    return _COMMIT.match(text, start) is not None


def cut_commits(text: Text, start: int, end: int, outline: Outline) -> None:
    label, open_at, reached = -1, start, start
    for line_start, line_end in lines_of(text, start, end):
        commit = _COMMIT.match(text, line_start, line_end)
        if commit or line_end - open_at > LONGEST:
            outline.record(open_at, reached, label)
            open_at = line_start
        if commit:
            label = outline.label(line_start, line_end)
        reached = line_end
    outline.record(open_at, reached, label)
