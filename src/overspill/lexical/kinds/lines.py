"""Splits text into lines and paragraphs, and makes records of them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from overspill.lexical.outline import Outline
from overspill.tables.table import Text
from overspill.text.lines import FILLERS, end_long_line, split_lines
from overspill.text.patterns import Pattern, find_spans
from overspill.text.regex import regex

_STOP = regex(rb"(?s:.*)(?:(?<=[.;!?])\s(?!\s)|(?<=[.;!?],)(?=\"))")
_SOFT_BREAK = regex(rb"(?s:.*)(?:(?<=[.;!?:,)\]}>])\s(?!\s)|\s\s(?!\s)|(?<=,)(?=\")|(?<=\|) (?!\s))")
"""The last gap after a sentence, and the last one after a clause or member."""

_MAX_CHARACTER_BYTES = 4
_INVISIBLE = b" \t\r\n\v" + FILLERS
"""White space and filler. A form feed counts as visible."""


def skip_blank_lines(text: Text, start: int, end: int) -> Iterator[tuple[bytes, int, int]]:
    """The lines of a span without the blank ones, which are many in the text of a web page, and where each starts and ends."""
    for lines in split_lines(text, start, end):
        for line in lines:
            first, start = start, start + len(line)
            if line.strip(_INVISIBLE):
                yield line, first, start


def group_lines(text: Text, start: int, end: int, unusual: Pattern) -> Iterator[tuple[int, int, bool]]:
    """The lines that `unusual` matches, each by itself, and the runs of other lines between them, which are marked False.

    The pattern must match whole lines with their ends. The first line and an unended last line always count as unusual.
    """
    first = end_long_line(text, start, end)
    last = text.rfind(b"\n", first, end) + 1 or first
    if start < first:
        yield start, first, True
    for line_start, line_end in find_spans(unusual, text, first, last) if first < last else ():
        if first < line_start:
            yield first, line_start, False
        yield line_start, line_end, True
        first = line_end
    if first < last:
        yield first, last, False
    if last < end:
        yield last, end, True


def find_line_start(window: bytes) -> int:
    return window.find(b"\n") + 1 or -1


def find_first(*patterns: re.Pattern[bytes]) -> Callable[[bytes], int]:
    """Returns a function that finds where the first matching pattern ends."""

    def find(window: bytes) -> int:
        found = next((match for pattern in patterns if (match := pattern.search(window))), None)
        return found.end() if found else -1

    return find


def between_characters(text: Text, at: int) -> int:
    """This position, or the start of the UTF-8 character that a cut at this position would split."""
    return next((place for place in range(at, at - _MAX_CHARACTER_BYTES, -1) if text[place] & 0xC0 != 0x80), at)


def split_long(text: Text, start: int, end: int, limit: int) -> Iterator[tuple[int, int]]:
    """Splits a span into parts of at most `limit` bytes, if possible after a sentence, clause or member, else after a word."""
    while end - start > limit:
        least, cut = start + limit // 3, start + limit
        if soft := _STOP.match(text, least, cut) or _SOFT_BREAK.match(text, least, cut):
            cut = soft.end()
        elif (space := max(text.rfind(mark, least, cut) for mark in (b" ", b"\n"))) >= 0:
            cut = space + 1
        else:
            cut = max(start + 1, between_characters(text, cut))
        yield start, cut
        start = cut
    yield start, end


def record_long(text: Text, span: tuple[int, int], limit: int, outline: Outline, label: int = -1) -> None:
    """Adds a span as one record, or as several if it is longer than `limit`."""
    if span[1] - span[0] <= limit:
        outline.record(*span, label)
        return
    for part in split_long(text, *span, limit):
        outline.record(*part, label)


class Paragraphs:
    """The headings above the current position, and the open paragraph. Cuts paragraphs longer than `most_bytes`."""

    def __init__(self, text: Text, outline: Outline, most_bytes: int) -> None:
        self.text = text
        self.outline = outline
        self.most_bytes = most_bytes
        self.headings: list[tuple[int, int]] = []
        self.opened = -1
        self.closed = -1

    @property
    def label(self) -> int:
        return self.headings[-1][1] if self.headings else -1

    def heading(self, start: int, end: int, depth: int) -> None:
        """Begins a paragraph with a heading, which applies to everything up to the next heading of its depth."""
        self.end_paragraph()
        while self.headings and self.headings[-1][0] >= depth:
            self.headings.pop()
        self.headings.append((depth, self.outline.label(start, end, self.label)))
        self.line(start, end)

    def line(self, start: int, end: int) -> None:
        if self.opened < 0:
            self.opened = start
        self.closed = end

    def end_paragraph(self) -> None:
        if self.opened >= 0:
            record_long(self.text, (self.opened, self.closed), self.most_bytes, self.outline, self.label)
        self.opened = -1
