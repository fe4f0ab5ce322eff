"""Shrinks an outline of structured data until it fits."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TypeAlias

from msgspec import Struct

from overspill.truncate.shape import Shape

_READABLE_CHARS = 120
"""Strings keep at least this length, or an eighth of a small limit, while there are elements left to omit."""
_RECOGNISABLE_CHARS = 40


class Level(Struct, frozen=True):
    """How much of the structure an outline shows."""

    depth: int
    first: int
    last: int
    keys: int
    shortest: int = _READABLE_CHARS


Outline: TypeAlias = Callable[[Level, int], Iterable[str]]
"""(level, maximum string length) -> the outline in pieces, so that writing stops early if it does not fit."""


def shrink_levels(shape: Shape) -> Iterator[Level]:
    """Less with every step: first fewer elements and keys, then less depth, finally only counts."""
    depth, first, last, keys = shape.depth, shape.first_elements, shape.last_elements, shape.max_keys
    yield Level(depth, first, last, keys)
    while max(first, last, keys) > 1:
        first, last, keys = (count // 2 or min(count, 1) for count in (first, last, keys))
        yield Level(depth, first, last, keys)
    while depth > 1:
        depth -= 1
        yield Level(depth, first, last, keys)
    yield Level(depth, 0, 0, 0, shortest=1)


def find_largest(outline: Outline, limit: int, shape: Shape) -> tuple[str, Level, int] | None:
    """The first level that fits, with the longest strings that fit; None if nothing does."""
    for level in shrink_levels(shape):
        short, long = min(level.shortest, max(_RECOGNISABLE_CHARS, limit // 8)), limit
        if (text := join_within(outline(level, short), limit)) is None:
            continue
        if (whole := join_within(outline(level, limit), limit)) is not None:
            return whole, level, limit
        while long - short > 1 + short // 16:
            between = (short + long) // 2
            if (longer := join_within(outline(level, between), limit)) is None:
                long = between
            else:
                text, short = longer, between
        return text, level, short
    return None


def join_within(parts: Iterable[str], limit: int) -> str | None:
    kept: list[str] = []
    size = 0
    for part in parts:
        size += len(part)
        if size > limit:
            return None
        kept.append(part)
    return "".join(kept)
