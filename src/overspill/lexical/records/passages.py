"""Cuts prose, Markdown and web pages: paragraphs under headings, and the tables between them."""

from __future__ import annotations

import re

from overspill.lexical.outline import Outline, Table
from overspill.lexical.reading import TABLE_EDGE
from overspill.lexical.records.lines import skip_blank_lines, split_long
from overspill.lexical.records.paragraphs import Paragraphs
from overspill.tables.bars import MAY_BEGIN_BARRED, Barred, read_barred
from overspill.tables.table import FoundTable, Text
from overspill.text.lines import is_blank, iterate_lines

_MAX_PASSAGE_BYTES = 1_000
"""A longer paragraph is cut between sentences."""

_MARKED = re.compile(rb"[^\w#]{0,8}(#{1,6})\s+\S")
_MARKED_LINE = re.compile(rb" {0,3}(?:> ){0,3}(#{1,6})\s+\S")
"""The same in plain text. A line that is indented further is a comment in an example."""
_FENCE = re.compile(rb"[ \t]{0,12}(?:```|~~~)")
_MAX_FENCED_BYTES = 16_384
"""A fence that is not closed within this is none."""
_DIVISIONS = b"|".join(
    spelt
    for name in b"Part Book Volume Title Chapter Article Section Clause Schedule Appendix Annex Exhibit".split()
    for spelt in (name, name.upper())
)
"""What documents call their numbered parts."""
_NUMBERED = re.compile(rb"\s*(?:(?:" + _DIVISIONS + rb")\s+[\dIVXLC]+\b|\d+(?:\.\d+)*\.?\s+[A-Z])[^.]{0,80}\.?\s*$")
_CAPITALS = re.compile(rb"[ \t]*[A-Z][A-Z0-9 ,&'/()-]{3,80}:?\s*?(?:\n|\Z)")
_HEADING_STARTS = frozenset(b" \t\r\n\f\v0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ")
"""How a line begins that matches one of these two."""
_ANCHOR = re.compile(rb"[ \t]*\.\. _[^`\n]{1,100}:\s*$")
_ANCHOR_DEPTH = 7
"""`.. _name:` names what is below it, for links, where there may be no heading; a heading ends it."""
_MAX_HEADING_BYTES = 120
_UNDERLINE = re.compile(rb"([=\-~^\"'`:.*+#<>_])\1{2,}[ \t]*\r?(?:\n|\Z)")
_RULE = re.compile(rb"[\s|:+=-]{3,}$")


class _Section(Paragraphs):
    """With the table that is open."""

    header = -1
    first_row = -1

    def row(self, start: int, end: int) -> None:
        if self.header < 0:
            self.end_paragraph()
            self.header = self.outline.label(start, end, self.label)
            self.first_row = len(self.outline)
            self.outline.record(start, end, self.label)
        else:
            for part in split_long(self.text, start, end, 2 * _MAX_PASSAGE_BYTES):
                self.outline.record(*part, self.header)

    def table(self, found: FoundTable) -> None:
        """Its header is a record too, so that it can be found."""
        self.end_paragraph()
        if found.header:
            self.outline.record(*found.header, self.label)
        self.outline.add_table(found, self.label)

    def end_paragraph(self) -> None:
        self.end_table()
        super().end_paragraph()

    def end_table(self) -> None:
        if self.header >= 0 and len(self.outline) - self.first_row >= 3:
            self.outline.tables.append(Table(self.first_row + 1, len(self.outline), self.header, Barred()))
        self.header = -1


def cut_passages(text: Text, start: int, end: int, outline: Outline, *, wrapped: bool = True) -> None:
    """If `wrapped`, a paragraph extends to the next blank line; otherwise every line is one."""
    section = _Section(text, outline, _MAX_PASSAGE_BYTES)
    shouted = False
    underlines: dict[bytes, int] = {}
    fenced = reached = start
    for line_start, line_end in (iterate_lines if wrapped else skip_blank_lines)(text, start, end):
        if line_start < reached:
            continue
        line = text[line_start:line_end]
        if wrapped and line_start >= fenced and (fence := _FENCE.match(line)):
            fenced = _find_fence_end(text, line_end, bytes(fence[0]))
        # Consecutive lines in capitals are a paragraph in capitals, as in contracts, not headings.
        shouted = wrapped and _CAPITALS.match(line) is not None and (shouted or _CAPITALS.match(text, line_end, end) is not None)
        if is_blank(line):
            if wrapped or TABLE_EDGE in line:
                section.end_paragraph()
        elif line_start < fenced:
            if section.header >= 0:
                section.end_paragraph()
            section.line(line_start, line_end)
        elif wrapped and section.opened < 0 and _UNDERLINE.match(line):
            continue  # above a heading, or between sections
        elif wrapped and MAY_BEGIN_BARRED.search(line) and (barred := read_barred(text, line_start, end)) and barred[0]:
            section.table(barred[0])
            reached = barred[1]
        elif line.count(b"|") >= 2:
            if b"--" not in line or not _RULE.match(line):
                section.row(line_start, line_end)
        elif not shouted and (depth := _heading_depth(line, wrapped=wrapped)):
            section.heading(line_start, line_end, depth)
        elif wrapped and section.opened < 0 and (underline := _find_underline(text, line_start, line_end, end)):
            section.heading(line_start, line_end, underlines.setdefault(underline, len(underlines) + 1))
        else:
            if not wrapped or section.header >= 0:
                section.end_paragraph()
            section.line(line_start, line_end)
    section.end_paragraph()


def _find_underline(text: Text, start: int, end: int, limit: int) -> bytes:
    """The mark below a line that is a heading; the marks of a document have their depth in the order in which they come."""
    found = _UNDERLINE.match(text, end, limit) if end - start <= _MAX_HEADING_BYTES else None
    return bytes(found[1]) if found and found.end() - found.start() >= (end - start) // 2 else b""


def _find_fence_end(text: Text, after: int, fence: bytes) -> int:
    """Where a block of code ends that is fenced off, or 0."""
    closing = text.find(b"\n" + fence, after - 1, after + _MAX_FENCED_BYTES)
    return closing + 1 + len(fence)


def _heading_depth(line: bytes | bytearray, *, wrapped: bool) -> int:
    if b"#" in line and (found := (_MARKED_LINE if wrapped else _MARKED).match(line)):
        return len(found[1])
    if b".. _" in line and _ANCHOR.match(line):
        return _ANCHOR_DEPTH
    return 6 if line[0] in _HEADING_STARTS and (_NUMBERED.match(line) or _CAPITALS.match(line)) else 0
