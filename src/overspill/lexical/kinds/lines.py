"""Splits text into lines and paragraphs, and makes records of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from overspill.lexical.outline import Outline
from overspill.tables.table import Text
from overspill.text import pieces
from overspill.text.lines import FILLERS, end_long_line
from overspill.text.regex import Pattern, escape, regex

_SOFT_BREAK = regex(rb"(?<=[.;!?:,)\]}>])\s+|\s{2,}|(?<=,)(?=\")|(?<=\|) ")

_MAX_CHARACTER_BYTES = 4
_VISIBLE = regex(rb"[^ \t\r\n\v" + escape(FILLERS) + rb"]")
"""Anything but white space and filler. A form feed counts as visible."""


def skip_blank_lines(text: Text, start: int, end: int) -> Iterator[tuple[int, int]]:
    """The lines of a span without the blank ones, which are many in the text of a web page. Very long blank lines may remain."""
    while start < end:
        stop = min(start + pieces.PIECE_BYTES, end)
        found = _VISIBLE.search(text, start, stop)
        visible = found.start() if found else stop
        line_start = text.rfind(b"\n", start, visible) + 1
        if found is None and (line_start or stop == end):
            start = line_start if stop < end else end
            continue
        following = text.find(b"\n", visible, stop) + 1 or end_long_line(text, stop, end)
        yield line_start or start, following
        start = following


def find_line_start(window: bytes) -> int:
    return window.find(b"\n") + 1 or -1


def find_first(*patterns: Pattern[bytes]) -> Callable[[bytes], int]:
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
        cut = start + limit
        soft = [found.end() for found in _SOFT_BREAK.finditer(text, start + limit // 3, cut)]
        stops = [position for position in soft if text[position - 2 : position - 1] in b".;!?"]
        space = max(text.rfind(mark, start + limit // 3, cut) for mark in (b" ", b"\n"))
        if stops or soft:
            cut = (stops or soft)[-1]
        elif space >= 0:
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
