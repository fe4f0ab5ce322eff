"""The pieces of a document that a model reads: chunks of equal size that overlap and together hold every byte, and numbered
lines. The model cites sources by number instead of copying them. A line that is too long to cite is split into several."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple, Protocol

from overspill.store.protocols import Reader
from overspill.text.encoding import character_start, decode, encode
from overspill.text.regex import regex

_LINE_END = regex(rb"\r\n|\n|\r(?!\n)")
_SHIFT_DIVISOR = 20  # a cut moves back to a line end by at most this fraction of a chunk
_MAX_SHIFT_BYTES = 64 * 1024
_MAX_CHARACTER_BYTES = 4
_MAX_ROUNDS = 8
_PIECES_PER_CHUNK = 4  # at least: most tokens have several bytes
_MAX_PIECES = 2048
_SAMPLE_BYTES = 4096  # how much of each piece to count the tokens of


class Span(NamedTuple):
    start: int
    end: int


def count(size_tokens: int, chunk_tokens: int, overlap_percent: int) -> int:
    """How many chunks of at most `chunk_tokens` it takes, overlaps included."""
    if size_tokens <= chunk_tokens:
        return 1
    overlap = overlap_percent / 100
    return math.ceil((size_tokens / chunk_tokens - overlap) / (1 - overlap))


def plan(reader: Reader, chunk_tokens: int, overlap_percent: int, count_tokens: Callable[[Span], int]) -> tuple[Span, ...]:
    """The spans of as few chunks as possible, all with about the same number of tokens. Cuts are at line ends if they are near.

    Tokens are counted piece by piece, since some parts of a document hold more per byte than others.
    """
    density = _Density(reader, chunk_tokens, count_tokens)
    most = max(1, reader.size // _MAX_CHARACTER_BYTES)
    parts = min(most, count(density.tokens, chunk_tokens, overlap_percent))
    spans = _cut(reader, density, parts, overlap_percent)
    for _ in range(_MAX_ROUNDS):
        fullest = max(map(count_tokens, spans))
        if fullest <= chunk_tokens or parts == most:
            break
        parts = min(most, max(parts + 1, math.ceil(parts * fullest / chunk_tokens)))
        spans = _cut(reader, density, parts, overlap_percent)
    return spans


class _Density:
    """How many tokens precede each byte: estimated for pieces, and interpolated inside them."""

    def __init__(self, reader: Reader, chunk_tokens: int, count_tokens: Callable[[Span], int]) -> None:
        self.size = reader.size
        step = max(chunk_tokens // _PIECES_PER_CHUNK, self.size // _MAX_PIECES, _MAX_CHARACTER_BYTES)
        self._ends = [0]
        self._counts = [0.0]
        while (start := self._ends[-1]) < self.size:
            end = min(start + step, self.size)
            sample = min(end, start + _SAMPLE_BYTES)
            self._ends.append(end)
            self._counts.append(self._counts[-1] + count_tokens(Span(start, sample)) * (end - start) / (sample - start))

    @property
    def tokens(self) -> int:
        return round(self._counts[-1])

    def find_byte(self, tokens: float) -> int:
        at = min(max(bisect_left(self._counts, tokens), 1), len(self._counts) - 1)
        low, high = self._counts[at - 1], self._counts[at]
        share = (tokens - low) / (high - low) if high > low else 1.0
        return round(self._ends[at - 1] + (self._ends[at] - self._ends[at - 1]) * min(max(share, 0.0), 1.0))


def _cut(reader: Reader, density: _Density, parts: int, overlap_percent: int) -> tuple[Span, ...]:
    if parts <= 1 or not density.size:
        return (Span(0, density.size),)
    overlap = overlap_percent / 100
    length = density.tokens / (parts - (parts - 1) * overlap)
    spans: list[Span] = []
    for part in range(parts):
        begin = part * length * (1 - overlap)
        start, end = density.find_byte(begin), density.find_byte(begin + length)
        shift = min((end - start) // _SHIFT_DIVISOR, _MAX_SHIFT_BYTES)
        first = _find_cut(reader, start, shift) if part else 0
        last = _find_cut(reader, end, shift) if part < parts - 1 else density.size
        first = min(first, spans[-1].end) if spans else first
        # A chunk shorter than a character or two may turn out empty. Its bytes are then in its neighbours.
        if last > (spans[-1].end if spans else first):
            spans.append(Span(first, last))
    return tuple(spans)


def _find_cut(reader: Reader, at: int, shift: int) -> int:
    """The last line end before `at` and near it; otherwise `at`, or the start of the character there."""
    low = max(at - shift - _MAX_CHARACTER_BYTES, 0)
    data = reader.read(low, at + _MAX_CHARACTER_BYTES)
    ends = [found.end() for found in _LINE_END.finditer(data) if at - shift <= low + found.end() <= at]
    return low + (ends[-1] if ends else character_start(data, min(at - low, len(data))))


_MAX_LINE_BYTES = 480
_MAX_SEGMENT_BYTES = 240
_LINE = regex(rb"[^\r\n]+")
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
        """The lines with these numbers, which count from 1."""
        return [self.lines[number - 1] for number in dict.fromkeys(numbers) if 1 <= number <= len(self.lines)]


def split_lines(data: bytes, start: int = 0) -> list[NumberedLine]:
    """The lines of stored bytes that begin at `start`, without their ends and without blank ones."""
    return [
        NumberedLine(Span(start + low, start + high), decode(data[low:high]))
        for found in _LINE.finditer(data)
        if found[0].strip()
        for low, high in _cut_line(data, *found.span())
    ]


def split_segments(data: bytes, start: int = 0) -> list[NumberedLine]:
    """Like `split_lines`, but merges short neighbouring lines: in a long document, each number costs tokens."""
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


def _cut_line(data: bytes, start: int, end: int) -> Iterable[tuple[int, int]]:
    """The spans of the parts of a long line, cut at a blank or a comma if possible."""
    while end - start > _MAX_LINE_BYTES:
        limit = start + _MAX_LINE_BYTES
        cut = max(data.rfind(b" ", start, limit), data.rfind(b",", start, limit)) + 1
        if cut <= start + _MAX_LINE_BYTES // 2:
            cut = start + character_start(data[start : limit + 4], _MAX_LINE_BYTES)
        yield start, cut
        start = cut
    yield start, end


def _find_words(text: str, data: bytes, reached: int) -> tuple[int, int]:
    """The span from the first to the last of the text's words found in this order. Without any, everything after `reached`."""
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
