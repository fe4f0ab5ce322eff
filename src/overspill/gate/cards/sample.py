"""What a card is made from: all of a small output; of a large one the beginning, the end, and some lines between them."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
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
_MAX_CUT_BYTES = 12 << 10
"""Of what the engine has to cut into records, which takes it a hundred times as long as a search."""
_CUT_HEAD_BYTES, _CUT_MIDDLE_BYTES, _CUT_TAIL_BYTES = 6 << 10, 1 << 10, 2 << 10
_MAX_LINE_BYTES = 2_000
"""What is inside a longer line is not read apart from it."""
_MAX_NUMBERED_LINE_BYTES = 5_000
"""With longer lines on average, line numbers no longer help to find anything."""
_STRUCTURE_STARTS = (b"{", b"[", b"<")
"""What begins so is not the output of a program that gave up."""
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


class OutputSample:
    """Windows of an output, joined to one text that the engine can read, with a blank line where something is left out."""

    def __init__(self, windows: Sequence[Window], size: Size) -> None:
        self.size = size
        self.windows = windows
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

    def are_adjacent(self, one: int, other: int) -> bool:
        """Whether nothing is left out between two positions in `data`."""
        return bisect_right(self._joints, one) == bisect_right(self._joints, other)

    def find(self, position: int, part: OutputSample) -> int:
        """Where a position in `data` is in the data of a part; -1 if it is not in it."""
        number = bisect_right(self._joints, position) - 1
        place = self.windows[number].start + position - self._joints[number]
        among = zip(part.windows, part._joints, strict=True)  # of another of these
        return next((joint + place - window.start for window, joint in among if window.start <= place < window.end), -1)

    def narrow(self, spans: Iterable[Span]) -> OutputSample:
        """Only the lines in some spans of `data`."""
        chosen = _join_spans([span for each in spans if (span := self._widen(*each))])
        windows: list[Window] = []
        for start, end in chosen:
            for window, joint in zip(self.windows, self._joints, strict=True):
                first, last = max(start, joint), min(end, joint + len(window.data))
                if first < last:
                    inside = first - joint
                    before = None if window.lines_before is None else window.lines_before + count_line_ends(window.data[:inside])
                    windows.append(Window(window.start + inside, self.data[first:last], before))
        return OutputSample(windows or [Window(0, b"")], self.size)

    def narrow_for_engine(self) -> OutputSample:
        """As much as the engine can cut into records in time: the beginning, the end, and a place between them."""
        total = len(self.data)
        if total <= _MAX_CUT_BYTES:
            return self
        middle = total // 2
        return self.narrow(((0, _CUT_HEAD_BYTES), (middle, middle + _CUT_MIDDLE_BYTES), (max(0, total - _CUT_TAIL_BYTES), total)))

    def _widen(self, start: int, end: int) -> Span | None:
        """To whole lines. None if it begins in a line that is too long."""
        first = self.data.rfind(b"\n", max(0, start - _MAX_LINE_BYTES), max(0, start)) + 1
        last = self.data.find(b"\n", max(0, end - 1), end + _MAX_LINE_BYTES) + 1
        return (first, last or min(end, len(self.data))) if first or start <= _MAX_LINE_BYTES else None

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


def take_sample(read: Read, size: Size) -> OutputSample:
    total = size.bytes
    if total <= MAX_WHOLE_BYTES:
        return OutputSample((Window(0, read(0, total)),), size)
    ends = (Window(0, read(0, min(total, _SCANNED_BYTES))), _read_end(read, size))
    windows: list[Window] = []
    for start, end in _choose_spans(total, ends):
        known = next((window for window in ends if window.start <= start and end <= window.end), None)
        data = known.data[start - known.start : end - known.start] if known else read(start, end)
        window = _keep_whole_lines(start, data, total)
        if window.data:
            windows.append(Window(window.start, window.data, _count_lines_before(window.start, known)))
    return OutputSample(windows or (Window(0, b""),), size)


def _read_end(read: Read, size: Size) -> Window:
    start = max(0, size.bytes - _SCANNED_BYTES)
    data = read(start, size.bytes)
    return Window(start, data, size.lines - count_line_ends(data) - (not data.endswith(_LINE_ENDS)))


def _choose_spans(total: int, ends: tuple[Window, Window]) -> Iterator[Span]:
    """Beginning, end, places drawn between them, and where a program first says that it gave up."""
    starts = draw(_HEAD_BYTES, total - _TAIL_BYTES - _MIDDLE_BYTES, _MIDDLES)
    spans = [(0, _HEAD_BYTES), (total - _TAIL_BYTES, total), *((start, start + _MIDDLE_BYTES) for start in starts)]
    for window in ends if ends[0].data[:1] not in _STRUCTURE_STARTS else ():
        if (found := find_giving_up(window.data)) >= 0:
            place = window.start + found
            spans.append((max(0, place - _BEFORE_END_BYTES), min(total, place + _AFTER_END_BYTES)))
            break
    return _join_spans(spans)


def _join_spans(spans: list[Span]) -> Iterator[Span]:
    start, end = 0, 0
    for each_start, each_end in sorted(spans):
        if each_start > end:
            yield start, end
            start = each_start
        end = max(end, each_end)
    yield start, end


def _keep_whole_lines(start: int, data: bytes, total: int) -> Window:
    """Except at the ends of the output. Nothing of a line that is longer than a window, unless it is the first."""
    first = 0 if start == 0 else data.find(b"\n") + 1
    last = len(data) if start + len(data) == total else data.rfind(b"\n") + 1
    if start == 0:
        return Window(0, data[:last] or data)
    return Window(start + first, data[first:last] if first else b"")


def _count_lines_before(start: int, known: Window | None) -> int | None:
    if known is None or known.lines_before is None:
        return None
    return known.lines_before + count_line_ends(known.data[: start - known.start])
