"""Shortens unstructured text: keeps some of each end, with a marker between them that says what is missing."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from msgspec import Struct

from overspill.text.lines import count_lines
from overspill.truncate import markers
from overspill.truncate.lines import cuts_line, find_head_end, find_tail_start
from overspill.truncate.markers import Gap, Marker
from overspill.truncate.shape import Cut, Shape, Strategy


class BothEnds(Struct, frozen=True):
    """Both ends of a text, which may be all that is loaded of it; they may overlap."""

    head: str
    tail: str
    chars: int
    lines: int

    @property
    def whole(self) -> str | None:
        """The whole text, if the ends cover it."""
        missing = self.chars - len(self.head)
        return self.head + self.tail[len(self.tail) - missing :] if missing <= len(self.tail) else None


class EndsPlan(Struct, frozen=True):
    """How much of each end to keep. `None` lines means as many as fit."""

    marker: Marker
    head_share: float
    head_lines: int | None
    tail_lines: int | None
    whole_lines: bool = False


EndsStrategy: TypeAlias = Callable[[BothEnds, int, Shape], Cut]


def for_whole_text(strategy: EndsStrategy) -> Strategy:
    def shorten_whole(text: str, limit: int, shape: Shape) -> Cut:
        return strategy(BothEnds(text, text, len(text), count_lines(text)), limit, shape)

    return shorten_whole


def head(ends: BothEnds, limit: int, shape: Shape) -> Cut:
    """Keeps the first lines."""
    return _shorten(ends, limit, "head", EndsPlan(markers.remainder, head_share=1, head_lines=shape.head_lines, tail_lines=0))


def tail(ends: BothEnds, limit: int, shape: Shape) -> Cut:
    """Keeps the last lines; suits logs and the output of commands."""
    return _shorten(ends, limit, "tail", EndsPlan(markers.beginning, head_share=0, head_lines=0, tail_lines=shape.tail_lines))


def head_tail(ends: BothEnds, limit: int, shape: Shape) -> Cut:
    """Keeps both ends, as many characters as fit."""
    return _shorten(ends, limit, "head_tail", EndsPlan(markers.middle, shape.head_ratio, head_lines=None, tail_lines=None))


def line(ends: BothEnds, limit: int, shape: Shape) -> Cut:
    """Keeps the first or the last lines, always whole."""
    if shape.line_from == "start":
        plan = EndsPlan(markers.remainder, head_share=1, head_lines=shape.head_lines, tail_lines=0, whole_lines=True)
    else:
        plan = EndsPlan(markers.beginning, head_share=0, head_lines=0, tail_lines=shape.tail_lines, whole_lines=True)
    return _shorten(ends, limit, "line", plan)


def _shorten(ends: BothEnds, limit: int, name: str, plan: EndsPlan) -> Cut:
    """Never exceeds the limit and always has a marker.

    If the marker leaves no room for content, a shorter one replaces it: `[1,234 chars omitted]`, and finally `…`. Only a plan of
    whole lines may leave nothing but a marker.
    """
    for marker, cuts in ((plan.marker, False), (plan.marker, True), (markers.brief, False)):
        room = limit - _marker_room(marker, ends, plan, cuts)
        gap = _find_gap(ends, room, plan)
        text = gap.head + marker(gap) + gap.tail
        if room >= 0 and len(text) <= limit and (gap.head or gap.tail or plan.whole_lines):
            return Cut(text, name, gap.lines, gap.chars)
    gap = _find_gap(ends, limit - len(markers.ELLIPSIS), plan)
    return Cut(gap.head + markers.ELLIPSIS + gap.tail, name, gap.lines, gap.chars)


def _marker_room(marker: Marker, ends: BothEnds, plan: EndsPlan, cuts: bool) -> int:
    return len(marker(Gap("x", "x", ends.lines, ends.chars, cuts and plan.head_share > 0, cuts and plan.head_share < 1)))


def _find_gap(ends: BothEnds, room: int, plan: EndsPlan) -> Gap:
    """What is omitted if `room` characters may stay. Room that the head does not need goes to the tail."""
    room = max(room, 0)
    stop = find_head_end(ends.head, int(room * plan.head_share), plan.head_lines, plan.whole_lines)
    start = find_tail_start(ends.tail, room - stop, plan.tail_lines, plan.whole_lines)
    head, tail = ends.head[:stop], ends.tail[start:]
    return Gap(
        head,
        tail,
        # A line shared by both ends is counted twice, which leaves -1.
        lines=max(0, ends.lines - count_lines(head) - count_lines(tail)),
        chars=ends.chars - len(head) - len(tail),
        cuts_above=head != "" and cuts_line(ends.head, stop),
        cuts_below=tail != "" and cuts_line(ends.tail, start),
    )
