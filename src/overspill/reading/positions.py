"""Finds lines and characters in stored bytes. Every position refers to the bytes as stored.

A character is a code point of valid UTF-8; a lone surrogate as Python's `surrogatepass` writes it; or one invalid byte, shown
as U+FFFD. A line ends with LF, CRLF or CR; a trailing line end adds no line.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable
from itertools import accumulate
from operator import attrgetter
from threading import Lock
from typing import NamedTuple

from overspill.store.protocols import Reader
from overspill.text.encoding import byte_offset, character_start, count_characters
from overspill.text.lines import count_line_ends

_BLOCK_BYTES = 64 * 1024
_MAX_CONTINUATION_BYTES = 3  # bytes after the first byte of a character
_MAX_MARK_GAP_BYTES = 2 << 20  # a wider gap would make every look-up slow


class Mark(NamedTuple):
    """A position between two blocks, and how many characters and line ends precede it."""

    byte: int
    chars: int
    ends: int


class _Block(NamedTuple):
    """The bytes from one mark to the next, and where in them lines begin: behind each line end."""

    mark: Mark
    size: int
    starts: list[int]


_BYTE, _CHARS, _ENDS = attrgetter("byte"), attrgetter("chars"), attrgetter("ends")


class View:
    """Positions in the bytes that a reader had when the view was made. Thread-safe.

    The bytes are scanned once, only as far as needed, and each block of 64 KiB leaves a mark of three numbers. Lines are looked
    up in one block at a time, and most look-ups are in the block of the last one. `checkpoints` are marks made earlier: (bytes,
    characters, line ends).
    """

    def __init__(self, reader: Reader, block: int = _BLOCK_BYTES, checkpoints: Iterable[tuple[int, int, int]] = ()) -> None:
        self.bytes = reader.size
        self._reader = reader
        self._block = max(block, _MAX_CONTINUATION_BYTES + 1)
        self._marks = [Mark(0, 0, 0)]
        for place in checkpoints:
            if (
                place[0] > self.bytes or place[0] - self._marks[-1].byte > _MAX_MARK_GAP_BYTES
            ):  # blocks after the last checkpoint are scanned one by one
                break
            self._marks.append(Mark(*place))
        self._growing = Lock()
        self._last = _Block(Mark(-1, 0, 0), 0, [])
        """The block of the last look-up."""

    @property
    def stored_bytes(self) -> int:
        """The size of the stored output. A view of something else, such as a redacted text, overrides this and the next four."""
        return self.bytes

    def to_stored(self, byte: int, *, is_end: bool = False) -> int:
        """Converts a byte position to one in the stored output. `is_end`: the end of a range, including hidden bytes there."""
        return byte

    def from_stored(self, byte: int, *, is_end: bool = False) -> int:
        return byte

    def cut_outside(self, start: int, end: int) -> int:
        """Moves the end of a piece to a place that is also a position in the stored output."""
        return end

    def hides(self, start: int, end: int) -> bool:
        """Whether the bytes between two positions differ from the stored bytes."""
        return False

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
        block = self._read(*self._find_gap(line - 1, _ENDS))
        return block.mark.byte + block.starts[line - 2 - block.mark.ends]

    def line_span(self, first: int, last: int) -> tuple[int, int]:
        """The bytes of lines first..last, counted from 1, including line ends. A range past the end is clipped."""
        return self.line_start(first), self.line_start(last + 1)

    def char_span(self, start: int, end: int) -> tuple[int, int]:
        """The bytes of characters start..end, excluding `end`. A range past the end is clipped."""
        return self._char_start(start), self._char_start(end)

    def line_at(self, byte: int) -> int:
        """The line that contains the byte, counted from 1. For the end of the output, this is the last line."""
        return self.find_line(byte)[0]

    def find_line(self, byte: int) -> tuple[int, int]:
        """The line that contains the byte, as above, and the first byte of this line."""
        if byte >= self.bytes:
            return (last := self.lines), self.line_start(last)
        if byte <= 0:
            return 1, 0
        block = self._last
        if not 0 <= byte - block.mark.byte < block.size:
            self._scan_to(byte + 1)
            block = self._read(*self._find_gap(byte + 1, _BYTE))
        ends = bisect_right(block.starts, byte - block.mark.byte)
        line = block.mark.ends + ends + 1
        return line, block.mark.byte + block.starts[ends - 1] if ends else self.line_start(line)

    def char_at(self, byte: int) -> int:
        """The number of characters before the one that contains the byte."""
        self._scan_to(byte)
        last = self._marks[-1]
        mark = last if last.byte == byte else self._find_gap(byte + 1, _BYTE)[0]
        head = self._reader.read(mark.byte, byte)
        following = self._reader.read(byte, min(byte + _MAX_CONTINUATION_BYTES, self.bytes))
        return mark.chars + count_characters(head[: character_start(head + following, len(head))])

    def _char_start(self, char: int) -> int:
        while (last := self._marks[-1]).chars <= char:
            if last.byte >= self.bytes:
                return self.bytes
            self._grow(last)
        before, after = self._find_gap(char + 1, _CHARS)
        return before.byte + byte_offset(self._reader.read(before.byte, after.byte), char - before.chars)

    def _read(self, before: Mark, after: Mark) -> _Block:
        size = after.byte - before.byte
        if (block := self._last).mark is not before or block.size != size:
            data = self._reader.read(before.byte, after.byte)
            starts = list(accumulate(map(len, data.splitlines(keepends=True))))  # also behind a last line without an end
            self._last = block = _Block(before, size, starts if data.endswith((b"\n", b"\r")) else starts[:-1])
        return block

    def _find_gap(self, wanted: int, key: Callable[[Mark], int]) -> tuple[Mark, Mark]:
        """The last mark below `wanted` and the next one. If checkpoints are far apart, first scans the bytes between them."""
        marks = self._marks
        at = bisect_left(marks, wanted, key=key) - 1
        if marks[at + 1].byte - marks[at].byte > 2 * self._block:
            with self._growing:
                marks = self._marks
                at = bisect_left(marks, wanted, key=key) - 1
                between, end = [marks[at]], marks[at + 1].byte
                while between[-1].byte < end:
                    between.append(self._after(between[-1], end))
                # Make a new list, because other threads hold indexes into the old one.
                self._marks = marks = [*marks[:at], *between[:-1], *marks[at + 1 :]]
            at = bisect_left(marks, wanted, key=key) - 1
        return marks[at], marks[at + 1]

    def _scan_to(self, byte: int) -> None:
        while (last := self._marks[-1]).byte < byte:
            self._grow(last)

    def _grow(self, last: Mark) -> None:
        with self._growing:
            if self._marks[-1] is last:
                self._marks.append(self._after(last, self.bytes))

    def _after(self, mark: Mark, limit: int) -> Mark:
        data = self._reader.read(mark.byte, min(mark.byte + self._block + _MAX_CONTINUATION_BYTES, limit))
        end = min(self._block, len(data))
        end = end - 1 if data[end - 1 : end + 1] == b"\r\n" else character_start(data, end)
        data = data[:end]
        return Mark(mark.byte + end, mark.chars + count_characters(data), mark.ends + count_line_ends(data))
