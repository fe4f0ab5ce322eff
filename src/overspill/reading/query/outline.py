"""Outlines a JSON value in a few lines: kinds, keys, lengths, and some values."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice

from overspill.errors import BadRequest
from overspill.reading.passage import Bound
from overspill.reading.query.document import Value, documents, is_array, is_object, open_raw, parse_embedded, quote, write_within
from overspill.text.humanize import count_noun

_MAX_PARSED_CHARS = 16 * 1024 * 1024
DETAIL_LEVELS = ((4, 12), (3, 12), (3, 6), (2, 12), (2, 6), (1, 12), (1, 6), (1, 3), (0, 0))
"""Depth and keys, from the most detailed to the least."""
_MAX_SCALAR = Bound(240, 60)


def outline(text: str, limit: int) -> str | None:
    """At most `limit` characters. None if this is not structured JSON, or is too large to parse for a preview."""
    if len(text) > _MAX_PARSED_CHARS or not text.lstrip("\ufeff \t\r\n").startswith(("{", "[", '"')):
        return None
    try:
        return next(filter(Bound(4 * limit, limit).holds, outline_levels(documents(text))), None)
    except (BadRequest, RecursionError):
        return None


def outline_levels(found: Sequence[Value], levels: Sequence[tuple[int, int]] = DETAIL_LEVELS) -> Iterator[str]:
    """Outlines of the JSON documents in the output, one for each level; none if they have no structure."""
    first, *others = found
    only = open_raw(first)
    if not others and isinstance(only, str) and parse_embedded(only) is only:
        return
    label = f"{len(others) + 1:,} JSON documents, the first: " if others else ""
    yield from _levels(first, label, levels)


def outline_within(value: Value, bound: Bound) -> str | None:
    """As much detail as fits. None if not even the kind of the value fits."""
    return next(filter(bound.holds, _levels(value)), None)


def _levels(value: Value, label: str = "", levels: Sequence[tuple[int, int]] = DETAIL_LEVELS) -> Iterator[str]:
    sketch = _Sketch()
    for depth, keys in levels:
        yield label + "\n".join(sketch.lines(value, depth, keys))


def describe_kind(value: Value) -> str:
    """`object with 3 keys`, `array of 5`; a short scalar in full."""
    if is_object(value):
        return f"object with {count_noun(len(value), 'key')}"
    if is_array(value):
        return f"array of {len(value):,}"
    text = write_within(value, _MAX_SCALAR)
    if text is None and isinstance(value, str):
        return f"string of {len(value):,} characters, {shorten_value(value)}"
    return text or "number of very many digits"


def shorten_value(text: str) -> str:
    """A string in quotes, shortened if it is long."""
    return quote(text) if len(text) <= 40 else f'{quote(text[:40])[:-1]}…"'


class _Sketch:
    """Outlines in different detail; values are opened only once."""

    def __init__(self) -> None:
        self._opened: dict[int, tuple[Value, Value, str]] = {}

    def lines(self, value: Value, depth: int, keys: int) -> list[str]:
        value, label = self._open(value)
        if is_object(value) and depth:
            return [label + describe_kind(value), *self._members(value, depth, keys)]
        if is_array(value) and value and depth:
            first, *rest = self.lines(value[0], depth - 1, keys)
            return [f"{label}{describe_kind(value)}, the first: {first}", *rest]
        return [label + describe_kind(value)]

    def _members(self, members: dict[str, Value], depth: int, keys: int) -> list[str]:
        lines: list[str] = []
        for key, member in islice(members.items(), keys):
            first, *rest = self.lines(member, depth - 1, keys)
            lines += [f"- {shorten_value(key)[1:-1]}: {first}", *(f"  {line}" for line in rest)]
        return lines + [f"- … {len(members) - keys:,} more"] * (len(members) > keys)

    def _open(self, value: Value) -> tuple[Value, str]:
        # Keep the value too, so that no other object can get its id.
        if id(value) not in self._opened:
            inside = open_raw(value)
            held = parse_embedded(inside) if isinstance(inside, str) else inside
            self._opened[id(value)] = (value, held, "" if held is inside else "string that holds JSON: ")
        return self._opened[id(value)][1:]
