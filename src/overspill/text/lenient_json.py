"""Reads and writes JSON that strict libraries refuse: lone surrogates and huge numbers."""

from __future__ import annotations

import json
from typing import Any, TypeVar

import msgspec

from overspill.text.encoding import clean


def dumps(value: Any, indent: int | None = None) -> bytes:
    try:
        written = msgspec.json.encode(value)
    except (UnicodeEncodeError, TypeError, ValueError):
        separators = (",", ":") if indent is None else None
        return json.dumps(msgspec.to_builtins(value), indent=indent, separators=separators).encode()
    return written if indent is None else msgspec.json.format(written, indent=indent)


def loads(data: str | bytes, *, allow_control_characters: bool = False) -> Any:
    """Reads JSON that others wrote: lone surrogates and huge numbers too, and on request raw line ends inside strings.

    Raises ValueError if it is not JSON, and RecursionError if it is nested too deeply.
    """
    try:
        return msgspec.json.decode(data)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return json.loads(data, strict=not allow_control_characters)


def clean_value(value: Any) -> Any:
    """Replaces lone surrogates in all strings, keys included. Returns the same object if there are none."""
    try:
        msgspec.json.encode(value)
    except UnicodeEncodeError:
        return json.loads(clean(json.dumps(value, ensure_ascii=False)))
    return value


T = TypeVar("T")
UNREADABLE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)


def parse(data: bytes, kind: type[T]) -> T | None:
    """None if it is something else."""
    try:
        return msgspec.json.decode(data, type=kind)
    except UNREADABLE:
        return None
