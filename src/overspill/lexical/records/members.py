"""The members of an element that are not containers, in runs."""

from __future__ import annotations

import re
from collections.abc import Iterator

from overspill.lexical.outline import Outline
from overspill.lexical.records.lines import split_long
from overspill.tables.table import Text
from overspill.text.lines import FILLERS
from overspill.text.patterns import compile_pattern

_MAX_MEMBER_BYTES = 1_000
"""Of a member that is not a container."""
_PIECE_BYTES = 1 << 20
"""A longer run is searched so that other threads can run."""
_MAX_RUN_BYTES = 700
"""Plain members are grouped up to this size."""
_FILL = re.escape(FILLERS)
_MEMBER = re.compile(rb",[\s" + _FILL + rb"]*(?=\")|>\s*(?=<)")
_LONG_MEMBER = compile_pattern(rb",[\s\v" + _FILL + rb"]*\"|>[\s\v]*<")
"""The same, for long texts: it lets other threads run, but each match takes longer."""
CONTENT = re.compile(rb"[^\s,{}\[\]" + _FILL + rb"]")


def record_plain_members(text: Text, start: int, end: int, label: int, outline: Outline) -> None:
    """Records members that are not containers: strings, numbers, text between tags."""
    if not CONTENT.search(text, start, end):
        return
    run = start
    for position in _member_ends(text, start, end):
        if position - run > _MAX_RUN_BYTES:
            _split(text, run, position, label, outline)
            run = position
    _split(text, run, end, label, outline)


def _member_ends(text: Text, start: int, end: int) -> Iterator[int]:
    if end - start <= _PIECE_BYTES:
        return (member.end() for member in _MEMBER.finditer(text, start, end))
    return (member.end() - 1 for member in _LONG_MEMBER.finditer(text, start, end))


def _split(text: Text, start: int, end: int, label: int, outline: Outline) -> None:
    for part in split_long(text, start, end, _MAX_MEMBER_BYTES):
        if CONTENT.search(text, *part):
            outline.record(*part, label)
