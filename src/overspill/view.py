"""Where lines and characters stand in stored bytes. Nothing here changes a byte: every position refers to what is stored.

A character is a code point of valid UTF-8; a lone surrogate as Python's `surrogatepass` writes it; or one invalid byte, shown
as U+FFFD. A line ends with LF, CRLF or CR; a trailing line end adds no line.
"""

from __future__ import annotations

import re
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from itertools import islice

from overspill.store.base import Reader
from overspill.text import boundary, characters, line_ends, offset

_BLOCK = 64 * 1024
_LOOK_AHEAD = 3  # bytes that may follow the first one of a character
_LINE_END = re.compile(rb"\r\n|\r|\n")


class View:
    """Positions in the bytes a reader had when the view was made.

    The bytes are passed over once, only as far as somebody asks, and a checkpoint is kept for each block: three numbers for
    64 KiB. Inside a block, positions are counted anew.
    """

    def __init__(self, reader: Reader, block: int = _BLOCK, checkpoints: Iterable[tuple[int, int, int]] = ()) -> None:
        self.bytes = reader.size
        self._reader = reader
        self._block = max(block, _LOOK_AHEAD + 1)
        self._starts = array("Q", [0])
        self._chars = array("Q", [0])
        self._ends = array("Q", [0])
        for start, chars, ends in checkpoints:
            if start <= self.bytes:
                self._starts.append(start)
                self._chars.append(chars)
                self._ends.append(ends)

    @property
    def chars(self) -> int:
        self._pass_over(self.bytes)
        return self._chars[-1]

    @property
    def lines(self) -> int:
        self._pass_over(self.bytes)
        open_line = self.bytes > 0 and self._reader.read(self.bytes - 1, self.bytes) not in (b"\n", b"\r")
        return self._ends[-1] + open_line

    def line_start(self, line: int) -> int:
        """The first byte of a line, counted from 1; past the last line, the end."""
        while self._ends[-1] < line - 1 and self._starts[-1] < self.bytes:
            self._next_block()
        if self._ends[-1] < line - 1:
            return self.bytes
        if line <= 1:
            return 0
        block = bisect_left(self._ends, line - 1) - 1
        data = self._reader.read(self._starts[block], self._starts[block + 1])
        found = next(islice(_LINE_END.finditer(data), line - 2 - self._ends[block], None))
        return self._starts[block] + found.end()

    def line_span(self, first: int, last: int) -> tuple[int, int]:
        """Bytes of the lines first..last, counted from 1, line ends included; clipped to what there is."""
        return self.line_start(first), self.line_start(last + 1)

    def char_span(self, start: int, end: int) -> tuple[int, int]:
        """Bytes of the characters start..end (end excluded), clipped to what there is."""
        return self._char_start(start), self._char_start(end)

    def line_at(self, byte: int) -> int:
        """The line, counted from 1, that the byte belongs to; of the very end, the last line."""
        if byte >= self.bytes:
            return self.lines
        block, head = self._head(byte)
        # The LF of a CRLF still belongs to the line that the CR ends.
        if head.endswith(b"\r") and self._reader.read(byte, byte + 1) == b"\n":
            head = head[:-1]
        return self._ends[block] + line_ends(head) + 1

    def char_at(self, byte: int) -> int:
        """How many characters stand before the one that the byte belongs to."""
        block, head = self._head(byte)
        following = self._reader.read(byte, min(byte + _LOOK_AHEAD, self.bytes))
        return self._chars[block] + characters(head[: boundary(head + following, len(head))])

    def _head(self, byte: int) -> tuple[int, bytes]:
        self._pass_over(byte)
        block = bisect_right(self._starts, byte) - 1
        return block, self._reader.read(self._starts[block], byte)

    def _char_start(self, char: int) -> int:
        while self._chars[-1] <= char and self._starts[-1] < self.bytes:
            self._next_block()
        if self._chars[-1] <= char:
            return self.bytes
        block = bisect_right(self._chars, char) - 1
        data = self._reader.read(self._starts[block], self._starts[block + 1])
        return self._starts[block] + offset(data, char - self._chars[block])

    def _pass_over(self, byte: int) -> None:
        while self._starts[-1] < byte:
            self._next_block()

    def _next_block(self) -> None:
        start = self._starts[-1]
        data = self._reader.read(start, min(start + self._block + _LOOK_AHEAD, self.bytes))
        end = min(self._block, len(data))
        end = end - 1 if data[end - 1 : end + 1] == b"\r\n" else boundary(data, end)
        data = data[:end]
        self._starts.append(start + end)
        self._chars.append(self._chars[-1] + characters(data))
        self._ends.append(self._ends[-1] + line_ends(data))
