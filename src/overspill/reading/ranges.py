"""Exact, bounded pieces of a stored output: raw, bytes, lines, characters, and the surroundings of an anchor.

Arguments come from a model and may have any type, so they are checked here.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

import msgspec
from msgspec import Struct

from overspill.errors import BadRequest
from overspill.reading.positions import View
from overspill.reading.search import find_occurrences
from overspill.store.protocols import Reader
from overspill.text.encoding import byte_offset, character_start, decode

_NAMES: dict[Unit, tuple[str, str]] = {"bytes": ("start", "end"), "lines": ("start_line", "end_line"), "chars": ("start", "end")}
_MAX_COUNTED_MATCHES = 1000


def raw(reader: Reader, view: View, bound: Bound) -> Passage:
    """The beginning of the output, in whole lines if one fits."""
    return lines(reader, view, 1, None, bound) if view.bytes else make_passage(reader, view, 0, 0)


def bytes_range(reader: Reader, view: View, start: object, end: object, bound: Bound) -> Passage:
    """Bytes start..end; without `end`, to the end of the output. A character that the range splits shows as U+FFFD."""
    asked, until = _range("bytes", start, end, view.stored_bytes)
    first, last = view.from_stored(asked), view.from_stored(until, is_end=True)
    cut = view.cut_outside(first, fit(reader, first, last, bound))
    rest = Range("bytes", view.to_stored(cut, is_end=True), until) if cut < last else None
    return make_passage(reader, view, first, cut, omitted=last - cut, following=rest)


def lines(reader: Reader, view: View, first: object, last: object, bound: Bound) -> Passage:
    """Lines first..last; without `last`, to the end. Whole lines, unless the first one alone does not fit."""
    top, bottom = _range("lines", first, last, view.lines)
    start, end = view.line_span(top, bottom)
    cut = fit(reader, start, end, bound)
    if cut == end:
        return make_passage(reader, view, start, end)
    line = view.line_at(cut)
    whole = view.line_start(line)
    if whole > start:
        return make_passage(reader, view, start, whole, omitted=end - whole, following=Range("lines", line, bottom))
    cut = view.cut_outside(start, cut)
    rest = Range("bytes", view.to_stored(cut, is_end=True), view.to_stored(end, is_end=True)) if cut < end else None
    return make_passage(reader, view, start, cut, omitted=end - cut, following=rest)


def chars(reader: Reader, view: View, start: object, length: object, bound: Bound) -> Passage:
    """`length` characters from `start`; without `length`, to the end of the output."""
    end = None if length is None else require_whole_number("start", start, 0) + require_whole_number("length", length, 1)
    first, last = _range("chars", start, end, view.chars)
    start_byte, end_byte = view.char_span(first, last)
    cut = fit(reader, start_byte, end_byte, bound)
    rest = Range("chars", view.char_at(cut), last) if cut < end_byte else None
    return make_passage(reader, view, start_byte, cut, omitted=end_byte - cut, following=rest)


def around(
    reader: Reader, view: View, anchor: object, bound: Bound, *, window: object = 1000, match_index: object = 0
) -> Passage:
    """`window` characters around an occurrence of the anchor; fewer on both sides if they do not fit."""
    if not isinstance(anchor, str) or not anchor:
        raise BadRequest(f"The anchor must be the text to look for, not {anchor!r}.")
    wide = max(require_whole_number("window", window, 1), len(anchor))
    index = require_whole_number("match_index", match_index, 0)
    at, count = _locate(reader, anchor, index)
    if at is None:
        where = f" at match_index {index}: it occurs {count} times, and the first has match_index 0." if count else ""
        raise BadRequest(f"Anchor not found in content{where}")
    middle = view.char_at(at)
    outer = inner = _window(view, middle, len(anchor), wide)
    while fit(reader, *inner, bound) < inner[1] and wide > len(anchor):
        wide = max(min(wide * 7 // 8, bound.bytes), len(anchor))
        inner = _window(view, middle, len(anchor), wide)
    start, end = inner[0], fit(reader, *inner, bound)
    found = make_passage(
        reader,
        view,
        start,
        end,
        omitted=outer[1] - outer[0] - (end - start),
        following=Range("chars", view.char_at(end), view.char_at(outer[1])) if end < outer[1] else None,
        previous=Range("chars", view.char_at(outer[0]), view.char_at(start)) if outer[0] < start else None,
    )
    return msgspec.structs.replace(found, matches=count if count <= index + _MAX_COUNTED_MATCHES else None)


def _locate(reader: Reader, anchor: str, index: int) -> tuple[int | None, int]:
    """The beginning of the index-th occurrence, and the number of occurrences. Counting stops some way after it.

    Raises nothing: a traceback would keep the buffer from being closed.
    """
    at, count = None, 0
    for place in find_occurrences(reader.buffer(), anchor.encode("utf-8", "surrogatepass")):
        if count == index:
            at = place
        count += 1
        if count > index + _MAX_COUNTED_MATCHES:
            break
    return at, count


def _window(view: View, middle: int, length: int, wide: int) -> tuple[int, int]:
    before = (wide - length) // 2
    return view.char_span(max(0, middle - before), middle - before + wide)


def _range(unit: Unit, start: object, end: object, total: int) -> tuple[int, int]:
    start_name, end_name = _NAMES[unit]
    least = 1 if unit == "lines" else 0
    first = require_whole_number(start_name, start, least)
    last = total if end is None else require_whole_number(end_name, end, least)
    if end is not None and last - first + least <= 0:
        raise BadRequest(f"The range from {start_name} {first} to {end_name} {last} is empty.")
    if not total:
        raise BadRequest("The output is empty.")
    if first - least >= total:
        words = "characters" if unit == "chars" else unit
        held = f"{total} {words if total > 1 else words[:-1]}"
        raise BadRequest(f"{start_name} {first} is past the end: the output has {held}.")
    return first, min(last, total)


Unit: TypeAlias = Literal["bytes", "lines", "chars"]

_MAX_CHARACTER_BYTES = 4


class Bound(Struct, frozen=True):
    """The size limit of one answer, in bytes of UTF-8 and optionally in characters."""

    bytes: int
    chars: int | None = None

    def holds(self, text: str) -> bool:
        if self.chars is not None and len(text) > self.chars:
            return False
        return len(text) * 4 <= self.bytes or _size(text) <= self.bytes

    @property
    def least_bytes(self) -> int:
        """Text with at most this many bytes is within both limits."""
        return self.bytes if self.chars is None else min(self.bytes, self.chars)

    def after(self, text: str) -> Bound:
        """The room left after adding the text."""
        return Bound(self.bytes - _size(text), None if self.chars is None else self.chars - len(text))


class Range(Struct, frozen=True):
    """start..end as in a request: lines count from 1 and include `end`; bytes and characters count from 0 and exclude it."""

    unit: Unit
    start: int
    end: int


class Passage(Struct, frozen=True):
    """Text from a stored output. Positions count like those of `Range`; an empty passage has no lines (both are 0)."""

    text: str
    start_byte: int
    end_byte: int
    first_line: int
    last_line: int
    start_char: int
    end_char: int
    total: int
    """Bytes of the whole output."""
    omitted: int = 0
    """Requested bytes that did not fit."""
    next: Range | None = None
    """The range to request next for the part that did not fit."""
    previous: Range | None = None
    """The range to request for the part before the text that did not fit."""
    matches: int | None = None
    """How often the anchor occurs, if one was given and counting was cheap."""


def make_passage(
    reader: Reader,
    view: View,
    start: int,
    end: int,
    *,
    omitted: int = 0,
    following: Range | None = None,
    previous: Range | None = None,
) -> Passage:
    """The bytes start..end, unchanged, with their positions."""
    text = decode(reader.read(start, end))
    first_char = view.char_at(start)
    return Passage(
        text=text,
        start_byte=view.to_stored(start),
        end_byte=view.to_stored(end, is_end=True),
        first_line=view.line_at(start) if text else 0,
        last_line=view.line_at(end - 1) if text else 0,
        start_char=first_char,
        end_char=view.char_at(end),
        total=view.stored_bytes,
        omitted=omitted,
        next=following,
        previous=previous,
    )


def fit(reader: Reader, start: int, end: int, bound: Bound) -> int:
    """The end of the longest piece from `start` that fits, cut between characters.

    The piece has at least one character even if that exceeds the bound, because an empty answer would make no progress.
    """
    data = reader.read(start, min(end, start + max(bound.bytes, 0) + _MAX_CHARACTER_BYTES))
    whole = start + len(data) == end
    cut = len(data) if whole else character_start(data, min(max(bound.bytes, 0), len(data)))
    text = decode(data[:cut])
    if bound.holds(text) and text:
        return start + cut
    return start + byte_offset(data, max(len(clip(text, bound)), 1))


def clip(text: str, bound: Bound) -> str:
    """The longest beginning of the text that fits."""
    room = max(bound.bytes, 0)
    encoded = text[: room if bound.chars is None else min(room, bound.chars)].encode("utf-8", "surrogatepass")
    return decode(encoded[: character_start(encoded, min(room, len(encoded)))])


def require_whole_number(name: str, value: object, least: int) -> int:
    """Checks a number from a model, which may send anything."""
    if not isinstance(value, int) or isinstance(value, bool):
        raise BadRequest(f"{name} must be a whole number, not {value!r}.")
    if value < least:
        raise BadRequest(f"{name} must be at least {least}, not {value}.")
    return value


def _size(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))
