"""JSON pointers (RFC 6901) that also lead into strings that contain JSON.

Outputs too large to parse in memory are read as a stream, and only the requested value is built. The stream's parser accepts only
valid UTF-8 and shows an escaped lone surrogate as `?`.
"""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from importlib import import_module
from itertools import chain
from typing import Any, TypeAlias, cast
from urllib.parse import unquote

from overspill.errors import BadRequest
from overspill.reading.query.document import (
    Number,
    Value,
    describe_kind,
    documents,
    is_array,
    is_object,
    open_raw,
    parse_embedded,
    shorten_value,
)
from overspill.store.protocols import Reader
from overspill.store.readers import ReaderFile
from overspill.text.encoding import decode
from overspill.text.regex import regex

_WRONG_ESCAPE = regex("~(?![01])")
_INDEX = regex("0|[1-9][0-9]{0,17}")
SHOWN_KEYS = 10


def is_pointer(expression: str) -> bool:
    return not expression or expression.startswith(("/", "#"))


def split_pointer(pointer: str) -> list[str]:
    path = unquote(pointer[1:]) if pointer.startswith("#") else pointer
    if _WRONG_ESCAPE.search(path) or (path and not path.startswith("/")):
        raise BadRequest(
            f"{pointer} is not a JSON pointer. It is empty or begins with /, a ~ is written ~0 and a / inside a key ~1."
        )
    return [token.replace("~1", "/").replace("~0", "~") for token in path.split("/")[1:]]


def append_token(place: str, token: str | int) -> str:
    """The pointer to a member or element of `place`."""
    return f"{place}/{str(token).replace('~', '~0').replace('/', '~1')}"


def follow(value: Value, path: list[str], place: str = "") -> tuple[Value, bool]:
    """The value at the end of the path, and whether the path led through a string that contains JSON."""
    through = False
    for token in path:
        place = append_token(place, token)
        value = open_raw(value)
        if isinstance(value, str) and (inner := parse_embedded(value)) is not value:
            through, value = True, inner
        if is_object(value):
            if token not in value:
                raise missing_key_error(place, list(value), len(value))
            value = value[token]
        elif is_array(value):
            index = parse_index(token, place)
            if index >= len(value):
                raise missing_element_error(place, len(value))
            value = value[index]
        else:
            raise BadRequest(f"{place}: there is nothing below {describe_kind(value)}.")
    return open_raw(value), through


def parse_index(token: str, place: str) -> int:
    if not _INDEX.fullmatch(token):
        raise BadRequest(f"{place}: this is an array, so use an index: 0, 1, 2 and so on.")
    return int(token)


def missing_key_error(place: str, keys: list[str], count: int) -> BadRequest:
    return BadRequest(f"{place}: there is no such key. {list_keys(keys, count)}")


def missing_element_error(place: str, count: int) -> BadRequest:
    return BadRequest(f"{place}: the array has {count} element{'' if count == 1 else 's'}.")


def list_keys(keys: list[str], count: int | None) -> str:
    """The first keys of an object. `count` is the number of all keys, if known."""
    if not keys:
        return "The object is empty."
    shown = ", ".join(map(shorten_value, keys[:SHOWN_KEYS]))
    more = "" if count == len(keys[:SHOWN_KEYS]) else f" and {count - SHOWN_KEYS:,} more" if count else " and more"
    return f"The keys are {shown}{more}."


Event: TypeAlias = tuple[str, Any]
Events: TypeAlias = Iterator[Event]

_MAX_BUILT_EVENTS = 200_000
_MAX_FIRST_LINE_BYTES = 1024 * 1024
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_STARTS, _ENDS = ("start_map", "start_array"), ("end_map", "end_array")


def follow_stream(reader: Reader, path: list[str]) -> tuple[Value, bool]:
    """The value at the end of the path, and whether the path led through a string that contains JSON."""
    try:
        return _descend(_events(reader), path)
    except _ijson().common.JSONError as error:
        reason = str(error).split("\n")[0]
        raise BadRequest(f"The output is not JSON ({reason}). Use grep, lines or a slice.") from None


def _ijson() -> Any:
    """ijson's C backend. Loaded by name, because ijson may silently use the Python one, which is a hundred times slower."""
    return import_module("ijson.backends.yajl2_c")


def _events(reader: Reader) -> Events:
    head = reader.read(0, _MAX_FIRST_LINE_BYTES)
    start = len(_BYTE_ORDER_MARK) if head.startswith(_BYTE_ORDER_MARK) else 0
    has_several = _is_one_a_line(head)
    parsed = cast("Events", _ijson().basic_parse(ReaderFile(reader, start), multiple_values=has_several))
    return chain([("start_array", None)], parsed, [("end_array", None)]) if has_several else parsed


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
    builder = _ijson().common.ObjectBuilder()
    depth = 0
    for _ in range(_MAX_BUILT_EVENTS):
        builder.event(event, _scalar(value))
        depth += (event in _STARTS) - (event in _ENDS)
        if not depth:
            return builder.value
        event, value = next(events)
    partial = builder.value
    what = list_keys(list(partial), None) if is_object(partial) else f"an array with {len(partial):,} elements and more."
    raise BadRequest(
        f"The value at {place or 'the top'} is too large to show: {what} Point further down, or use grep, lines or a slice."
    )


def _scalar(value: Any) -> Value:
    return Number(str(value)) if isinstance(value, Decimal) else value
