"""Shortens unstructured text: keeps some of each end, with a marker between them that says what is missing."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable
from typing import TypeAlias

from msgspec import Struct

from overspill.text.lines import count_lines
from overspill.truncate.shape import ELLIPSIS, Cut, Shape


class BothEnds(Struct, frozen=True):
    """Both ends of the text. The rest may not be loaded, and the ends may overlap."""

    head: str
    tail: str
    chars: int
    lines: int

    @property
    def whole(self) -> str | None:
        """The whole text, if the ends cover it."""
        missing = self.chars - len(self.head)
        return self.head + self.tail[len(self.tail) - missing :] if missing <= len(self.tail) else None


class Gap(Struct, frozen=True):
    """What is omitted between two kept ends, either of which may be empty."""

    head: str
    tail: str
    lines: int
    chars: int
    cuts_above: bool = False
    cuts_below: bool = False


Marker: TypeAlias = Callable[[Gap], str]


def mark_middle(gap: Gap) -> str:
    return f"\n... [{gap.lines:,} lines / {gap.chars:,} chars omitted{_cuts(gap)}] ...\n"


def mark_beginning(gap: Gap) -> str:
    return f"... [Beginning omitted: {gap.lines:,} lines / {gap.chars:,} chars{_cuts(gap)}] ..." + ("\n\n" if gap.tail else "")


def mark_remainder(gap: Gap) -> str:
    blank = "" if not gap.head else "\n" if gap.head.endswith("\n") else "\n\n"
    return f"{blank}... [Remainder omitted: {gap.lines:,} lines / {gap.chars:,} chars{_cuts(gap)}] ..."


def mark_briefly(gap: Gap) -> str:
    return f"[{gap.chars:,} chars omitted]"


def _cuts(gap: Gap) -> str:
    if gap.cuts_above and gap.cuts_below:
        return "; the lines above and below are cut"
    if gap.cuts_above:
        return "; the line above is cut"
    return "; the line below is cut" if gap.cuts_below else ""


class EndsPlan(Struct, frozen=True):
    """How much of each end to keep. `None` lines means as many as fit."""

    marker: Marker
    head_share: float
    head_lines: int | None
    tail_lines: int | None
    whole_lines: bool = False


def _plan(name: str, shape: Shape) -> EndsPlan:
    if name == "head_tail":
        return EndsPlan(mark_middle, shape.head_ratio, head_lines=None, tail_lines=None)
    is_line = name == "line"
    if name == "head" or (is_line and shape.line_from == "start"):
        return EndsPlan(mark_remainder, head_share=1, head_lines=shape.head_lines, tail_lines=0, whole_lines=is_line)
    return EndsPlan(mark_beginning, head_share=0, head_lines=0, tail_lines=shape.tail_lines, whole_lines=is_line)


def shorten_text(name: str, text: str, limit: int, shape: Shape) -> Cut:
    return shorten_ends(name, BothEnds(text, text, len(text), count_lines(text)), limit, shape)


def shorten_ends(name: str, ends: BothEnds, limit: int, shape: Shape) -> Cut:
    """`head` keeps the first lines, `tail` the last ones, `head_tail` as many characters of both ends as fit, and `line` the
    first or the last lines, always whole. Never exceeds the limit and always has a marker.

    If the marker leaves no room for content, a shorter one replaces it: `[1,234 chars omitted]`, and finally `…`. Only a plan of
    whole lines may leave nothing but a marker.
    """
    plan = _plan(name, shape)
    for marker, cuts in ((plan.marker, False), (plan.marker, True), (mark_briefly, False)):
        longest = Gap("x", "x", ends.lines, ends.chars, cuts and plan.head_share > 0, cuts and plan.head_share < 1)
        room = limit - len(marker(longest))
        gap = _find_gap(ends, room, plan)
        text = gap.head + marker(gap) + gap.tail
        if room >= 0 and len(text) <= limit and (gap.head or gap.tail or plan.whole_lines):
            return Cut(text, name, gap.lines, gap.chars)
    gap = _find_gap(ends, limit - len(ELLIPSIS), plan)
    return Cut(gap.head + ELLIPSIS + gap.tail, name, gap.lines, gap.chars)


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


_ZERO_WIDTH_JOINER = "\u200d"
_MAX_GRAPHEME_CHARS = 16


def find_head_end(text: str, room: int, lines: int | None, whole_lines: bool) -> int:
    """Where to cut the beginning: after at most `room` characters and `lines` lines.

    The cut is at a line end, unless that would waste more than half of the room; then it is inside the long line.
    """
    room = min(room, len(text))
    if text[room - 1 : room + 1] == "\r\n":
        room -= 1
    if lines is not None and (end := _end_of_lines(text, lines, room)) is not None:
        return end
    end = max(text.rfind("\n", 0, room), text.rfind("\r", 0, room)) + 1
    if whole_lines or 2 * end >= room:
        return end
    return _between_graphemes(text, room, -1)


def find_tail_start(text: str, room: int, lines: int | None, whole_lines: bool) -> int:
    """Where to cut the ending; the mirror image of `find_head_end`."""
    floor = max(len(text) - room, 0)
    if floor and text[floor - 1 : floor + 1] == "\r\n":
        floor += 1
    if lines is not None and (start := _start_of_lines(text, lines, floor)) is not None:
        return start
    start = _next_line(text, max(floor - 1, 0), len(text)) or len(text)
    if whole_lines or 2 * (len(text) - start) >= len(text) - floor:
        return start
    return _between_graphemes(text, floor, 1)


def cuts_line(text: str, at: int) -> bool:
    """Whether a cut at this position, inside the text, splits a line."""
    return not text.endswith(("\n", "\r"), 0, at) and not text.startswith(("\n", "\r"), at)


def _end_of_lines(text: str, lines: int, room: int) -> int | None:
    at = 0
    for _ in range(lines):
        end = _next_line(text, at, room)
        if end is None or end > room:
            return None
        at = end
    return at


def _start_of_lines(text: str, lines: int, floor: int) -> int | None:
    at = len(text)
    for _ in range(lines):
        stop = at - 2 if text.endswith("\r\n", 0, at) else at - text.endswith(("\n", "\r"), 0, at)
        line_feed = text.rfind("\n", max(floor - 1, 0), stop)
        at = max(line_feed, text.rfind("\r", max(floor - 1, line_feed + 1, 0), stop)) + 1
        if at == 0:
            return None
    return at


def _next_line(text: str, start: int, stop: int) -> int | None:
    """Where the line after the one at `start` begins, if that one ends before `stop`."""
    line_feed = text.find("\n", start, stop)
    carriage_return = text.find("\r", start, stop if line_feed < 0 else line_feed)
    if carriage_return >= 0:
        return carriage_return + (2 if text.startswith("\n", carriage_return + 1) else 1)
    return line_feed + 1 if line_feed >= 0 else None


def _between_graphemes(text: str, at: int, step: int) -> int:
    """The nearest position in the direction of `step` at which a cut splits no accented letter or emoji sequence."""
    for place in range(at, at + step * _MAX_GRAPHEME_CHARS, step):
        if not 0 < place < len(text):
            return at
        before, after = text[place - 1], text[place]
        is_mark = unicodedata.category(after)[0] == "M" or "\U0001f3fb" <= after <= "\U0001f3ff"
        if before in "\r\n" or not (is_mark or _ZERO_WIDTH_JOINER in (before, after)):
            return place
    return at
