"""Exact, bounded pieces of a stored output: raw, bytes, lines, characters, and what surrounds an anchor.

Arguments come from a model and may have any type, so they are checked here.
"""

from __future__ import annotations

import msgspec

from overspill.errors import BadRequest
from overspill.reading.passage import Bound, Passage, Range, Unit, fit, make_passage, require_whole_number
from overspill.reading.pattern import find_occurrences
from overspill.reading.positions import View
from overspill.store.protocols import Reader

_INVERTED = "The range from {start} {first} to {end} {last} is empty."
_PAST_END = "{name} {value} is past the end: the output has {total} {unit}."
_EMPTY = "The output is empty."
_NO_ANCHOR = "The anchor must be the text to look for, not {value!r}."
_NOT_FOUND = "Anchor not found in content"
_NO_SUCH_MATCH = "Anchor not found in content at match_index {index}: it occurs {count} times, and the first has match_index 0."

_NAMES: dict[Unit, tuple[str, str]] = {"bytes": ("start", "end"), "lines": ("start_line", "end_line"), "chars": ("start", "end")}
_MAX_COUNTED_MATCHES = 1000


def raw(reader: Reader, view: View, bound: Bound) -> Passage:
    """The beginning of the output, in whole lines if one fits."""
    return lines(reader, view, 1, None, bound) if view.bytes else make_passage(reader, view, 0, 0)


def bytes_range(reader: Reader, view: View, start: object, end: object, bound: Bound) -> Passage:
    """Bytes start..end; without `end`, to the end of the output. A character that the range splits shows as U+FFFD."""
    first, last = _range("bytes", start, end, view.bytes)
    cut = fit(reader, first, last, bound)
    rest = Range("bytes", cut, last) if cut < last else None
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
    return make_passage(reader, view, start, cut, omitted=end - cut, following=Range("bytes", cut, end))


def chars(reader: Reader, view: View, start: object, length: object, bound: Bound) -> Passage:
    """`length` characters from `start` on; without `length`, to the end of the output."""
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
        raise BadRequest(_NO_ANCHOR.format(value=anchor))
    wide = max(require_whole_number("window", window, 1), len(anchor))
    index = require_whole_number("match_index", match_index, 0)
    at, count = _locate(reader, anchor, index)
    if at is None:
        raise BadRequest(_NO_SUCH_MATCH.format(index=index, count=count) if count else _NOT_FOUND)
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
    """Where the index-th occurrence begins, and how many there are; counting stops some way behind it.

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
        raise BadRequest(_INVERTED.format(start=start_name, first=first, end=end_name, last=last))
    if not total:
        raise BadRequest(_EMPTY)
    if first - least >= total:
        words = "characters" if unit == "chars" else unit
        raise BadRequest(_PAST_END.format(name=start_name, value=first, total=total, unit=words if total > 1 else words[:-1]))
    return first, min(last, total)
