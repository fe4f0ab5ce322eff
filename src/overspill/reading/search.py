"""Finds hits in stored bytes, block by block, without collecting them.

A hit is one row of an answer: a line with a match or, in a line too long to show, the surroundings of the match.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator
from itertools import chain
from typing import NamedTuple

from overspill.errors import BadRequest
from overspill.text import patterns
from overspill.text.encoding import character_start, make_searchable
from overspill.text.humanize import quote_line
from overspill.text.patterns import Pattern
from overspill.text.regex import regex

_ACROSS_LINES = (
    "A pattern matches within one line, so it cannot contain a line end, \\A or \\z. Search for one of the lines with ^ and $, "
    "and ask for more context."
)
# Excluding a line end, as in [^\n]*, is harmless.
_EXCLUDING_CLASS = regex(r"(?s)\[\^(?:[^\]\\]++|\\.)*+(?:\]|\\?\Z)")
_LINE_END_OR_TEXT_EDGE = regex(r"[\r\n]|(?<!\\)(?:\\\\)*(?:\\[nrAz]|\(\?[a-zA-Z]*-[a-zA-Z]*m)")
_AT_LINES = "(?m)"
_FIRST_BLOCK_BYTES = 64 * 1024
_MAX_BLOCK_BYTES = 4 * 1024 * 1024
_BLOCK_GROWTH = 4
_FIRST_PIECE_BYTES = 4 * 1024
_MAX_PIECE_BYTES = 64 * 1024
_LINE_END = regex(rb"[\r\n]")
_CR_TO_LF = bytes.maketrans(b"\r", b"\n")
_LF_BYTE, _CR_BYTE = b"\n\r"


def compile_pattern(pattern: str, *, ignore_case: bool, literal: bool) -> Pattern:
    """Compile a model's pattern, which matches within lines of valid UTF-8: no class or dot matches a line end, and ^ and $ match
    at LF. Raises BadRequest if RE2 refuses it or it can never match within a line."""
    checked = pattern if literal else _EXCLUDING_CLASS.sub("", pattern)
    if re.search(r"[\r\n]", checked) if literal else _LINE_END_OR_TEXT_EDGE.search(checked):
        raise BadRequest(_ACROSS_LINES)
    spelled = (pattern if literal else _AT_LINES + pattern).encode("utf-8", "surrogatepass")
    try:
        return patterns.compile_pattern(spelled, utf8=True, literal=literal, ignore_case=ignore_case, within_lines=True)
    except patterns.PatternError as error:
        reason = quote_line(str(error).replace(_AT_LINES, "", 1))
        raise BadRequest(f"The pattern cannot be used: {reason}. Look-around and backreferences are not supported.") from None


def find_occurrences(buffer: memoryview, needle: bytes) -> Iterator[int]:
    """The start of every occurrence, byte for byte, without overlaps."""
    return (match.start() for match in patterns.compile_pattern(needle, literal=True).finditer(buffer))


class Hit(NamedTuple):
    """Positions: where a match begins, where the shown part of its line ends, and where the search continues."""

    start: int
    end: int
    next: int


class Search:
    """Searches from `start`. `reached` is how far it has come."""

    def __init__(
        self, buffer: memoryview, pattern: Pattern, start: int, *, line_start: int, reach: int, block: int = _MAX_BLOCK_BYTES
    ) -> None:
        self.reached = start
        self._buffer = buffer
        self._pattern = pattern
        self._line_start = line_start
        self._reach = reach
        self._max_block = block
        self._block = min(block, _FIRST_BLOCK_BYTES)  # small, because many searches end with their first page

    def hits(self) -> Iterator[Hit]:
        return chain.from_iterable(self.blocks())

    def blocks(self) -> Iterator[Iterator[Hit]]:
        """The hits of one block after the other, for a caller that looks at the clock between them."""
        start = self._line_start
        while self.reached < len(self._buffer):
            end, following = self._whole_lines(start)
            yield self._hits_in(start, end)
            self.reached = start = following
            self._block = min(self._block * _BLOCK_GROWTH, self._max_block)

    def _hits_in(self, start: int, end: int) -> Iterator[Hit]:
        text = _normalize_block(self._buffer[start:end])
        at, size, reach = self.reached - start, end - start, self._reach
        while at <= size and (spans := patterns.find_groups(self._pattern, text, at, size)):
            first, last = spans[0]
            if first == last and bytes(self._buffer[start + first - 1 : start + first + 1]) == b"\r\n":
                at = first + 1  # CR and LF have no line between them
                continue
            far = max(last, first + reach)
            line_end = _LINE_END.search(text, last, far + 1)
            stop = line_end.start() if line_end else size
            shown = stop
            if stop > first + reach:  # between two characters
                before = max(first + reach - 3, 0)
                shown = before + character_start(bytes(text[before : first + reach + 3]), first + reach - before)
            at = stop + 1 if stop <= far else max(last, shown)
            yield Hit(start + first, start + shown, start + at)

    def _whole_lines(self, start: int) -> tuple[int, int]:
        """The end of a block of whole lines, without its last line end, and the start of the next block."""
        size = len(self._buffer)
        at = _line_end(self._buffer, min(start + self._block, size - 1))
        if at == size:
            return size, size
        if self._buffer[at] == _CR_BYTE:
            return at, at + 2 if at + 1 < size and self._buffer[at + 1] == _LF_BYTE else at + 1
        return at - 1 if at > start and self._buffer[at - 1] == _CR_BYTE else at, at + 1


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
