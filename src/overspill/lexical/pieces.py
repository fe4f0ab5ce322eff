"""Searches large texts piece by piece, because a call of a matcher lets no other thread run."""

from __future__ import annotations

from collections.abc import Iterator

from overspill.tables.table import Text
from overspill.text.patterns import Pattern, find_spans

_PIECE_BYTES = 1 << 20
_MAX_WORD_BYTES = 4_096
_WORD_ENDS = (b"\n", b" ", b'"', b",", b">")


def iterate_pieces(text: Text, start: int, end: int) -> Iterator[tuple[int, int]]:
    """Cuts a span at line ends or, in long lines, between words."""
    while end - start > _PIECE_BYTES:
        cut = start + _PIECE_BYTES
        tail = text[cut - _MAX_WORD_BYTES : cut]
        ends = (tail.rfind(mark) for mark in _WORD_ENDS)
        cut -= len(tail) - 1 - next((found for found in ends if found >= 0), len(tail) - 1)
        yield start, cut
        start = cut
    if start < end:
        yield start, end


def search_pieces(pattern: Pattern, text: Text, start: int, end: int) -> Iterator[tuple[int, int]]:
    """Where the pattern matches."""
    for piece in iterate_pieces(text, start, end):
        yield from find_spans(pattern, text, *piece)
