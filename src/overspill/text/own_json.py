"""JSON that Overspill wrote, and that others may have changed since."""

from __future__ import annotations

from typing import TypeVar

import msgspec

T = TypeVar("T")
UNREADABLE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)


def parse(data: bytes, kind: type[T]) -> T | None:
    """None if it is something else."""
    try:
        return msgspec.json.decode(data, type=kind)
    except UNREADABLE:
        return None
