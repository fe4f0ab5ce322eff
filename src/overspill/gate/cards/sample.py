"""The sample that a card is made from: all of a small output, or the beginning, the end and some lines between of a large one."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from functools import cached_property
from itertools import accumulate
from random import Random

from msgspec import Struct

from overspill.lexical.failures import find_giving_up
from overspill.text.lines import count_line_ends, join_spans
from overspill.types import Size

MAX_WHOLE_BYTES = 256 << 10
"""A larger output is sampled, to limit the time for its card."""
_HEAD_BYTES, _TAIL_BYTES = 80 << 10, 64 << 10
_MIDDLES, _MIDDLE_BYTES = 4, 8 << 10
_SCANNED_BYTES = 1 << 20
"""How much of each end to search for the place where a program gave up."""
_BEFORE_END_BYTES, _AFTER_END_BYTES = 32 << 10, 8 << 10
_MAX_NUMBERED_LINE_BYTES = 5_000
"""If lines are longer on average, line numbers no longer help to find anything."""
_EXCERPT_BYTES, _MIN_EXCERPT_LINES = (4_000, 2_000, 1_000), 8
"""How much of the beginning, middle and end to read to recognise the kind of text and its header."""
_GAP = b"\n"
_SEED = 0
"""Fixed, to make the same card for the same output."""

Read = Callable[[int, int], bytes]


class Window(Struct, frozen=True):
    """Whole lines from byte `start`, or part of a line longer than the window."""

    start: int
    data: bytes
    lines_before: int | None = 0
    """None if the lines before it were not counted."""


class OutputSample:
    """Windows of an output, joined to one text that the engine can read, with a blank line for each gap."""

    def __init__(self, windows: Sequence[Window], size: Size) -> None:
        self.size = size
        self.windows = windows or (Window(0, b""),)
        self.data = _GAP.join(window.data for window in self.windows)
        self.is_whole = len(self.data) == size.bytes
        self.where = "" if self.is_whole else " in what was read"
        """Qualifies statements that hold only for the part that was read."""
        self.has_end = self.windows[-1].start + len(self.windows[-1].data) == size.bytes
        """False if the last line is longer than a window."""
        self._joints = list(accumulate((len(window.data) + len(_GAP) for window in self.windows[:-1]), initial=0))
        """Where each window begins in `data`."""
        self._counted = (-1, 0, 0)
        """The window and position where the last count of lines ended, and that count."""

    @cached_property
    def excerpt(self) -> bytes:
        """Whole lines from the beginning, the middle and the end, or everything if lines are long."""
        head, middle, tail = _EXCERPT_BYTES
        if self.data.count(b"\n", 0, head) < _MIN_EXCERPT_LINES:
            return self.data
        between, last = self.data[len(self.data) // 2 :][:middle], self.data[-tail:]
        between = between[between.find(b"\n") + 1 : between.rfind(b"\n") + 1]
        return self.data[: self.data.rfind(b"\n", 0, head) + 1] + between + last[last.find(b"\n") + 1 :]

    def locate(self, position: int) -> str:
        """The place in the output of a position in `data`: `L12`, or byte `@4096` if lines are too long or were not counted."""
        number = bisect_right(self._joints, position) - 1
        window, inside = self.windows[number], position - self._joints[number]
        if window.lines_before is None or self.size.bytes > _MAX_NUMBERED_LINE_BYTES * self.size.lines:
            return f"@{window.start + inside}"
        last, reached, lines = self._counted
        if last != number or reached > inside:
            reached, lines = 0, window.lines_before
        self._counted = number, inside, lines + count_line_ends(window.data[reached:inside])
        return f"L{self._counted[2] + 1}"

    def begin(self, most_bytes: int) -> OutputSample:
        """A sample of only the first lines, or of part of the first line."""
        data = self.windows[0].data
        part = data if len(data) <= most_bytes else data[: data.rfind(b"\n", 0, most_bytes) + 1] or data[:most_bytes]
        return OutputSample((Window(0, part),), self.size)


def draw(first: int, last: int, most: int) -> Sequence[int]:
    """All numbers from `first` to `last` - 1, or at most `most`, drawn at random: with equal steps, periodic data is misread."""
    step = max(1, -(-(last - first) // most))
    if step == 1:
        return range(first, last)
    drawn = Random(_SEED).random  # noqa: S311  # not a secret
    return [start + int(drawn() * min(step, last - start)) for start in range(first, last, step)]


def take_sample(read: Read, size: Size, *, seeks_failure: bool = False) -> OutputSample:
    """`seeks_failure`: include the lines where a program first says that it gave up."""
    total = size.bytes
    if total <= MAX_WHOLE_BYTES:
        return OutputSample((Window(0, read(0, total)),), size)
    starts = draw(_HEAD_BYTES, total - _TAIL_BYTES - _MIDDLE_BYTES, _MIDDLES)
    spans = [(0, _HEAD_BYTES), (total - _TAIL_BYTES, total), *((start, start + _MIDDLE_BYTES) for start in starts)]
    searched = (0, total - _SCANNED_BYTES) if total > _SCANNED_BYTES else (0,)
    for begin in searched if seeks_failure else ():
        if (found := find_giving_up(read(begin, min(begin + _SCANNED_BYTES, total)))) >= 0:
            spans.append((max(0, begin + found - _BEFORE_END_BYTES), min(total, begin + found + _AFTER_END_BYTES)))
            break
    windows = [_read_lines(read, size, *span) for span in join_spans(spans)]
    return OutputSample([window for window in windows if window.data], size)


def _read_lines(read: Read, size: Size, start: int, end: int) -> Window:
    """Reads whole lines, except at the ends of the output. Skips a line longer than the window, unless it is the first."""
    data, is_last = read(start, end), end == size.bytes
    if not start:
        return Window(0, data if is_last else data[: data.rfind(b"\n") + 1] or data)
    first = data.find(b"\n") + 1 or len(data)
    kept = data[first : len(data) if is_last else data.rfind(b"\n") + 1]
    lines = size.lines - count_line_ends(kept) - (not kept.endswith((b"\n", b"\r")))
    return Window(start + first, kept, lines if is_last else None)
