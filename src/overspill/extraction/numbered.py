"""Number the lines that a model reads, so that it can name its sources instead of copying them.

A line that is too long to be a source counts as several.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple, Protocol

from overspill.extraction.chunks import Span
from overspill.text.encoding import character_start, decode, encode

_MAX_LINE_BYTES = 480
_MAX_SEGMENT_BYTES = 240
_LINE = re.compile(rb"[^\r\n]+")
_GAP = "…"
_MAX_REACH_BYTES = 4096
"""How far apart two words of a shown line may be in the stored bytes, with tags between them."""


class NumberedLine(NamedTuple):
    span: Span
    text: str


class CitableLines(Protocol):
    """Lines that a model has seen with their numbers."""

    def find(self, numbers: Iterable[int]) -> list[NumberedLine]:
        """The lines with these numbers. Numbers of other lines are ignored."""
        ...


class NumberedLines:
    """Lines in groups, with a mark where something between two groups is not shown."""

    def __init__(self, groups: Iterable[Sequence[NumberedLine]]) -> None:
        self.lines: list[NumberedLine] = []
        parts: list[str] = []
        for group in groups:
            if parts and group:
                parts.append(_GAP)
            for line in group:
                self.lines.append(line)
                parts.append(f"{len(self.lines)}| {line.text}")
        self.text = "\n".join(parts)

    def find(self, numbers: Iterable[int]) -> list[NumberedLine]:
        """Numbers count from 1."""
        return [self.lines[number - 1] for number in dict.fromkeys(numbers) if 1 <= number <= len(self.lines)]


def split_lines(data: bytes, start: int = 0) -> list[NumberedLine]:
    """The lines of stored bytes that begin at `start`, without their ends and without blank ones."""
    return [
        NumberedLine(Span(start + low, start + high), decode(data[low:high]))
        for found in _LINE.finditer(data)
        if found[0].strip()
        for low, high in _cut(data, *found.span())
    ]


def split_segments(data: bytes, start: int = 0) -> list[NumberedLine]:
    """Neighbouring lines as one as long as they are short: in a long document, a number for each would cost too much."""
    segments: list[NumberedLine] = []
    for line in split_lines(data, start):
        before = segments[-1].span if segments else None
        if before and line.span.end - before.start <= _MAX_SEGMENT_BYTES:
            span = Span(before.start, line.span.end)
            segments[-1] = NumberedLine(span, decode(data[span.start - start : span.end - start]))
        else:
            segments.append(line)
    return segments


def align_lines(shown: str, data: bytes, start: int = 0) -> list[NumberedLine]:
    """The lines of a passage as the engine shows it, each with the stored bytes behind it."""
    lines: list[NumberedLine] = []
    reached = 0
    for line in split_lines(encode(shown)):
        low, high = _find_words(line.text, data, reached)
        lines.append(NumberedLine(Span(start + low, start + high), line.text))
        reached = high
    return lines


def _cut(data: bytes, start: int, end: int) -> Iterable[tuple[int, int]]:
    """At a blank or a comma where there is one."""
    while end - start > _MAX_LINE_BYTES:
        limit = start + _MAX_LINE_BYTES
        cut = max(data.rfind(b" ", start, limit), data.rfind(b",", start, limit)) + 1
        if cut <= start + _MAX_LINE_BYTES // 2:
            cut = start + character_start(data[start : limit + 4], _MAX_LINE_BYTES)
        yield start, cut
        start = cut
    yield start, end


def _find_words(text: str, data: bytes, reached: int) -> tuple[int, int]:
    """From the first to the last of its words that are there, in this order. Without any, all that is left of the passage."""
    wanted = encode(text)
    exact = data.find(wanted, reached)
    if exact >= 0:
        return exact, exact + len(wanted)
    first, at = -1, reached
    for word in wanted.split():
        place = data.find(word, at, len(data) if first < 0 else at + _MAX_REACH_BYTES)
        if place >= 0:
            first = place if first < 0 else first
            at = place + len(word)
    return (first, at) if first >= 0 else (reached, len(data))
