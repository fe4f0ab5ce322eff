"""Histories: a commit with its author, message and files, despite blank lines between them."""

from __future__ import annotations

import re

from msgspec.structs import replace

from overspill.lexical.kinds.kind import CutEmbedded, Kind
from overspill.lexical.kinds.log import TRAITS
from overspill.lexical.kinds.sample import Sample
from overspill.lexical.outline import Outline
from overspill.lexical.records.lines import find_first
from overspill.tables.table import Text
from overspill.text.lines import iterate_lines

_MAX_RECORD_BYTES = 1_500
_COMMIT = re.compile(rb"commit [0-9a-f]{7,64}\b")
"""How `git log` begins a commit."""


def _is_history(sample: Sample) -> bool:
    return _COMMIT.match(sample.head) is not None


def _cut_commits(text: Text, start: int, end: int, outline: Outline, cut_embedded: CutEmbedded) -> None:
    label, open_at, reached = -1, start, start
    for line_start, line_end in iterate_lines(text, start, end):
        commit = _COMMIT.match(text, line_start, line_end)
        if commit or line_end - open_at > _MAX_RECORD_BYTES:
            outline.record(open_at, reached, label)
            open_at = line_start
        if commit:
            label = outline.label(line_start, line_end)
        reached = line_end
    outline.record(open_at, reached, label)


HISTORY = Kind(
    "history",
    _is_history,
    _cut_commits,
    replace(TRAITS, layout="commits"),
    find_start=find_first(re.compile(rb"\n(?=commit [0-9a-f]{7})"), re.compile(rb"\n")),
)
