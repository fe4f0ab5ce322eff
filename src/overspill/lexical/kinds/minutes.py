"""Minutes and transcripts: what speakers say, under the headings of an agenda."""

from __future__ import annotations

import re

from overspill.lexical.kinds.kind import CutEmbedded, Kind, Traits
from overspill.lexical.kinds.sample import Sample
from overspill.lexical.kinds.turns import MAX_TURN_BYTES, SPEAKER, count_speakers, has_recurring_speakers
from overspill.lexical.outline import Outline
from overspill.lexical.records.lines import split_long
from overspill.tables.table import Text
from overspill.text.lines import is_blank, iterate_lines

_HEADING = re.compile(rb"(#{1,6}|={2,6})[ \t]{1,4}[^\s#=][^\n]{0,200}$")
"""As Markdown and wikis mark it."""
_MIN_HEADINGS = 3
_MIN_TURNS_SHARE = 0.3
"""Of the lines: minutes have lists, tables and paragraphs between turns."""
_MAX_BEGINNING_BYTES = 200


def _are_minutes(sample: Sample) -> bool:
    headings = sum(line[0] in "#=" and _HEADING.match(line.encode("utf-8", "replace")) is not None for line in sample.lines)
    if headings < _MIN_HEADINGS:
        return False
    names = count_speakers(sample)
    return names.total() > _MIN_TURNS_SHARE * len(sample.lines) and has_recurring_speakers(names) and sample.is_wordy


class _Item:
    """The current state: the headings above, and the paragraph that is open."""

    def __init__(self, text: Text, outline: Outline) -> None:
        self.text = text
        self.outline = outline
        self.headings: list[tuple[int, int]] = []
        self.opened = -1
        self.closed = -1
        self.is_heading = False

    def heading(self, start: int, end: int, depth: int) -> None:
        self.end_paragraph()
        while self.headings and self.headings[-1][0] >= depth:
            self.headings.pop()
        label = self.outline.label(start, end, self.headings[-1][1] if self.headings else -1)
        self.headings.append((depth, label))
        self.opened, self.closed, self.is_heading = start, end, True

    def line(self, start: int, end: int) -> None:
        if self.opened < 0:
            self.opened = start
        self.closed, self.is_heading = end, False

    def end_paragraph(self) -> None:
        if self.opened >= 0:
            under = self.headings[-1][1] if self.headings else -1
            for part in split_long(self.text, self.opened, self.closed, MAX_TURN_BYTES):
                self.outline.record(*part, under)
        self.opened, self.is_heading = -1, False


def _cut_minutes(text: Text, start: int, end: int, outline: Outline, cut_embedded: CutEmbedded) -> None:
    """A heading is in one record with what is right below it, which may be all that it is about."""
    item = _Item(text, outline)
    for line_start, line_end in iterate_lines(text, start, end):
        line = bytes(text[line_start : min(line_end, line_start + _MAX_BEGINNING_BYTES)])
        if is_blank(line):
            if not item.is_heading:
                item.end_paragraph()
        elif marked := _HEADING.match(line):
            item.heading(line_start, line_end, len(marked[1]))
        else:
            if not item.is_heading and SPEAKER.match(line.decode("utf-8", "replace")):
                item.end_paragraph()
            item.line(line_start, line_end)
    item.end_paragraph()


MINUTES = Kind(
    "minutes",
    _are_minutes,
    _cut_minutes,
    Traits(is_running_text=True, has_context=True, has_topics=True, has_headings=True, memory_per_byte=2),
)
