"""JSON pointers into outputs too large to parse in memory: reads a stream and builds only the value pointed at.

The parser accepts only valid UTF-8 and shows an escaped lone surrogate as `?`.
"""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from itertools import chain
from typing import Any, TypeAlias, cast

# Name the C backend: otherwise ijson may silently use the Python one, which is a hundred times slower.
from ijson.backends import yajl2_c as untyped_backend  # pyright: ignore[reportMissingTypeStubs]
from ijson.common import JSONError, ObjectBuilder  # pyright: ignore[reportMissingTypeStubs, reportUnknownVariableType]

from overspill.errors import BadRequest
from overspill.reading.query.document import Number, Value, documents, is_object
from overspill.reading.query.pointer import (
    SHOWN_KEYS,
    append_token,
    follow,
    list_keys,
    missing_element_error,
    missing_key_error,
    parse_index,
)
from overspill.store.protocols import Reader
from overspill.text.encoding import decode

Event: TypeAlias = tuple[str, Any]
Events: TypeAlias = Iterator[Event]

_NOT_JSON = "The output is not JSON ({reason}). Use grep, lines or a slice."
_TOO_MUCH = "The value at {place} is too large to show: {what} Point further down, or use grep, lines or a slice."
_MAX_BUILT_EVENTS = 200_000
_MAX_FIRST_LINE_BYTES = 1024 * 1024
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_STARTS, _ENDS = ("start_map", "start_array"), ("end_map", "end_array")


def follow_stream(reader: Reader, path: list[str]) -> tuple[Value, bool]:
    """The value at the end of the path, and whether the path led through a string that contains JSON."""
    try:
        return _descend(_events(reader), path)
    except JSONError as error:
        raise BadRequest(_NOT_JSON.format(reason=str(error).split("\n")[0])) from None


class _Stream:
    """The part of a file's interface that the parser needs."""

    def __init__(self, reader: Reader, at: int) -> None:
        self._reader = reader
        self._at = at

    def read(self, size: int) -> bytes:
        data = self._reader.read(self._at, self._at + size)
        self._at += len(data)
        return data


def _events(reader: Reader) -> Events:
    head = reader.read(0, _MAX_FIRST_LINE_BYTES)
    start = len(_BYTE_ORDER_MARK) if head.startswith(_BYTE_ORDER_MARK) else 0
    basic_parse = cast("Any", untyped_backend).basic_parse
    if not _is_one_a_line(head):
        return cast("Events", basic_parse(_Stream(reader, start)))
    parsed = cast("Events", basic_parse(_Stream(reader, start), multiple_values=True))
    return chain([("start_array", None)], parsed, [("end_array", None)])


def _is_one_a_line(head: bytes) -> bool:
    first, line_end, rest = head.partition(b"\n")
    if not line_end or not rest.strip():
        return False
    try:
        return len(documents(decode(first))) == 1
    except (BadRequest, RecursionError):
        return False


def _descend(events: Events, path: list[str]) -> tuple[Value, bool]:
    place = ""
    event, value = next(events)
    for position, token in enumerate(path):
        here, place = place, append_token(place, token)
        if event == "start_map":
            event, value = _member(events, token, place)
        elif event == "start_array":
            event, value = _element(events, parse_index(token, place), place)
        else:
            return follow(_scalar(value), path[position:], here)
    return _build(events, event, value, place), False


def _member(events: Events, token: str, place: str) -> Event:
    keys: list[str] = []
    count = 0
    for event, key in events:
        if event == "end_map":
            break
        if key == token:
            return next(events)
        count += 1
        keys += [key][: SHOWN_KEYS - len(keys)]
        _skip(events, next(events))
    raise missing_key_error(place, keys, count)


def _element(events: Events, index: int, place: str) -> Event:
    count = 0
    for event in events:
        if event[0] == "end_array":
            break
        if count == index:
            return event
        _skip(events, event)
        count += 1
    raise missing_element_error(place, count)


def _skip(events: Events, event: Event) -> None:
    depth = event[0] in _STARTS
    while depth:
        event = next(events)
        depth += (event[0] in _STARTS) - (event[0] in _ENDS)


def _build(events: Events, event: str, value: Any, place: str) -> Value:
    builder = cast("Any", ObjectBuilder())
    depth = 0
    for _ in range(_MAX_BUILT_EVENTS):
        builder.event(event, _scalar(value))
        depth += (event in _STARTS) - (event in _ENDS)
        if not depth:
            return builder.value
        event, value = next(events)
    partial = builder.value
    what = list_keys(list(partial), None) if is_object(partial) else f"an array with {len(partial):,} elements and more."
    raise BadRequest(_TOO_MUCH.format(place=place or "the top", what=what))


def _scalar(value: Any) -> Value:
    return Number(str(value)) if isinstance(value, Decimal) else value
