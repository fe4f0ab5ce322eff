"""Where lines and characters stand in stored bytes. Nothing here changes a byte: every position refers to what is stored.

A character is a code point of valid UTF-8; a lone surrogate as Python's `surrogatepass` writes it; or one invalid byte, shown
as U+FFFD. A line ends with LF, CRLF or CR; a trailing line end adds no line.
"""

from __future__ import annotations

import re
from array import array
from bisect import bisect_left, bisect_right
from itertools import islice

from overspill.store.base import Reader

_BLOCK = 64 * 1024
_LOOK_AHEAD = 3  # bytes that may follow the first one of a character
_REPLACEMENT = "\ufffd"

# Invalid bytes come out of `surrogateescape` one by one as U+DC80…U+DCFF, an encoded lone surrogate as three of them.
_ESCAPED_SURROGATE = re.compile("(\udced[\udca0-\udcbf][\udc80-\udcbf])")
_ESCAPED_BYTE = re.compile("[\udc80-\udcff]")
_SURROGATE = re.compile("[\ud800-\udfff]")
_LINE_END = re.compile(rb"\r\n|\r|\n")


def decode(data: bytes) -> str:
    """Text with exactly one character for each character of the view, so that positions hold."""
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        parts = _ESCAPED_SURROGATE.split(data.decode("utf-8", "surrogateescape"))
    parts[::2] = [_ESCAPED_BYTE.sub(_REPLACEMENT, part) for part in parts[::2]]
    parts[1::2] = [part.encode("utf-8", "surrogateescape").decode("utf-8", "surrogatepass") for part in parts[1::2]]
    return "".join(parts)


def clean(text: str) -> str:
    """On its way to a model: a lone surrogate becomes U+FFFD. Control characters stay, they are what the tool said."""
    return _SURROGATE.sub(_REPLACEMENT, text)


def searchable(data: bytes) -> bytes:
    """Valid UTF-8 (lone surrogates allowed) of the same length: each invalid byte becomes the control character SUBSTITUTE."""
    parts = _ESCAPED_SURROGATE.split(data.decode("utf-8", "surrogateescape"))
    parts[::2] = [_ESCAPED_BYTE.sub("\x1a", part) for part in parts[::2]]
    return "".join(parts).encode("utf-8", "surrogateescape")


def boundary(data: bytes, at: int) -> int:
    """`at`, or the start of the character that it lies inside of; data has to go on for three bytes after it, or to its end."""
    for back in range(1, min(_LOOK_AHEAD, at) + 1):
        lead = data[at - back]
        if lead >= 0xC0:
            length = 2 if lead < 0xE0 else 3 if lead < 0xF0 else 4
            character = data[at - back : at - back + length]
            return at - back if len(character) == length > back and _characters(character) == 1 else at
        if lead < 0x80:
            break
    return at


def offset(data: bytes, chars: int) -> int:
    """How many bytes the first `chars` characters of data take."""
    if data.isascii():
        return min(chars, len(data))
    escaped = data.decode("utf-8", "surrogateescape")
    for found in _ESCAPED_SURROGATE.finditer(escaped):
        if found.start() >= chars:
            break
        chars += 2
    return len(escaped[:chars].encode("utf-8", "surrogateescape"))


class View:
    """Positions in the bytes a reader had when the view was made.

    The bytes are passed over once, only as far as somebody asks, and a checkpoint is kept for each block: three numbers for
    64 KiB. Inside a block, positions are counted anew.
    """

    def __init__(self, reader: Reader, block: int = _BLOCK) -> None:
        self.bytes = reader.size
        self._reader = reader
        self._block = max(block, _LOOK_AHEAD + 1)
        self._starts = array("Q", [0])
        self._chars = array("Q", [0])
        self._ends = array("Q", [0])

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
        return self._ends[block] + _line_ends(head) + 1

    def char_at(self, byte: int) -> int:
        """How many characters stand before the one that the byte belongs to."""
        block, head = self._head(byte)
        following = self._reader.read(byte, min(byte + _LOOK_AHEAD, self.bytes))
        return self._chars[block] + _characters(head[: boundary(head + following, len(head))])

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
        self._chars.append(self._chars[-1] + _characters(data))
        self._ends.append(self._ends[-1] + _line_ends(data))


def _characters(data: bytes) -> int:
    if data.isascii():
        return len(data)
    escaped = data.decode("utf-8", "surrogateescape")
    return len(escaped) - 2 * sum(1 for _ in _ESCAPED_SURROGATE.finditer(escaped))


def _line_ends(data: bytes) -> int:
    # Looking for a CR is much faster than counting, and most outputs have none.
    return data.count(b"\n") + (data.count(b"\r") - data.count(b"\r\n") if b"\r" in data else 0)
