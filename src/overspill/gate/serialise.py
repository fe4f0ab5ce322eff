"""Writes values as compact JSON. Large values are written in pieces, because writing blocks all other threads.

The text is always the same as that of `json.dumps`. Values that a seven times faster library writes identically are left to it.
"""

from __future__ import annotations

import gc
import json
from collections.abc import Iterator
from contextlib import suppress
from itertools import islice
from math import isfinite
from typing import Any, cast

import msgspec
from msgspec import Struct

from overspill.text import arguments, encoding
from overspill.types import ToolCall

_OPAQUE_VALUES = 20  # an object of another type counts as this many values
_MAX_DEPTH = 1000  # `json.dumps` gives up here too
_CONTAINERS = frozenset((dict, list, tuple))
_PLAIN = _CONTAINERS | {str, int, float, bool, type(None)}
_MIN_SAME, _MAX_SAME = 1e-4, 1e16  # numbers with a fraction that both libraries write without an exponent


class PieceLimits(Struct, frozen=True):
    """How much to write in one piece."""

    values: int = 20_000
    chars: int = 1 << 20
    slice_chars: int = 1 << 18
    """The size of the slices of a string that is too large for one piece."""


_USUAL = PieceLimits()


def to_json(value: Any) -> str:
    """Compact JSON that keeps the order of keys, big integers and non-ASCII characters."""
    if hasattr(value, "model_dump_json"):
        return value.model_dump_json(by_alias=True)
    return _ENCODER.encode(value)


def write_small(value: Any) -> str | None:
    """The text of `to_json` if writing it takes only a few milliseconds, otherwise None."""
    types = _weigh([value], _USUAL)
    return None if types is None else encoding.decode(_write_whole(value, types))


def write_json(value: Any, limits: PieceLimits = _USUAL) -> Iterator[bytes]:
    """The UTF-8 of `to_json`, in pieces. Raises the same errors."""
    if type(value) not in _CONTAINERS:
        yield encoding.encode(to_json(value))
        return
    containers, writers = [value], [_write_container(value, limits)]
    while writers:
        piece = next(writers[-1], None)
        if isinstance(piece, bytes):
            yield piece
        elif piece is None:
            containers.pop()
            writers.pop()
        else:  # our own stack, because Python's may have room for fewer levels, depending on the caller
            if any(each is piece for each in containers):
                raise ValueError("Circular reference detected")
            if len(containers) == _MAX_DEPTH:
                raise RecursionError("more than a thousand levels")
            containers.append(piece)
            writers.append(_write_container(piece, limits))


def _write_container(value: Any, limits: PieceLimits) -> Iterator[Any]:
    """Yields pieces with as many entries as fit, and containers that are too large for one piece."""
    is_dict = type(value) is dict
    rest: Iterator[Any] = iter(cast("Any", value).items() if is_dict else value)
    ahead: list[Any] = []
    step, may_grow, separator = 1, True, b""
    yield b"{" if is_dict else b"["
    while True:
        ahead += islice(rest, max(0, step - len(ahead)))
        entries = ahead[:step]
        if not entries:
            break
        types = _weigh(entries, limits)
        if types is None and len(entries) > 1:
            step, may_grow = len(entries) // 2, False
            continue
        del ahead[: len(entries)]
        large = entries[0][1] if is_dict else entries[0]
        is_dividable = type(large) in _CONTAINERS or type(large) is str
        if types is not None or not is_dividable:
            yield separator + _write_whole(dict(entries) if is_dict else entries, types)[1:-1]
            step *= 2 if may_grow and types is not None else 1
        else:
            yield separator + (_write_whole({entries[0][0]: 0}, None)[1:-2] if is_dict else b"")
            if type(large) is str:
                yield b'"'
                for start in range(0, len(large), limits.slice_chars):
                    yield _write_whole(large[start : start + limits.slice_chars], {str})[1:-1]
                yield b'"'
            else:
                yield large
        separator, may_grow = b",", may_grow or types is None
    yield b"}" if is_dict else b"]"


def _weigh(values: list[Any], limits: PieceLimits) -> set[type] | None:
    """All types in these values; None if they are too large for one piece. `object` means types that only `json.dumps` knows.

    Uses the garbage collector, which looks into containers without running their code, and much faster than a loop.
    """
    types: set[type] = set()
    count = chars = 0
    for _ in range(_MAX_DEPTH):
        if not values:
            return types
        found = set(map(type, values))
        types |= found
        if not found <= _PLAIN:
            count += _OPAQUE_VALUES * sum(type(value) not in _PLAIN for value in values)
        if str in found:
            chars += sum(map(len, [value for value in values if type(value) is str]))
        if float in found and not _are_same([value for value in values if type(value) is float]):
            types.add(object)
        containers = [value for value in values if type(value) in _CONTAINERS] if found & _CONTAINERS else []
        count += len(values)
        if count + sum(map(len, containers)) > limits.values or chars > limits.chars:
            return None
        values = gc.get_referents(*containers)
    return types | {object}


def _are_same(numbers: list[float]) -> bool:
    """Whether both libraries write them the same way: neither with an exponent, nor infinite, nor NaN."""
    return (
        isfinite(sum(numbers))
        and max(map(abs, numbers)) < _MAX_SAME
        and min(map(abs, filter(None, numbers)), default=_MIN_SAME) >= _MIN_SAME
    )


def _write_whole(value: Any, types: set[type] | None) -> bytes:
    """A value in one piece. `types`: all types in it, if known."""
    if types is not None and types <= _PLAIN:
        # `to_json` writes or refuses lone surrogates, keys that are not strings, integers with too many digits, and deep nesting.
        with suppress(TypeError, ValueError, OverflowError, RecursionError):
            return msgspec.json.encode(value)
    return encoding.encode(to_json(value))


def _plain(value: Any) -> Any:
    if hasattr(value, "model_dump"):
        return value.model_dump(mode="json", by_alias=True)
    return msgspec.to_builtins(value)


_ENCODER = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), default=_plain)


def write_arguments(call: ToolCall) -> str:
    try:
        return (arguments.encode_arguments(call.args) or b"").decode() or to_json(call.args)
    except (TypeError, ValueError, RecursionError):
        return "{}"
