"""Finds lines and characters in stored bytes. Every position refers to the bytes as stored.

A character is a code point of valid UTF-8; a lone surrogate as Python's `surrogatepass` writes it; or one invalid byte, shown
as U+FFFD. A line ends with LF, CRLF or CR; a trailing line end adds no line.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from itertools import islice
from operator import attrgetter
from threading import Lock
from typing import NamedTuple

from overspill.store.protocols import Reader
from overspill.text.encoding import byte_offset, character_start, count_characters
from overspill.text.lines import count_line_ends

_BLOCK_BYTES = 64 * 1024
_MAX_CONTINUATION_BYTES = 3  # bytes after the first byte of a character
_MAX_MARK_GAP_BYTES = 2 << 20  # a wider gap would make every look-up slow
_LINE_END = re.compile(rb"\r\n|\r|\n")


class Mark(NamedTuple):
    """A position between two blocks, and how many characters and line ends precede it."""

    byte: int
    chars: int
    ends: int


_BYTE, _CHARS, _ENDS = attrgetter("byte"), attrgetter("chars"), attrgetter("ends")


class View:
    """Positions in the bytes that a reader had when the view was made. Thread-safe.

    The bytes are scanned once, only as far as needed, and each block of 64 KiB leaves a mark of three numbers. Positions inside
    a block are counted again for each look-up. `checkpoints` are marks made earlier: (bytes, characters, line ends).
    """

    def __init__(self, reader: Reader, block: int = _BLOCK_BYTES, checkpoints: Iterable[tuple[int, int, int]] = ()) -> None:
        self.bytes = reader.size
        self._reader = reader
        self._block = max(block, _MAX_CONTINUATION_BYTES + 1)
        self._marks = [Mark(0, 0, 0)]
        for place in checkpoints:
            if (
                place[0] > self.bytes or place[0] - self._marks[-1].byte > _MAX_MARK_GAP_BYTES
            ):  # the rest is scanned block by block
                break
            self._marks.append(Mark(*place))
        self._growing = Lock()

    @property
    def chars(self) -> int:
        self._scan_to(self.bytes)
        return self._marks[-1].chars

    @property
    def lines(self) -> int:
        self._scan_to(self.bytes)
        open_line = self.bytes > 0 and self._reader.read(self.bytes - 1, self.bytes) not in (b"\n", b"\r")
        return self._marks[-1].ends + open_line

    def line_start(self, line: int) -> int:
        """The first byte of a line, counted from 1. Past the last line, this is the end."""
        while (last := self._marks[-1]).ends < line - 1:
            if last.byte >= self.bytes:
                return self.bytes
            self._grow(last)
        if line <= 1:
            return 0
        block = bisect_left(self._marks, line - 1, key=_ENDS) - 1
        before, after = self._marks[block : block + 2]
        data = self._reader.read(before.byte, after.byte)
        found = next(islice(_LINE_END.finditer(data), line - 2 - before.ends, None))
        return before.byte + found.end()

    def line_span(self, first: int, last: int) -> tuple[int, int]:
        """The bytes of lines first..last, counted from 1, including line ends. A range past the end is clipped."""
        return self.line_start(first), self.line_start(last + 1)

    def char_span(self, start: int, end: int) -> tuple[int, int]:
        """The bytes of characters start..end, excluding `end`. A range past the end is clipped."""
        return self._char_start(start), self._char_start(end)

    def line_at(self, byte: int) -> int:
        """The line that contains the byte, counted from 1. For the end of the output, this is the last line."""
        if byte >= self.bytes:
            return self.lines
        mark, head = self._head(byte)
        # The LF of a CRLF belongs to the line that the CR ends.
        if head.endswith(b"\r") and self._reader.read(byte, byte + 1) == b"\n":
            head = head[:-1]
        return mark.ends + count_line_ends(head) + 1

    def char_at(self, byte: int) -> int:
        """The number of characters before the one that contains the byte."""
        mark, head = self._head(byte)
        following = self._reader.read(byte, min(byte + _MAX_CONTINUATION_BYTES, self.bytes))
        return mark.chars + count_characters(head[: character_start(head + following, len(head))])

    def _head(self, byte: int) -> tuple[Mark, bytes]:
        self._scan_to(byte)
        mark = self._marks[bisect_right(self._marks, byte, key=_BYTE) - 1]
        return mark, self._reader.read(mark.byte, byte)

    def _char_start(self, char: int) -> int:
        while (last := self._marks[-1]).chars <= char:
            if last.byte >= self.bytes:
                return self.bytes
            self._grow(last)
        block = bisect_right(self._marks, char, key=_CHARS) - 1
        before, after = self._marks[block : block + 2]
        return before.byte + byte_offset(self._reader.read(before.byte, after.byte), char - before.chars)

    def _scan_to(self, byte: int) -> None:
        while (last := self._marks[-1]).byte < byte:
            self._grow(last)

    def _grow(self, last: Mark) -> None:
        with self._growing:
            if self._marks[-1] is last:
                self._marks.append(self._after(last))

    def _after(self, mark: Mark) -> Mark:
        data = self._reader.read(mark.byte, min(mark.byte + self._block + _MAX_CONTINUATION_BYTES, self.bytes))
        end = min(self._block, len(data))
        end = end - 1 if data[end - 1 : end + 1] == b"\r\n" else character_start(data, end)
        data = data[:end]
        return Mark(mark.byte + end, mark.chars + count_characters(data), mark.ends + count_line_ends(data))
