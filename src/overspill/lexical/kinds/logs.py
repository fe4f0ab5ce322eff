"""What programs write line by line: logs, search results, histories and diffs."""

from __future__ import annotations

from msgspec.structs import replace

from overspill.lexical.kinds.kind import CutEmbedded, Kind, Sample, Traits
from overspill.lexical.kinds.lines import find_first, record_long
from overspill.lexical.outline import Outline
from overspill.tables.events import continues_event
from overspill.tables.table import Text
from overspill.text.lines import FILLERS, is_blank, iterate_lines
from overspill.text.regex import regex

_MAX_RECORD_BYTES = 1_500

_UNUSUAL_STARTS = frozenset(b" \t\r\n\f\v\xe2CTD" + FILLERS)
"""The first bytes of lines that continue an event, and of blank lines. Most events are single lines and need no closer look."""
_STAMP = regex(
    r"\W{0,3}(?:\[\s*+\d++\.\d++\]|\S{0,24}?\d{2,4}[-/.]\d{1,2}[-/.]\d{1,4}|\S{0,12}?\d{1,2}:\d{2}:\d{2}|[A-Z][a-z]{2}\s++\d{1,2}\s|\d{10,13}\b"
    r"|\S++ - \S++ \[\d|(?=[a-f]*+\d)[0-9a-f]{7,40} \S)"
)
_LEVEL = regex(r"\W{0,3}(?:TRACE|DEBUG|INFO|NOTICE|WARN(?:ING)?|ERROR|FATAL|CRITICAL|SEVERE)\b")
_MIN_STAMPED_SHARE = 0.3

_MATCH = regex(r"(?:[A-Za-z]:)?(?:[^\WA-Za-z]|[.@+~-])*+[A-Za-z/\\](?:[\w./\\@+~]|-(?!\d++[:-]))*+[:-]\d++[:-]")
"""A path, which contains a letter or a slash, then a line number."""
_MIN_MATCHES_SHARE = 0.6

_COMMIT = regex(rb"commit [0-9a-f]{7,64}\b")
"""How `git log` begins a commit."""

_FILE = regex(rb"diff --git |Index: |--- \S")
_DIFF = regex(r"(?:diff --git |@@ -\d|--- \S|\+\+\+ \S|Index: )")
_SURE_MARK = regex(r"diff --git |@@ -\d|\+\+\+ \S")
"""Lines that occur only in diffs. In some languages, comments begin with dashes."""
_MIN_CHANGED_SHARE = 0.7


def begins_with_stamp(line: str) -> bool:
    return _STAMP.match(line) is not None


def _is_log(sample: Sample) -> bool:
    return sample.share(_STAMP.match) + sample.share(_LEVEL.match) > _MIN_STAMPED_SHARE


def _cut_events(text: Text, start: int, end: int, outline: Outline, cut_embedded: CutEmbedded) -> None:
    """An event is a line with its stack trace or indented continuation."""
    opened = closed = start
    for line_start, line_end in iterate_lines(text, start, end):
        if text[line_start] in _UNUSUAL_STARTS:
            line = text[line_start:line_end]
            if opened < closed == line_start and line_end - opened <= _MAX_RECORD_BYTES and continues_event(line):
                closed = line_end
                continue
            line_start = line_end if is_blank(line) else line_start
        if closed - opened > _MAX_RECORD_BYTES:
            record_long(text, (opened, closed), _MAX_RECORD_BYTES, outline)
        else:
            outline.record(opened, closed)
        opened, closed = line_start, line_end
    record_long(text, (opened, closed), _MAX_RECORD_BYTES, outline)


def are_matches(sample: Sample) -> bool:
    return sample.share(_MATCH.match) > _MIN_MATCHES_SHARE


def _cut_lines(text: Text, start: int, end: int, outline: Outline, cut_embedded: CutEmbedded) -> None:
    for line_start, line_end in iterate_lines(text, start, end):
        if not is_blank(text[line_start:line_end]):
            record_long(text, (line_start, line_end), _MAX_RECORD_BYTES, outline)


def _cut_commits(text: Text, start: int, end: int, outline: Outline, cut_embedded: CutEmbedded) -> None:
    """A record is a commit with its author, message and files, despite the blank lines between them."""
    label, opened, closed = -1, start, start
    for line_start, line_end in iterate_lines(text, start, end):
        commit = _COMMIT.match(text, line_start, line_end)
        if commit or line_end - opened > _MAX_RECORD_BYTES:
            outline.record(opened, closed, label)
            opened = line_start
        if commit:
            label = outline.label(line_start, line_end)
        closed = line_end
    outline.record(opened, closed, label)


def _is_diff(sample: Sample) -> bool:
    lines = sample.lines
    if not any(map(_SURE_MARK.match, lines)) or sum(map(bool, map(_DIFF.match, lines))) < 2:
        return False
    return sum(line[:1] in "+- @" for line in lines) > _MIN_CHANGED_SHARE * len(lines)


def _cut_hunks(text: Text, start: int, end: int, outline: Outline, cut_embedded: CutEmbedded) -> None:
    """A hunk is a record, and the file it changes is its label."""
    label, opened, in_header = -1, start, False
    for line_start, line_end in iterate_lines(text, start, end):
        begins_file = not in_header and _FILE.match(text, line_start, line_end)
        begins_hunk = not begins_file and text[line_start : line_start + 3] == b"@@ "
        if begins_file or (begins_hunk and not in_header):
            record_long(text, (opened, line_start), _MAX_RECORD_BYTES, outline, label)
            opened = line_start
        if begins_file:
            label, in_header = outline.label(line_start, line_end), True
        elif begins_hunk:
            in_header = False
    record_long(text, (opened, end), _MAX_RECORD_BYTES, outline, label)


_LINE_START, _EVENT_START = regex(rb"\n"), regex(rb"\n(?=\S)")
_COMMIT_START, _HUNK_START = regex(rb"\n(?=commit [0-9a-f]{7})"), regex(rb"\n(?=diff --git |@@ )")
LOG_TRAITS = Traits(is_program_output=True, is_log=True, has_telling_lines=True, layout="events")
LOG = Kind("log", _is_log, _cut_events, LOG_TRAITS, find_start=find_first(_EVENT_START, _LINE_START))
MATCHES = Kind(
    "matches", are_matches, _cut_lines, Traits(is_code=True, has_context=True, has_telling_lines=True, layout="results")
)
HISTORY = Kind(
    "history",
    lambda sample: _COMMIT.match(sample.head) is not None,
    _cut_commits,
    replace(LOG_TRAITS, layout="commits"),
    find_start=find_first(_COMMIT_START, _LINE_START),
)
DIFF = Kind(
    "diff",
    _is_diff,
    _cut_hunks,
    Traits(is_code=True, has_telling_lines=True, layout="hunks"),
    find_start=find_first(_HUNK_START, _LINE_START),
)
