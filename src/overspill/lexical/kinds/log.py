"""Logs: an event is a line with its stack trace or indented continuation."""

from __future__ import annotations

import re

from overspill.lexical.kinds.kind import CutEmbedded, Kind, Traits
from overspill.lexical.kinds.sample import Sample
from overspill.lexical.outline import Outline
from overspill.lexical.records.lines import find_first, split_long
from overspill.tables.table import Text
from overspill.text.lines import is_blank, iterate_lines

_MAX_EVENT_BYTES = 1_500

_FRAME = re.compile(rb"\s+\S|\xe2\x94\x82|Caused by:|Traceback |During handling of|The above exception")
_EVENT_STAMP = re.compile(rb"\W{0,3}\d{2,4}[-/.:]\d{1,2}[-/.:]\d{1,4}|[A-Z][a-z]{2}\s+\d{1,2} \d\d:|\[\s*\d+\.\d+\]")

_STAMP = re.compile(
    r"\W{0,3}(?:\[\s*+\d++\.\d++\]|\S{0,24}?\d{2,4}[-/.]\d{1,2}[-/.]\d{1,4}|\S{0,12}?\d{1,2}:\d{2}:\d{2}|[A-Z][a-z]{2}\s++\d{1,2}\s|\d{10,13}\b"
    r"|\S++ - \S++ \[\d|(?=[a-f]*+\d)[0-9a-f]{7,40} \S)"
)
_LEVEL = re.compile(r"\W{0,3}(?:TRACE|DEBUG|INFO|NOTICE|WARN(?:ING)?|ERROR|FATAL|CRITICAL|SEVERE)\b")
_MIN_STAMPED_SHARE = 0.3


def begins_with_stamp(line: str) -> bool:
    return _STAMP.match(line) is not None


def _is_log(sample: Sample) -> bool:
    return sample.share(_STAMP.match) + sample.share(_LEVEL.match) > _MIN_STAMPED_SHARE


def continues_event(line: bytes | bytearray) -> bool:
    return _FRAME.match(line) is not None and not _EVENT_STAMP.match(line.lstrip())


def cut_events(text: Text, start: int, end: int, outline: Outline, cut_embedded: CutEmbedded) -> None:
    open_at, open_end = start, start
    for line_start, line_end in iterate_lines(text, start, end):
        line = text[line_start:line_end]
        continues = open_end == line_start and line_end - open_at <= _MAX_EVENT_BYTES and continues_event(line)
        if continues and open_at < open_end:
            open_end = line_end
            continue
        record_event(text, open_at, open_end, outline)
        open_at, open_end = (line_end, line_end) if is_blank(line) else (line_start, line_end)
    record_event(text, open_at, open_end, outline)


def record_event(text: Text, start: int, end: int, outline: Outline) -> None:
    for part in split_long(text, start, end, _MAX_EVENT_BYTES):
        outline.record(*part)


TRAITS = Traits(is_program_output=True, is_log=True, has_telling_lines=True, size_places=1, layout="events")
LOG = Kind("log", _is_log, cut_events, TRAITS, find_start=find_first(re.compile(rb"\n(?=\S)"), re.compile(rb"\n")))
