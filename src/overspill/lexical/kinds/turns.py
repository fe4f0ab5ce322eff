"""Chats, transcripts and minutes: what one speaker says is a record."""

from __future__ import annotations

import re
from collections import Counter

from msgspec.structs import replace

from overspill.lexical.kinds.kind import CutEmbedded, Kind, Traits
from overspill.lexical.kinds.sample import Sample
from overspill.lexical.outline import Outline
from overspill.lexical.records.paragraphs import Paragraphs
from overspill.tables.table import Text
from overspill.text.encoding import decode
from overspill.text.lines import iterate_lines

_MAX_TURN_BYTES = 500
"""A longer turn is cut between sentences: a speech answers a question with a few of them."""
_NICK = re.compile(r"(?:\W{0,2}(?:\d{4}-\d\d-\d\d[ T])?\d{1,2}:\d{2}(?::\d{2})?\W{0,3} ?)?<[^<>\s]{1,40}> ")
"""`[12:18] <nick> `, as chat clients write it."""
_STAMPED = re.compile(
    r"(?:\[?\d{1,4}[./-]\d{1,2}[./-]\d{1,4}, \d{1,2}:\d{2}(?::\d{2})?(?:[ \u202f][AaPp][Mm])?\]?(?: -)? )([^:\n]{1,40}): \S"
)
"""`[06.01.2024, 16:43:00] Ann: ` and `1/6/24, 4:43 PM - Ann: `, as phones export chats."""
_SPEAKER = re.compile(
    # Programs write a time of day in brackets too, but what follows is a level or begins with a small letter.
    r"(?:[\[(](?=[^\])\n]{0,30}\d:\d\d)[^\])\n]{4,40}[\])](?: -)? "
    r"(?!(?:TRACE|DEBUG|INFO|NOTICE|WARN(?:ING)?|ERROR|FATAL|CRITICAL|SEVERE)\b))?+"
    r"([^\W\d_a-z][\w.'’#-]*+(?: [^\W\d_][\w.'’-]*+| \([^()\n]{1,40}\)){0,4}): \S"
)
"""`Ann Lee: `, and `[4:43 pm on 6 January, 2024] Ann Lee: `."""
_MIN_TURNS_SHARE, _MAX_INDENTED_SHARE = 0.6, 0.05
_MIN_SPEAKERS, _MIN_TURNS_PER_SPEAKER = 2, 3
"""Names before colons are speakers if they are few and come again; else they are keys or terms."""
_HEADING = re.compile(r"(#{1,6}|={2,6})[ \t]{1,4}[^\s#=][^\n]{0,200}$")
"""As Markdown and wikis mark it."""
_MIN_HEADINGS, _MIN_TURNS_SHARE_OF_MINUTES = 3, 0.3
"""Minutes have lists, tables and paragraphs between turns."""
_MAX_BEGINNING_BYTES = 200
_MIN_TURN_CHARS = 30
"""The average length of what speakers say; values of keys are shorter."""


def _are_turns(sample: Sample) -> bool:
    lines = sample.lines
    if sample.share(_NICK.match) > _MIN_TURNS_SHARE:
        return True
    names = _count_speakers(sample)
    return (
        names.total() > _MIN_TURNS_SHARE * len(lines)
        and _are_speakers(names)
        and sample.is_wordy
        and sum(line[:1].isspace() for line in lines) <= _MAX_INDENTED_SHARE * len(lines)
        and sum(map(len, lines)) >= _MIN_TURN_CHARS * len(lines)
    )


def _are_minutes(sample: Sample) -> bool:
    if sum(map(bool, map(_HEADING.match, sample.lines))) < _MIN_HEADINGS:
        return False
    names = _count_speakers(sample)
    return names.total() > _MIN_TURNS_SHARE_OF_MINUTES * len(sample.lines) and _are_speakers(names) and sample.is_wordy


def _count_speakers(sample: Sample) -> Counter[str]:
    """How many lines begin with each name and a colon."""
    return Counter(found[1] for line in sample.lines if ": " in line and (found := _STAMPED.match(line) or _SPEAKER.match(line)))


def _are_speakers(names: Counter[str]) -> bool:
    return _MIN_SPEAKERS <= len(names) <= names.total() / _MIN_TURNS_PER_SPEAKER


def _cut_turns(text: Text, start: int, end: int, outline: Outline, cut_embedded: CutEmbedded) -> None:
    """A heading is in one record with what is right below it, which may be all that it is about."""
    said = Paragraphs(text, outline, _MAX_TURN_BYTES)
    is_heading = False
    for line_start, line_end in iterate_lines(text, start, end):
        line = decode(bytes(text[line_start : min(line_end, line_start + _MAX_BEGINNING_BYTES)]))
        if not line.strip():
            if not is_heading:
                said.end_paragraph()
            continue
        marked = _HEADING.match(line)
        if marked:
            said.heading(line_start, line_end, len(marked[1]))
        else:
            if not is_heading and (_NICK.match(line) or _STAMPED.match(line) or _SPEAKER.match(line)):
                said.end_paragraph()
            said.line(line_start, line_end)
        is_heading = marked is not None
    said.end_paragraph()


TURNS = Kind("turns", _are_turns, _cut_turns, Traits(is_running_text=True, has_context=True, memory_per_byte=2))
MINUTES = Kind("minutes", _are_minutes, _cut_turns, replace(TURNS.traits, has_topics=True))
"""What speakers say, under the headings of an agenda."""
