"""Finds hits in stored bytes, block by block, without collecting them.

A hit is one row of an answer: a line with a match, or, in a line too long to show, what surrounds the match.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Callable, Iterator
from functools import partial
from typing import NamedTuple

from overspill.reading.pattern import Literal, Pattern
from overspill.text.encoding import character_start, make_searchable

_FIRST_BLOCK_BYTES = 64 * 1024
_MAX_BLOCK_BYTES = 4 * 1024 * 1024
_BLOCK_GROWTH = 4
_FIRST_PIECE_BYTES = 4 * 1024
_MAX_PIECE_BYTES = 256 * 1024
_LINE_END = re.compile(rb"[\r\n]")
_CR_TO_LF = bytes.maketrans(b"\r", b"\n")
_LF_BYTE, _CR_BYTE = b"\n\r"


class Hit(NamedTuple):
    """Where a match begins, where the shown part of its line ends, and where the search continues."""

    start: int
    end: int
    next: int


class Search:
    """Searches from `start` on. `reached` is how far it has got."""

    def __init__(
        self, buffer: memoryview, pattern: Pattern, start: int, *, line_start: int, reach: int, block: int = _MAX_BLOCK_BYTES
    ) -> None:
        self.reached = start
        self._buffer = buffer
        self._pattern = pattern
        self._line_start = line_start
        self._reach = reach
        self._max_block = min(block, _MAX_PIECE_BYTES) if isinstance(pattern, Literal) else block
        self._block = min(block, _FIRST_BLOCK_BYTES)  # small, because many searches end with their first page

    def hits(self) -> Iterator[Hit]:
        start = self._line_start
        while self.reached < len(self._buffer):
            end, following = self._whole_lines(start)
            yield from self._hits_in(start, end)
            self.reached = start = following
            self._block = min(self._block * _BLOCK_GROWTH, self._max_block)

    def _hits_in(self, start: int, end: int) -> Iterator[Hit]:
        text = self._prepare(self._buffer[start:end])
        at, size, reach, search = self.reached - start, end - start, self._reach, self._pattern.search
        find_line_end = _line_end_finder(text)
        while at <= size and (match := search(text, at)):
            first, last = match
            if first == last and bytes(self._buffer[start + first - 1 : start + first + 1]) == b"\r\n":
                at = first + 1  # there is no line between CR and LF
                continue
            far = max(last, first + reach)
            line_end = find_line_end(last, far + 1)
            stop = size if line_end < 0 else line_end
            shown = stop if stop <= first + reach else _between_characters(text, first + reach)
            at = stop + 1 if stop <= far else max(last, shown)
            yield Hit(start + first, start + shown, start + at)

    def _prepare(self, block: memoryview) -> bytes | memoryview:
        if not isinstance(self._pattern, Literal):
            return _normalize_block(block)
        return bytes(block) if len(block) <= 2 * _MAX_PIECE_BYTES else block  # a block that ends with a very long line

    def _whole_lines(self, start: int) -> tuple[int, int]:
        """Where a block of whole lines ends, without its last line end, and where the next block begins."""
        size = len(self._buffer)
        at = _line_end(self._buffer, min(start + self._block, size - 1))
        if at == size:
            return size, size
        if self._buffer[at] == _CR_BYTE:
            return at, at + 2 if at + 1 < size and self._buffer[at + 1] == _LF_BYTE else at + 1
        return at - 1 if at > start and self._buffer[at - 1] == _CR_BYTE else at, at + 1


def _line_end_finder(text: bytes | memoryview) -> Callable[[int, int], int]:
    """Takes a start and an end and returns the place of the first line end between them, or -1."""
    if isinstance(text, bytes) and b"\r" not in text:  # the usual case, and the faster way
        return partial(text.find, b"\n")

    def find(start: int, end: int) -> int:
        found = _LINE_END.search(text, start, end)
        return found.start() if found else -1

    return find


def _line_end(buffer: memoryview, start: int) -> int:
    at, size = start, _FIRST_PIECE_BYTES
    while at < len(buffer):
        piece = bytes(buffer[at : at + size])
        if ends := [found for end in (b"\n", b"\r") if (found := piece.find(end)) >= 0]:  # a pattern takes ten times as long
            return at + min(ends)
        at, size = at + size, min(2 * size, _MAX_PIECE_BYTES)
    return len(buffer)


def _normalize_block(block: memoryview) -> bytes | memoryview:
    """The block as RE2 needs it: valid UTF-8, LF between lines, every byte at its position. Copied only if necessary."""
    at, size, returns = 0, len(block), False
    while at < size:
        end = min(at + _MAX_PIECE_BYTES, size)
        try:
            text, used = codecs.utf_8_decode(block[at:end], "strict", end == size)
        except UnicodeDecodeError:
            return make_searchable(bytes(block)).translate(_CR_TO_LF)
        returns = returns or "\r" in text
        at += used
    return bytes(block).translate(_CR_TO_LF) if returns else block


def _between_characters(text: bytes | memoryview, at: int) -> int:
    start = max(at - 3, 0)
    return start + character_start(bytes(text[start : at + 3]), at - start)
