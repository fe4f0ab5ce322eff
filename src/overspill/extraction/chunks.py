"""Cut a document into pieces of equal size that overlap and together hold every byte."""

from __future__ import annotations

import math
import re
from bisect import bisect_left
from collections.abc import Callable
from typing import NamedTuple

from overspill.store.protocols import Reader
from overspill.text.encoding import character_start

_LINE_END = re.compile(rb"\r\n|\n|\r(?!\n)")
_SHIFT_DIVISOR = 20  # a cut moves back to a line end by at most this fraction of a chunk
_MAX_SHIFT_BYTES = 64 * 1024
_MAX_CHARACTER_BYTES = 4
_MAX_ROUNDS = 8
_PIECES_PER_CHUNK = 4  # at least: most tokens have several bytes
_MAX_PIECES = 2048
_SAMPLE_BYTES = 4096  # counted of each piece


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
    """As few chunks as it takes, with equally many tokens. Cuts are between characters, at a line end where one is near.

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
        # A chunk shorter than a character or two may turn out empty; its bytes are in its neighbours.
        if last > (spans[-1].end if spans else first):
            spans.append(Span(first, last))
    return tuple(spans)


def _find_cut(reader: Reader, at: int, shift: int) -> int:
    """The last line end before `at` and near it; otherwise `at`, or the start of the character there."""
    low = max(at - shift - _MAX_CHARACTER_BYTES, 0)
    data = reader.read(low, at + _MAX_CHARACTER_BYTES)
    ends = [found.end() for found in _LINE_END.finditer(data) if at - shift <= low + found.end() <= at]
    return low + (ends[-1] if ends else character_start(data, min(at - low, len(data))))
