"""Cut a document into pieces of equal size that overlap and together hold every byte."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import NamedTuple

from overspill.store.protocols import Reader
from overspill.text.encoding import character_start

_LINE_END = re.compile(rb"\r\n|\n|\r(?!\n)")
_SHIFT_DIVISOR = 20  # a cut moves back to a line end by at most this fraction of a chunk
_MAX_SHIFT_BYTES = 64 * 1024
_MAX_CHARACTER_BYTES = 4
_MAX_SPLIT_ROUNDS = 8


class Span(NamedTuple):
    start: int
    end: int


def count(size_tokens: int, chunk_tokens: int, overlap_percent: int) -> int:
    """How many chunks of at most `chunk_tokens` it takes, overlaps included."""
    if size_tokens <= chunk_tokens:
        return 1
    overlap = overlap_percent / 100
    return math.ceil((size_tokens / chunk_tokens - overlap) / (1 - overlap))


def plan(reader: Reader, size_tokens: int, chunk_tokens: int, overlap_percent: int) -> tuple[Span, ...]:
    """Cut between characters, at a line end where one is near. Reads only the bytes around the cuts."""
    return _cut(reader, Span(0, reader.size), count(size_tokens, chunk_tokens, overlap_percent), overlap_percent)


def refine(
    reader: Reader, spans: tuple[Span, ...], chunk_tokens: int, overlap_percent: int, tokens: Callable[[Span], int]
) -> tuple[Span, ...]:
    """Cut a chunk again where it holds more tokens per byte than the document does on average."""
    for _ in range(_MAX_SPLIT_ROUNDS):
        counts = [count(tokens(span), chunk_tokens, overlap_percent) for span in spans]
        if max(counts) == 1:
            break
        pieces = zip(spans, counts, strict=True)
        spans = tuple(piece for span, parts in pieces for piece in _cut(reader, span, parts, overlap_percent))
    return spans


def _cut(reader: Reader, whole: Span, parts: int, overlap_percent: int) -> tuple[Span, ...]:
    if parts <= 1 or whole.start == whole.end:
        return (whole,)
    overlap = overlap_percent / 100
    length = (whole.end - whole.start) / (parts - (parts - 1) * overlap)
    shift = min(int(length / _SHIFT_DIVISOR), _MAX_SHIFT_BYTES)
    spans: list[Span] = []
    for part in range(parts):
        start = whole.start + int(part * length * (1 - overlap))
        end = math.ceil(whole.start + part * length * (1 - overlap) + length)
        first = _find_cut(reader, start, shift) if part else whole.start
        last = _find_cut(reader, end, shift) if part < parts - 1 else whole.end
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
