"""Evaluates a query against stored JSON."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import reduce

from msgspec import Struct

from overspill.errors import BadRequest
from overspill.reading.query.document import (
    Number,
    Value,
    describe_kind,
    expand,
    is_object,
    outline_value,
    parse,
    parse_lazily,
    quote,
    write_within,
)
from overspill.reading.query.pointer import append_token, follow, follow_stream, is_pointer, split_pointer
from overspill.reading.ranges import Bound, clip, require_whole_number
from overspill.store.protocols import Reader
from overspill.text.encoding import decode
from overspill.text.regex import regex

_TOO_DEEP = "The JSON is nested too deeply to be queried. Use grep, lines or a slice."
_PLAIN_KEY = regex(r"[\w.-]{1,64}")

_MAX_PARSED_BYTES = 64 * 1024 * 1024
_MAX_QUERY_CHARS = 10_000


class QueryAnswer(Struct, frozen=True):
    """The value as compact JSON, a string without quotes. If that does not fit: an outline, or a piece of the string."""

    text: str
    whole: bool
    """Whether the text is the complete value."""
    expanded: bool = False
    """Whether the query led into strings that contain JSON."""
    next: int | None = None
    """For a string that does not fit: the character to continue from."""
    note: str = ""
    """For a value that does not fit: says that the text is an outline, and how to request a part."""


def query(
    reader: Reader, expression: object, bound: Bound, *, start: object = 0, largest: int = _MAX_PARSED_BYTES
) -> QueryAnswer:
    """An expression is a JSON pointer if it is empty or begins with / or #, and otherwise JMESPath.

    `start` continues a string that did not fit.
    """
    if not isinstance(expression, str):
        raise BadRequest(f"The query must be a JSON pointer or a JMESPath expression, not {expression!r}.")
    begin = require_whole_number("from", start, 0)
    try:
        value, expanded = _evaluate(reader, expression, largest)
        text = value if isinstance(value, str) else value.spelling if isinstance(value, Number) else None
        if text is not None:
            return _text(text, begin, bound, expanded=expanded)
        if begin:
            raise BadRequest(f"from continues a long string, but this value is {describe_kind(value)}. Leave it out.")
        if (json := write_within(value, bound)) is not None:
            return QueryAnswer(json, True, expanded)
        note = f"The value is too large for one answer; this is its outline. Ask for a part of it{_example(value, expression)}"
        outline = next(filter(bound.after(f"\n[{note}]").holds, outline_value(value)), None)
        if outline is None:
            return QueryAnswer(clip(describe_kind(value), bound), False, expanded)
        return QueryAnswer(outline, False, expanded, note=note)
    except RecursionError:
        raise BadRequest(_TOO_DEEP) from None


def lookup(reader: Reader, pointer: str) -> Value:
    """The value that a JSON pointer refers to."""
    try:
        return _evaluate(reader, pointer, _MAX_PARSED_BYTES)[0]
    except RecursionError:
        raise BadRequest(_TOO_DEEP) from None


def _evaluate(reader: Reader, expression: str, largest: int) -> tuple[Value, bool]:
    if len(expression) > _MAX_QUERY_CHARS:
        raise BadRequest(f"The query has {len(expression):,} characters, and {_MAX_QUERY_CHARS:,} are allowed. Ask for less.")
    if is_pointer(expression):
        path = split_pointer(expression)
        if reader.size > largest:
            return follow_stream(reader, path)
        return follow(parse_lazily(decode(reader.read(0, reader.size))), path)
    from overspill.reading.query.expression import Expression  # noqa: PLC0415  # JMESPath takes long to import

    search = Expression(expression).search
    if reader.size > largest:
        raise BadRequest(
            f"The output has {reader.size} bytes, and JMESPath works only up to {largest}. "
            "Use a JSON pointer such as /items/0, or grep, lines or a slice."
        )
    return _search(search, parse(decode(reader.read(0, reader.size))), reader.size)


def _search(search: Callable[[Value, int], Value], value: Value, size: int) -> tuple[Value, bool]:
    problem: BadRequest | None = None
    for expanded, candidate in enumerate(_candidates(value)):
        try:
            result = search(candidate, size)
        except BadRequest as error:
            problem = problem or error
            continue
        if result is not None:
            return result, expanded > 0
    if problem:
        raise problem
    return None, False


def _candidates(value: Value) -> Iterator[Value]:
    """Yields the value, the value with JSON in its strings parsed, and, if only one member had such a string, its content."""
    yield value
    opened = expand(value)
    if opened is value:
        return
    yield opened
    if is_object(value):
        wrapped = [key for key, member in value.items() if isinstance(member, str) and opened[key] is not member]
        if len(wrapped) == 1:
            yield opened[wrapped[0]]


def _text(text: str, begin: int, bound: Bound, *, expanded: bool) -> QueryAnswer:
    if begin and begin >= len(text):
        raise BadRequest(f"from {begin} is past the end: the text has {len(text)} characters.")
    piece = clip(text[begin:], bound) or text[begin : begin + 1]
    end = begin + len(piece)
    return QueryAnswer(piece, len(piece) == len(text), expanded, end if end < len(text) else None)


def _example(value: Value, expression: str) -> str:
    """An example query for an error message. Empty if the first key is not a plain word, because the message would contain it."""
    first = next(iter(value)) if is_object(value) else 0
    if isinstance(first, str) and not _PLAIN_KEY.fullmatch(first):
        return ""
    if not is_pointer(expression):
        return f", such as {expression} | {quote(first) if isinstance(first, str) else '[0]'}"
    return f", such as {reduce(append_token, [*split_pointer(expression), first], '')}"
