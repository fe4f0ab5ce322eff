"""What a card is made from: all of a small output; of a large one the beginning, the end, and some lines between them."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from itertools import islice
from random import Random

from msgspec import Struct

from overspill.lexical.failures import find_giving_up
from overspill.tables.table import Span
from overspill.text.lines import count_line_ends
from overspill.types import Size

MAX_WHOLE_BYTES = 256 << 10
"""A larger output is sampled, so that its card takes no longer."""
_HEAD_BYTES = 80 << 10
_TAIL_BYTES = 64 << 10
_MIDDLES = 4
_MIDDLE_BYTES = 8 << 10
_BEFORE_END_BYTES, _AFTER_END_BYTES = 32 << 10, 8 << 10
_SCANNED_BYTES = 1 << 20
"""At each end, searched for where a program gave up."""
_MAX_NUMBERED_LINE_BYTES = 5_000
"""With longer lines on average, line numbers no longer help to find anything."""
_OVERLAP_BYTES = 1 << 10
_GAP = b"\n"
_LINE_ENDS = (b"\n", b"\r")
_SEED = 0
"""So that the same output has the same card."""

Read = Callable[[int, int], bytes]


class Window(Struct, frozen=True):
    """Whole lines from byte `start` on, or what a window holds of a longer line."""

    start: int
    data: bytes
    lines_before: int | None = 0
    """None if the lines before it were not counted."""

    @property
    def end(self) -> int:
        return self.start + len(self.data)

    def holds(self, start: int, end: int) -> bool:
        return self.start <= start and end <= self.end

    def cut(self, start: int, end: int, total: int) -> Window:
        """Whole lines, except at the ends of the output. Nothing of a line that is longer, unless it is the first."""
        data = self.data[start - self.start : end - self.start]
        first = data.find(b"\n") + 1 if start else 0
        last = len(data) if end == total else data.rfind(b"\n") + 1
        kept = data[first:last] if first or not start else b""
        before = self.lines_before
        if before is not None:
            before += count_line_ends(self.data[: start + first - self.start])
        return Window(start + first, kept if start or kept else data, before)


class OutputSample:
    """Windows of an output, joined to one text that the engine can read, with a blank line where something is left out."""

    def __init__(self, windows: Sequence[Window], size: Size) -> None:
        self.size = size
        self.windows = windows or (Window(0, b""),)
        self._counted = (-1, 0, 0)
        """The window and the position in it up to which lines were counted last, and how many there are."""

    @cached_property
    def data(self) -> bytes:
        return self.windows[0].data if len(self.windows) == 1 else _GAP.join(window.data for window in self.windows)

    @property
    def is_whole(self) -> bool:
        return len(self.data) == self.size.bytes

    @property
    def where(self) -> str:
        """For statements that are true only of what was read."""
        return "" if self.is_whole else " in what was read"

    @property
    def has_end(self) -> bool:
        """Not if the last line is longer than a window."""
        return self.windows[-1].end == self.size.bytes

    def locate(self, position: int) -> str:
        """Where a position in `data` is in the output: `L12`, or the byte `@4096` if lines are too long or were not counted."""
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
        """Only its first lines, or some of the first."""
        data = self.windows[0].data
        part = data if len(data) <= most_bytes else data[: data.rfind(b"\n", 0, most_bytes) + 1] or data[:most_bytes]
        return OutputSample((Window(0, part),), self.size)

    @cached_property
    def _joints(self) -> list[int]:
        """Where each window begins in `data`."""
        joints = [0]
        for window in self.windows[:-1]:
            joints.append(joints[-1] + len(window.data) + len(_GAP))
        return joints


def draw(first: int, last: int, most: int) -> Sequence[int]:
    """All numbers from `first` to `last` - 1, or one drawn from each stretch of them. At equal distances, data that repeats would
    look like a part of itself."""
    step = max(1, -(-(last - first) // most))
    if step == 1:
        return range(first, last)
    drawn = Random(_SEED).random  # noqa: S311  # nobody gains from guessing it
    return [start + int(drawn() * min(step, last - start)) for start in range(first, last, step)]


def take_sample(read: Read, size: Size, *, seeks_failure: bool = False) -> OutputSample:
    """`seeks_failure`: with the lines where a program first says that it gave up."""
    total = size.bytes
    if total <= MAX_WHOLE_BYTES:
        return OutputSample((Window(0, read(0, total)),), size)
    most = min(total // 2 + _OVERLAP_BYTES, _SCANNED_BYTES)
    ends = [_read_window(read, size, *span) for span in ((0, most), (total - most, total)) if seeks_failure]
    windows = [
        (next((end for end in ends if end.holds(*span)), None) or _read_window(read, size, *span)).cut(*span, total)
        for span in _choose_spans(total, ends)
    ]
    return OutputSample([window for window in windows if window.data], size)


def _read_window(read: Read, size: Size, start: int, end: int) -> Window:
    data = read(start, end)
    if end < size.bytes or not start:
        return Window(start, data, None if start else 0)
    return Window(start, data, size.lines - count_line_ends(data) - (not data.endswith(_LINE_ENDS)))


def _choose_spans(total: int, searched: Sequence[Window]) -> Iterator[Span]:
    """Beginning, end, places drawn between them, and where a program first says that it gave up."""
    starts = draw(_HEAD_BYTES, total - _TAIL_BYTES - _MIDDLE_BYTES, _MIDDLES)
    spans = [(0, _HEAD_BYTES), (total - _TAIL_BYTES, total), *((start, start + _MIDDLE_BYTES) for start in starts)]
    found = (window.start + place for window in searched if (place := find_giving_up(window.data)) >= 0)
    spans += [(max(0, place - _BEFORE_END_BYTES), min(total, place + _AFTER_END_BYTES)) for place in islice(found, 1)]
    return _join_spans(spans)


def _join_spans(spans: list[Span]) -> Iterator[Span]:
    start, end = 0, 0
    for each_start, each_end in sorted(spans):
        if each_start > end:
            yield start, end
            start = each_start
        end = max(end, each_end)
    yield start, end
