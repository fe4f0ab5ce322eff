"""Regular expressions from a model, run in linear time."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TypeAlias

from overspill.errors import BadRequest
from overspill.text import patterns
from overspill.text.humanize import quote_line

_UNUSABLE = "The pattern cannot be used: {reason}. Look-around and backreferences are not supported."
_ACROSS_LINES = (
    "A pattern matches within one line, so it cannot contain a line end, \\A or \\z. Search for one of the lines with ^ and $, "
    "and ask for more context."
)
# Excluding a line end, as in [^\n]*, is harmless.
_EXCLUDING_CLASS = re.compile(r"\[\^(?:[^\]\\]++|\\.)*+(?:\]|\\?\Z)", re.DOTALL)
_LINE_END = re.compile(r"[\r\n]")
_LINE_END_OR_TEXT_EDGE = re.compile(r"[\r\n]|(?<!\\)(?:\\\\)*(?:\\[nrAz]|\(\?[a-zA-Z]*-[a-zA-Z]*m)")


_SPECIAL = re.compile(r"[\\^$.|?*+()\[\]{}]")
_AT_LINES = "(?m)"
_FIRST_PIECE_BYTES = 4 * 1024
_MAX_PIECE_BYTES = 256 * 1024


class LinePattern:
    """Matches within lines of valid UTF-8: no class or dot matches a line end; ^ and $ match at LF."""

    def __init__(self, spelled: str, *, ignore_case: bool, literal: bool) -> None:
        try:
            self._compiled = patterns.compile_pattern(
                spelled.encode("utf-8", "surrogatepass"), utf8=True, literal=literal, ignore_case=ignore_case, within_lines=True
            )
        except patterns.PatternError as error:
            raise BadRequest(_UNUSABLE.format(reason=quote_line(str(error).replace(_AT_LINES, "", 1)))) from None

    def search(self, text: bytes | memoryview, at: int) -> tuple[int, int] | None:
        match = self._compiled.search(text, at)
        return match.span() if match else None


class Literal:
    """Matches a string byte for byte, which is faster."""

    def __init__(self, needle: str) -> None:
        self._needle = needle.encode("utf-8", "surrogatepass")

    def search(self, text: bytes | memoryview, at: int) -> tuple[int, int] | None:
        size, piece = len(self._needle), _FIRST_PIECE_BYTES
        if isinstance(text, bytes):
            found = text.find(self._needle, at)
            return None if found < 0 else (found, found + size)
        while at < len(text):
            found = bytes(text[at : at + piece + size - 1]).find(self._needle)
            if found >= 0:
                return at + found, at + found + size
            at, piece = at + piece, min(2 * piece, _MAX_PIECE_BYTES)
        return None


Pattern: TypeAlias = LinePattern | Literal


def compile_pattern(pattern: str, *, ignore_case: bool, literal: bool) -> Pattern:
    """Raises BadRequest for patterns that RE2 refuses or that can never match within a line."""
    checked = pattern if literal else _EXCLUDING_CLASS.sub("", pattern)
    if (_LINE_END if literal else _LINE_END_OR_TEXT_EDGE).search(checked):
        raise BadRequest(_ACROSS_LINES)
    if pattern and not ignore_case and (literal or not _SPECIAL.search(pattern)):
        return Literal(pattern)
    return LinePattern(pattern if literal else _AT_LINES + pattern, ignore_case=ignore_case, literal=literal)


def find_occurrences(buffer: memoryview, needle: bytes) -> Iterator[int]:
    """The start of every occurrence, byte for byte, without overlaps."""
    return (match.start() for match in patterns.compile_pattern(needle, literal=True).finditer(buffer))
