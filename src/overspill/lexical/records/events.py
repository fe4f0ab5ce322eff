"""Cuts logs: an event is a line with its stack trace or indented continuation."""

from __future__ import annotations

import re

from overspill.lexical.outline import Outline, Text
from overspill.lexical.records.lines import is_blank, iterate_lines, split_long

_MAX_EVENT_BYTES = 1_500

_FRAME = re.compile(rb"\s+\S|\xe2\x94\x82|Caused by:|Traceback |During handling of|The above exception")
_STAMP = re.compile(rb"\W{0,3}\d{2,4}[-/.:]\d{1,2}[-/.:]\d{1,4}|[A-Z][a-z]{2}\s+\d{1,2} \d\d:|\[\s*\d+\.\d+\]")


def cut_events(text: Text, start: int, end: int, outline: Outline) -> None:
    open_at, open_end = start, start
    for line_start, line_end in iterate_lines(text, start, end):
        line = text[line_start:line_end]
        continues = (
            _FRAME.match(line)
            and not _STAMP.match(line.lstrip())
            and open_end == line_start
            and line_end - open_at <= _MAX_EVENT_BYTES
        )
        if continues and open_at < open_end:
            open_end = line_end
            continue
        _record_event(text, open_at, open_end, outline)
        open_at, open_end = (line_end, line_end) if is_blank(line) else (line_start, line_end)
    _record_event(text, open_at, open_end, outline)


def cut_lines(text: Text, start: int, end: int, outline: Outline) -> None:
    """Cuts search results: every line is a record."""
    for line_start, line_end in iterate_lines(text, start, end):
        if not is_blank(text[line_start:line_end]):
            _record_event(text, line_start, line_end, outline)


def _record_event(text: Text, start: int, end: int, outline: Outline) -> None:
    for part in split_long(text, start, end, _MAX_EVENT_BYTES):
        outline.record(*part)
