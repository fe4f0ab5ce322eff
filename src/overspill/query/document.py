"""JSON text to values and back, without losing a digit, and JSON that hides inside strings."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, TypeAlias, TypeGuard

from overspill.errors import BadRequest
from overspill.read.passage import Bound

Value: TypeAlias = Any
"""dict, list, str, int, Number, bool or None; a float where a JMESPath function computed one."""

_NOT_JSON = "The output is not JSON (line {line}, column {column}: {reason}). Use grep, lines or a slice."
_EMPTY = "The output is empty, so there is no JSON to query."
_NO_VALUE = "The expression gives no value that JSON knows. A & belongs inside a function such as sort_by."
_MOST_DIGITS = 1000
_SPACE = re.compile(r"[ \t\r\n]*")


class Number(float):
    """A number that knows how it was written: compared as a float, given back digit for digit."""

    __slots__ = ("spelling",)
    spelling: str

    def __new__(cls, spelling: str) -> Number:
        self = super().__new__(cls, spelling)
        self.spelling = spelling
        return self


Number.__name__ = "float"  # JMESPath functions tell types by the name of the class.


def _integer(spelling: str) -> int | Number:
    # Python has no negative zero among its whole numbers, and refuses to convert thousands of digits.
    return Number(spelling) if spelling == "-0" or len(spelling) > _MOST_DIGITS else int(spelling)


_DECODER = json.JSONDecoder(parse_float=Number, parse_int=_integer, parse_constant=Number, strict=False)


def is_object(value: Value) -> TypeGuard[dict[str, Value]]:
    return isinstance(value, dict)


def is_array(value: Value) -> TypeGuard[list[Value]]:
    return isinstance(value, list)


def documents(text: str) -> list[Value]:
    """The JSON documents of a text, one or, as in NDJSON, several. BadRequest where it is anything else."""
    found: list[Value] = []
    at = _past_space(text, 1 if text.startswith("\ufeff") else 0)
    while at < len(text):
        try:
            value, at = _DECODER.raw_decode(text, at)
        except json.JSONDecodeError as error:
            raise BadRequest(_NOT_JSON.format(line=error.lineno, column=error.colno, reason=error.msg)) from None
        found.append(value)
        at = _past_space(text, at)
    if not found:
        raise BadRequest(_EMPTY)
    return found


def parse(text: str) -> Value:
    """The one document, or an array of the several."""
    found = documents(text)
    return found[0] if len(found) == 1 else found


def embedded(text: str) -> Value:
    """What a string holds if that is a JSON object or array; otherwise the very string."""
    if not text.lstrip().startswith(("{", "[", '"')):
        return text
    try:
        value = parse(text)
    except (BadRequest, RecursionError):
        return text
    value = embedded(value) if isinstance(value, str) else value
    return value if is_object(value) or is_array(value) else text


def expand(value: Value) -> Value:
    """The value with every string that holds JSON replaced by what it holds; the very value if there is none."""
    if isinstance(value, str):
        inner = embedded(value)
        return value if inner is value else expand(inner)
    if is_array(value):
        items = [expand(item) for item in value]
        return value if all(new is old for new, old in zip(items, value, strict=True)) else items
    if is_object(value):
        members = {key: expand(member) for key, member in value.items()}
        return value if all(members[key] is member for key, member in value.items()) else members
    return value


def written(value: Value, bound: Bound) -> str | None:
    """The value as compact JSON, or None as soon as it turns out larger than the bound."""
    parts: list[str] = []
    for part in _parts(value):
        if not bound.holds(part):
            return None
        bound = bound.after(part)
        parts.append(part)
    return "".join(parts)


def quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def _parts(value: Value) -> Iterator[str]:
    if is_object(value):
        for index, (key, member) in enumerate(value.items()):
            yield f"{',' if index else '{'}{quoted(key)}:"
            yield from _parts(member)
        yield "}" if value else "{}"
    elif is_array(value):
        for index, item in enumerate(value):
            yield "," if index else "["
            yield from _parts(item)
        yield "]" if value else "[]"
    elif isinstance(value, Number):
        yield value.spelling
    elif value is None or isinstance(value, str | int | float):
        yield json.dumps(value, ensure_ascii=False)
    else:
        raise BadRequest(_NO_VALUE)


def _past_space(text: str, at: int) -> int:
    found = _SPACE.match(text, at)
    return found.end() if found else at
