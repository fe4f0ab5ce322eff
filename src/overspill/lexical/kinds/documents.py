"""Prose, Markdown and web pages: paragraphs under headings, and the tables between them."""

from __future__ import annotations

from overspill.lexical.kinds.code import has_definitions
from overspill.lexical.kinds.conversations import are_messages
from overspill.lexical.kinds.kind import CutEmbedded, Kind, Sample, Traits
from overspill.lexical.kinds.lines import Paragraphs, find_first, group_lines, record_long, skip_blank_lines
from overspill.lexical.kinds.logs import are_matches
from overspill.lexical.outline import Outline, Table
from overspill.lexical.reading import TABLE_EDGE, find_hidden, strip_tags
from overspill.tables.bars import DRAWN, MARKDOWN_RULE, MAY_BEGIN_BARRED, Barred, is_rule, read_barred
from overspill.tables.table import FoundTable, Text
from overspill.text.lines import BLANK, is_blank
from overspill.text.patterns import compile_pattern
from overspill.text.regex import Pattern, escape, regex

_MAX_PASSAGE_BYTES = 1_000
"""A longer paragraph is cut between sentences."""

_MARKED = regex(rb"[^\w#]{0,8}(#{1,6})\s+\S")
_MARKED_LINE = regex(rb" {0,3}(?:> ){0,3}(#{1,6})\s+\S")
"""A marked heading in plain text. A line indented further is a comment in an example."""
_FENCE = regex(rb"[ \t]{0,12}(?:```|~~~)")
_MAX_FENCED_BYTES = 16_384
"""A fence must be closed within this many bytes to count."""
_DIVISIONS = b"|".join(
    spelt
    for name in b"Part Book Volume Title Chapter Article Section Clause Schedule Appendix Annex Exhibit".split()
    for spelt in (name, name.upper())
)
"""The words that documents use for their numbered parts."""
_NUMBERED = regex(rb"\s*(?:(?:" + _DIVISIONS + rb")\s+[\dIVXLC]+\b|\d+(?:\.\d+)*\.?\s+[A-Z])[^.]{0,80}\.?\s*$")
_CAPITALS = regex(rb"[ \t]*[A-Z][A-Z0-9 ,&'/()-]{3,80}:?\s*?(?:\n|\Z)")
_HEADING_STARTS = frozenset(b" \t\r\n\f\v0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ")
"""The first bytes of lines that can match one of these two."""
_ANCHOR = regex(rb"[ \t]*\.\. _[^`\n]{1,100}:\s*$")
_ANCHOR_DEPTH = 7
"""`.. _name:` names the text below it as a link target, even without a heading. The next heading ends it."""
_MAX_HEADING_BYTES = 120
_UNDERLINE = regex(rb"([=\-~^\"'`:.*+#<>_])\1{2,}[ \t]*\r?(?:\n|\Z)")
_UNUSUAL = compile_pattern(
    rb"(?m)^(?:[%b]*|(?:[ \t]*(?:[A-Z][A-Z0-9 ,&'/()-]{3}|\.\. _|```|~~~)|[ >]*#|[ \t\r\f\v]*(?:[0-9]|(?:%b)[ \t\r\f\v])|%b"
    rb"|[^\n]*(?:\||\+[-=]|-\[ |\xe2[\x94\x95]))[^\n]*)\n"
    % (BLANK, _DIVISIONS, b"|".join(escape(mark * 3) for mark in map(bytes, zip(b"=-~^\"'`:.*+#<>_"))))
)
"""Blank lines, and those that may be more than a line of a paragraph: any that one of the patterns for lines may match."""


class _Section(Paragraphs):
    """Paragraphs, and the currently open table."""

    header = -1
    first_row = -1

    def row(self, line: bytes | bytearray, start: int, end: int, *, may_be_empty: bool = False) -> None:
        """The first row is the header. Skips the line below it if it has no words, unless rows may be empty."""
        if not line.strip(DRAWN) and (self.header < 0 or not may_be_empty):
            return
        if self.header < 0:
            self.end_paragraph()
            self.header = self.outline.label(start, end, self.label)
            self.first_row = len(self.outline)
            self.outline.record(start, end, self.label)
        else:
            record_long(self.text, (start, end), 2 * _MAX_PASSAGE_BYTES, self.outline, self.header)

    def table(self, found: FoundTable) -> None:
        """Records the header too, so searches find it."""
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


def _cut_page(text: Text, start: int, end: int, outline: Outline, cut_embedded: CutEmbedded) -> None:
    """In the text that the engine makes of a page, every line is a paragraph, a row or a heading. A row has a bar for each cell:
    below a header, even one for a cell that spans all columns."""
    section = _Section(text, outline, _MAX_PASSAGE_BYTES)
    for line, line_start, line_end in skip_blank_lines(text, start, end):
        if TABLE_EDGE in line and is_blank(line):
            section.end_paragraph()
        elif b"|" in line and line.count(b"|") >= (2 if section.header < 0 else 1):
            section.row(line, line_start, line_end, may_be_empty=True)
        elif depth := _find_depth(line, _MARKED):
            section.heading(line_start, line_end, depth)
        else:
            section.end_paragraph()
            record_long(text, (line_start, line_end), _MAX_PASSAGE_BYTES, outline, section.label)
    section.end_paragraph()


def _cut_prose(text: Text, start: int, end: int, outline: Outline, cut_embedded: CutEmbedded) -> None:
    """A paragraph extends to the next blank line."""
    section = _Section(text, outline, _MAX_PASSAGE_BYTES)
    shouted = False
    underlines: dict[bytes, int] = {}
    fenced = reached = rowless = start
    for line_start, line_end, is_unusual in group_lines(text, start, end, _UNUSUAL):
        line_start, barred = max(line_start, reached), None
        if line_start >= line_end:
            continue
        line = text[line_start:line_end] if is_unusual else b""
        if line and is_blank(line):
            section.end_paragraph()
            shouted = False
            continue
        if line and line_start >= fenced and (fence := _FENCE.match(line)):
            closing = text.find(b"\n" + bytes(fence[0]), line_end - 1, line_end + _MAX_FENCED_BYTES)
            fenced = closing + 1 + len(fence[0])
        # Consecutive lines in capitals are a paragraph, as in contracts, not headings.
        is_capital = bool(line) and line[0] in _HEADING_STARTS and _CAPITALS.match(line) is not None
        shouted = is_capital and (shouted or _CAPITALS.match(text, line_end, end) is not None)
        if line_start < fenced:
            section.end_table()
            section.line(line_start, line_end)
        elif line and section.opened < 0 and _UNDERLINE.match(line):
            continue  # above a heading, or between sections
        elif (
            line_end >= rowless and MAY_BEGIN_BARRED.search(line) and (barred := read_barred(text, line_start, end)) and barred[0]
        ):
            section.table(barred[0])
            reached = barred[1]
        elif line.count(b"|") >= 2:
            section.row(line, line_start, line_end)
        elif line and not shouted and (depth := _find_depth(line, _MARKED_LINE)):
            section.heading(line_start, line_end, depth)
        elif section.opened < 0 and (underline := _find_underline(text, line_start, line_end, end)):
            section.heading(line_start, line_end, underlines.setdefault(underline, len(underlines) + 1))
        else:
            section.end_table()
            section.line(line_start, line_end)
        if barred and not barred[0]:
            rowless = barred[1]  # no table begins between its rules; reading on from each of them would take quadratic time
    section.end_paragraph()


def _find_underline(text: Text, start: int, end: int, limit: int) -> bytes:
    """The mark that underlines a heading. Marks get their depths in the order of their first use in the document."""
    is_line = end - start <= _MAX_HEADING_BYTES and text.find(b"\n", start, end) in (-1, end - 1)
    found = _UNDERLINE.match(text, end, limit) if is_line else None
    return bytes(found[1]) if found and found.end() - found.start() >= (end - start) // 2 else b""


def _find_depth(line: bytes | bytearray, marked: Pattern[bytes]) -> int:
    """The depth of a heading; 0 if the line is not a heading."""
    if b"#" in line and (found := marked.match(line)):
        return len(found[1])
    if b".. _" in line and _ANCHOR.match(line):
        return _ANCHOR_DEPTH
    return 6 if line[0] in _HEADING_STARTS and (_NUMBERED.match(line) or _CAPITALS.match(line)) else 0


_MIN_LINE_CHARS = 50
"""The average length of a line of running text, wrapped or not."""
_MIN_WRAPPED_SHARE = 0.07
"""If this share of lines continues on the next one, short lines are headings, lists and examples among running text."""
_MIN_TITLES, _MIN_TITLE_SHARE = 2, 0.02


def _is_prose(sample: Sample) -> bool:
    lines = sample.lines
    if not lines:
        return True
    if any("\x1b[" in line for line in lines):
        return False
    has_long_lines = sum(map(len, lines)) >= _MIN_LINE_CHARS * len(lines)
    if sample.is_wordy and (has_long_lines or sample.wrapped_share >= _MIN_WRAPPED_SHARE):
        return True
    headings = sum(_MARKED_LINE.match(line.encode("utf-8", "replace")) is not None for line in lines)
    ruled = any(map(MARKDOWN_RULE.match, lines)) and sum(line[:1] == "|" for line in lines) > 0.3 * len(lines)
    return ruled or (headings >= _MIN_TITLES and headings > _MIN_TITLE_SHARE * len(lines))


_PROSE_STARTS = regex(rb"\n\s*\n"), regex(rb"\n")
PROSE = Kind(
    "prose",
    _is_prose,
    _cut_prose,
    Traits(is_running_text=True, has_context=True, has_topics=True, memory_per_byte=2, layout="paragraphs"),
    find_start=find_first(*_PROSE_STARTS),
)


_TAG = regex(rb"(?i)<(?:t[drh]|p|div|a|li|ul|span|table|br|h[1-6]|b|i|body|head|meta)(?:[\s/][^<>]{0,400})?>")
_DOCTYPE = regex(rb"(?is)\s*+(?:<!--.*?-->\s*+)*+<(?:!doctype\s+html|html)\b")
_MAX_BYTES_PER_TAG = 700


def _is_html(sample: Sample) -> bool:
    head = sample.head
    if head.lstrip()[:5] == b"<?xml" and b"<html" not in head[:2_000]:
        return False
    if _DOCTYPE.match(head):
        return True
    if head.count(b"<") * _MAX_BYTES_PER_TAG <= len(head) or len(_TAG.findall(head)) * _MAX_BYTES_PER_TAG <= len(head):
        return False
    # Even many tags may be in comments, strings, messages and Markdown tables.
    others = (are_matches, has_definitions, are_messages)
    is_other = any(recognises(sample) for recognises in others) or any(map(is_rule, sample.lines))
    return head.lstrip().startswith(b"<") or not is_other


_HTML_STARTS = (regex(rb"(?i)(?=<(?:tr|p|li|div|h[1-6]|table|ul|ol|dl|section|article)[\s>])"), regex(rb">"))
HTML = Kind(
    "html",
    _is_html,
    _cut_page,
    Traits(is_markup=True, has_context=True, memory_per_byte=8, layout="page"),
    strip_tags,
    find_first(*_HTML_STARTS),
    find_hidden,
)
