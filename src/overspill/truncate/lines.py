"""Finds where text may be cut.

Every search starts from the end it is about, so that its cost depends on the room, not on the length of the text.
"""

from __future__ import annotations

import unicodedata

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
    """The nearest position in the direction of `step` that splits no accented letter or emoji sequence, if there is one."""
    for place in range(at, at + step * _MAX_GRAPHEME_CHARS, step):
        if not 0 < place < len(text):
            return at
        if not _is_joined(text[place - 1], text[place]):
            return place
    return at


def _is_joined(before: str, after: str) -> bool:
    if before in "\r\n":
        return False
    return _ZERO_WIDTH_JOINER in (before, after) or unicodedata.category(after)[0] == "M" or "\U0001f3fb" <= after <= "\U0001f3ff"
