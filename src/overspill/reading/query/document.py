"""Parses and writes JSON without losing a digit, including JSON inside strings.

Values are opened on demand: until then a part of a document is `Raw`, its source, already checked to be JSON.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, TypeAlias, TypeGuard

import msgspec
from msgspec import Raw

from overspill.errors import BadRequest
from overspill.reading.passage import Bound
from overspill.text.lines import line_and_column

Value: TypeAlias = Any
"""dict, list, str, int, Number, bool, None, or Raw; a float if a JMESPath function computed one."""

_NOT_JSON = "The output is not JSON (line {line}, column {column}: {reason}). Use grep, lines or a slice."
_EMPTY = "The output is empty, so there is no JSON to query."
_NO_VALUE = "The expression gives no JSON value. Use & only inside a function such as sort_by."
_MAX_INTEGER_DIGITS = 1000
_BYTE_ORDER_MARK = "\ufeff"
_SPACE = re.compile(r"[ \t\r\n]*")


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
# More lenient: some programs write NaN, lone surrogates, or control characters in strings.
_DECODER = json.JSONDecoder(parse_float=Number, parse_int=_integer, parse_constant=Number, strict=False)


def is_object(value: Value) -> TypeGuard[dict[str, Value]]:
    return isinstance(value, dict)


def is_array(value: Value) -> TypeGuard[list[Value]]:
    return isinstance(value, list)


def documents(text: str) -> list[Value]:
    """The JSON documents in a text: one, or several as in NDJSON, or none in a blank one. Raises BadRequest for anything else."""
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
    return _OBJECT.decode(value) if first == b"{" else _ARRAY.decode(value) if first == b"[" else _DECODER.decode(_source(value))


def parse_embedded(text: str) -> Value:
    """The JSON object or array that a string contains; otherwise the string itself."""
    if not text.lstrip().startswith(("{", "[", '"')):
        return text
    try:
        value = open_raw(parse_lazily(text))
    except (BadRequest, RecursionError):
        return text
    value = parse_embedded(value) if isinstance(value, str) else value
    return value if is_object(value) or is_array(value) else text


def expand(value: Value) -> Value:
    """Replaces every string that contains JSON with its content. Returns the same object if there is none."""
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
        yield msgspec.json.format(_source(value), indent=-1)
    elif isinstance(value, Number):
        yield value.spelling
    elif value is None or isinstance(value, str | int | float):
        yield json.dumps(value, ensure_ascii=False)
    else:
        raise BadRequest(_NO_VALUE)


def _complete(text: str) -> list[Value]:
    found: list[Value] = []
    at = _past_space(text, 0)
    while at < len(text):
        try:
            value, at = _DECODER.raw_decode(text, at)
        except json.JSONDecodeError as error:
            line, column = line_and_column(text, error.pos)
            raise BadRequest(_NOT_JSON.format(line=line, column=column, reason=error.msg)) from None
        found.append(value)
        at = _past_space(text, at)
    return found


def _together(found: list[Value]) -> Value:
    if not found:
        raise BadRequest(_EMPTY)
    return found[0] if len(found) == 1 else found


def _source(value: Raw) -> str:
    return bytes(value).decode()


def _past_space(text: str, at: int) -> int:
    found = _SPACE.match(text, at)
    return found.end() if found else at
