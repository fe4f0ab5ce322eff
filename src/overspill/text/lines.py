"""Finding and counting lines, and joining stretches of text. A line ends with LF, CRLF or CR, and with nothing else."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import accumulate, chain, pairwise
from mmap import mmap

from overspill.text import pieces
from overspill.text.regex import regex

FILLERS = bytes((0xFF, 0xFE, 0xC0, 0xC1, *range(0xF5, 0xFE)))
"""Bytes that never occur in UTF-8. They replace removed parts of text."""
_SAMPLE_BYTES = 512
_SHORT_LINE_BYTES = 32
BLANK = b" \t\r\n\f\v" + FILLERS
_LINE = regex(rb"[^\n]*+\n|[^\n]++\Z")
_MIN_SPLIT_BYTES, _MAX_SPLIT_BYTES = 1 << 9, 1 << 16
"""How much to split into lines in one step. Small at first, because some callers need only the next few lines."""


def iterate_lines(text: bytes | bytearray | mmap, start: int, end: int) -> Iterator[tuple[int, int]]:
    """The (start, end) of every line that LF ends, including its line end."""
    return chain.from_iterable(_split_lines(text, start, end))


def _split_lines(text: bytes | bytearray | mmap, start: int, end: int) -> Iterator[Iterator[tuple[int, int]]]:
    for first, stop, is_long in _iterate_steps(text, start, end):
        lines = ((first, stop),) if is_long else pairwise(accumulate(map(len, _LINE.findall(text, first, stop)), initial=first))
        yield iter(lines)


def split_lines(text: bytes | bytearray | mmap, start: int, end: int) -> Iterator[list[bytes]]:
    """Copies of the lines that LF ends, some at a time."""
    return (_LINE.findall(text, first, stop) for first, stop, _ in _iterate_steps(text, start, end))


def _iterate_steps(text: bytes | bytearray | mmap, start: int, end: int) -> Iterator[tuple[int, int, bool]]:
    """Spans of some whole lines, or of a single long one."""
    size = _MIN_SPLIT_BYTES
    while start < end:
        stop = end if start + size >= end else text.rfind(b"\n", start, start + size) + 1
        is_long = not stop
        stop = stop or end_long_line(text, start + size, end)
        yield start, stop, is_long
        start, size = stop, min(2 * size, _MAX_SPLIT_BYTES)


def end_long_line(text: bytes | bytearray | mmap, start: int, end: int) -> int:
    return pieces.find(text, b"\n", start, end) + 1 or end


def join_spans(spans: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """Sorts spans, and joins those that touch or overlap."""
    joined: list[tuple[int, int]] = []
    for start, end in sorted(spans):
        if joined and start <= joined[-1][1]:
            joined[-1] = (joined[-1][0], max(end, joined[-1][1]))
        else:
            joined.append((start, end))
    return joined


def is_blank(line: bytes | bytearray) -> bool:
    return not line.strip(BLANK)


def read_line(text: bytes | bytearray | mmap, start: int, end: int) -> str:
    """A stretch of text as people see it, without filler bytes."""
    return bytes(text[start:end]).translate(None, FILLERS).decode("utf-8", "replace")


def count_line_ends(text: str | bytes) -> int:
    # Searching for a CR is much faster than counting, and most outputs have none.
    if isinstance(text, str):
        return text.count("\n") + (text.count("\r") - text.count("\r\n") if "\r" in text else 0)
    return _count(text, b"\n") + (_count(text, b"\r") - text.count(b"\r\n") if b"\r" in text else 0)


def _count(data: bytes, end: bytes) -> int:
    """The number of line ends. `replace` jumps between them: twice as fast as `count` for usual lines, slower for short ones."""
    has_short_lines = data.count(end, 0, _SAMPLE_BYTES) > _SAMPLE_BYTES // _SHORT_LINE_BYTES
    return data.count(end) if has_short_lines else len(data) - len(data.replace(end, b""))


def count_lines(text: str) -> int:
    """The number of lines. A trailing line end adds no line."""
    return count_line_ends(text) + (text != "" and not text.endswith(("\n", "\r")))


def line_number(text: str | bytes, at: int) -> int:
    """The line that contains position `at`, counted from 1. A line end belongs to the line it ends."""
    inside_crlf = text[at - 1 : at + 1] in ("\r\n", b"\r\n") if at else False
    return count_line_ends(text[:at]) - inside_crlf + 1


def line_and_column(text: str, at: int) -> tuple[int, int]:
    """The line and the column of position `at`, both counted from 1."""
    stop = at - 1 if at and text[at - 1 : at + 1] == "\r\n" else at
    return line_number(text, at), at - max(text.rfind("\n", 0, stop), text.rfind("\r", 0, stop))
