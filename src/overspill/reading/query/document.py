"""Parses and writes JSON without losing a digit, including JSON inside strings.

Values are opened on demand. Until then, a part of a document is `Raw`: its source, already known to be valid JSON.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any, TypeAlias, TypeGuard

import msgspec
from msgspec import Raw

from overspill.errors import BadRequest
from overspill.reading.ranges import Bound
from overspill.text.humanize import count_noun
from overspill.text.lines import line_and_column
from overspill.text.regex import regex

Value: TypeAlias = Any
"""dict, list, str, int, Number, bool, None, or Raw; a float if a JMESPath function computed one."""

_MAX_INTEGER_DIGITS = 1000
_BYTE_ORDER_MARK = "\ufeff"
_SPACE = regex(r"[ \t\r\n]*")


class Number(float):
    """A number that keeps its spelling: compared as a float, written digit for digit."""

    __slots__ = ("spelling",)
    spelling: str

    def __init__(self, spelling: str) -> None:  # pyright: ignore[reportInconsistentConstructor]
        self.spelling = spelling


Number.__name__ = "float"  # JMESPath functions recognise types by class name.


def _integer(spelling: str) -> int | Number:
    # Python's integers have no negative zero, and int() refuses thousands of digits.
    return Number(spelling) if spelling == "-0" or len(spelling) > _MAX_INTEGER_DIGITS else int(spelling)


_DOCUMENTS = msgspec.json.Decoder(Raw)
_OBJECT = msgspec.json.Decoder(dict[str, Raw])
_ARRAY = msgspec.json.Decoder(list[Raw])
# Parse leniently: some programs write NaN, lone surrogates, or control characters in strings.
_DECODER = json.JSONDecoder(parse_float=Number, parse_int=_integer, parse_constant=Number, strict=False)


def is_object(value: Value) -> TypeGuard[dict[str, Value]]:
    return isinstance(value, dict)


def is_array(value: Value) -> TypeGuard[list[Value]]:
    return isinstance(value, list)


def documents(text: str) -> list[Value]:
    """The JSON documents in a string: one, several as in NDJSON, or none if it is blank. Raises BadRequest for anything else."""
    text = text.removeprefix(_BYTE_ORDER_MARK)
    try:
        return [*_DOCUMENTS.decode_lines(text)]
    except (msgspec.DecodeError, UnicodeEncodeError):
        return _complete(text)


def parse_lazily(text: str) -> Value:
    """The document, or an array of them if there are several."""
    return _together(documents(text))


def parse(text: str) -> Value:
    """Like `parse_lazily`, with every level opened."""
    return _together(_complete(text.removeprefix(_BYTE_ORDER_MARK)))


def open_raw(value: Value) -> Value:
    """Opens one level of a Raw value."""
    if not isinstance(value, Raw):
        return value
    first = bytes(memoryview(value)[:1])
    return (
        _OBJECT.decode(value)
        if first == b"{"
        else _ARRAY.decode(value)
        if first == b"["
        else _DECODER.decode(bytes(value).decode())
    )


def parse_embedded(text: str) -> Value:
    """The JSON object or array that a string contains, or the string itself if it contains none."""
    if not text.lstrip().startswith(("{", "[", '"')):
        return text
    try:
        value = open_raw(parse_lazily(text))
    except (BadRequest, RecursionError):
        return text
    value = parse_embedded(value) if isinstance(value, str) else value
    return value if is_object(value) or is_array(value) else text


def expand(value: Value) -> Value:
    """Replaces every string that contains JSON with its content. Returns the same object if nothing changes."""
    if isinstance(value, str):
        return value if parse_embedded(value) is value else expand(parse(value))
    if is_array(value):
        items = [expand(item) for item in value]
        return value if all(new is old for new, old in zip(items, value, strict=True)) else items
    if is_object(value):
        members = {key: expand(member) for key, member in value.items()}
        return value if all(members[key] is member for key, member in value.items()) else members
    return value


def write_within(value: Value, bound: Bound) -> str | None:
    """The value as compact JSON, or None if it does not fit."""
    parts: list[str] = []
    for part in _parts(value):
        if not bound.holds(part):
            return None
        bound = bound.after(part)
        parts.append(part)
    return "".join(parts)


def quote(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def _parts(value: Value) -> Iterator[str]:
    if is_object(value):
        for index, (key, member) in enumerate(value.items()):
            yield f"{',' if index else '{'}{quote(key)}:"
            yield from _parts(member)
        yield "}" if value else "{}"
    elif is_array(value):
        for index, item in enumerate(value):
            yield "," if index else "["
            yield from _parts(item)
        yield "]" if value else "[]"
    elif isinstance(value, Raw):
        yield msgspec.json.format(bytes(value).decode(), indent=-1)
    elif isinstance(value, Number):
        yield value.spelling
    elif value is None or isinstance(value, str | int | float):
        yield json.dumps(value, ensure_ascii=False)
    else:
        raise BadRequest("The expression gives no JSON value. Use & only inside a function such as sort_by.")


def _complete(text: str) -> list[Value]:
    found: list[Value] = []
    at = _past_space(text, 0)
    while at < len(text):
        try:
            value, at = _DECODER.raw_decode(text, at)
        except json.JSONDecodeError as error:
            line, column = line_and_column(text, error.pos)
            where = f"line {line}, column {column}: {error.msg}"
            raise BadRequest(f"The output is not JSON ({where}). Use grep, lines or a slice.") from None
        found.append(value)
        at = _past_space(text, at)
    return found


def _together(found: list[Value]) -> Value:
    if not found:
        raise BadRequest("The output is empty, so there is no JSON to query.")
    return found[0] if len(found) == 1 else found


def _past_space(text: str, at: int) -> int:
    found = _SPACE.match(text, at)
    return found.end() if found else at


DETAIL_LEVELS = ((4, 12), (3, 12), (3, 6), (2, 12), (2, 6), (1, 12), (1, 6), (1, 3), (0, 0))
"""Depth and keys, from the most detailed to the least."""
_MAX_SCALAR = Bound(240, 60)


def outline_levels(found: Sequence[Value], levels: Sequence[tuple[int, int]] = DETAIL_LEVELS) -> Iterator[str]:
    """Outlines of the JSON documents in the output, one for each level. Empty if they have no structure."""
    first, *others = found
    only = open_raw(first)
    if not others and isinstance(only, str) and parse_embedded(only) is only:
        return
    label = f"{len(others) + 1:,} JSON documents, the first: " if others else ""
    yield from outline_value(first, label, levels)


def outline_value(value: Value, label: str = "", levels: Sequence[tuple[int, int]] = DETAIL_LEVELS) -> Iterator[str]:
    """Outlines of one value, from the most detailed to the least."""
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
        # Keep a reference to the value, or another object may get its id.
        if id(value) not in self._opened:
            inside = open_raw(value)
            held = parse_embedded(inside) if isinstance(inside, str) else inside
            self._opened[id(value)] = (value, held, "" if held is inside else "string that holds JSON: ")
        return self._opened[id(value)][1:]
