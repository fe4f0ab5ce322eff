"""Shrinks an outline of structured data until it fits."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from overspill.truncate.shape import Shape

_READABLE_CHARS = 120
"""Strings keep at least this length, or an eighth of a small limit, while there are elements left to omit."""
_RECOGNISABLE_CHARS = 40
_USUAL_LIMITS = (3, 5, 5, 50)
"""Depth, first and last elements, and keys to begin with where the shape sets no limit."""
_MAX_GROWN_DEPTH = 32


class Level(Struct, frozen=True):
    """How much of the structure an outline shows."""

    depth: int
    first: int
    last: int
    keys: int
    shortest: int = _READABLE_CHARS


Outline: TypeAlias = Callable[[Level, int], Iterable[str]]
"""(level, maximum string length) -> the outline in pieces. Writing stops early if it does not fit."""


def shrink_levels(shape: Shape) -> Iterator[Level]:
    """Levels that show less with every step: first fewer elements and keys, then less depth, finally only counts."""
    limits = (shape.depth, shape.first_elements, shape.last_elements, shape.max_keys)
    depth, first, last, keys = (usual if limit is None else limit for limit, usual in zip(limits, _USUAL_LIMITS, strict=True))
    yield Level(depth, first, last, keys)
    while max(first, last, keys) > 1:
        first, last, keys = (count // 2 or min(count, 1) for count in (first, last, keys))
        yield Level(depth, first, last, keys)
    while depth > 1:
        depth -= 1
        yield Level(depth, first, last, keys)
    yield Level(depth, 0, 0, 0, shortest=1)


def grow_level(level: Level, limit: int, shape: Shape, fits: Callable[[Level], bool]) -> Level:
    """A level that shows as much more as fits where the shape sets no limit: deeper levels first, then elements, then keys."""
    if shape.depth is None:
        level = _grow(level, _MAX_GROWN_DEPTH, fits, ("depth",))
    sides = (("first", shape.first_elements), ("last", shape.last_elements))
    level = _grow(level, limit, fits, tuple(name for name, most in sides if most is None))
    return _grow(level, limit, fits, ("keys",)) if shape.max_keys is None else level


def _grow(level: Level, most: int, fits: Callable[[Level], bool], names: tuple[str, ...]) -> Level:
    """The level with these fields raised by the same number, up to `most`."""
    low, high = 0, most + 1
    while names and high - low > 1:
        between = min((low + high) // 2, 2 * low + 1)  # start low: results that fit are small, and most others are large
        larger = replace(level, **{name: getattr(level, name) + between for name in names})
        low, high = (between, high) if fits(larger) else (low, between)
    return replace(level, **{name: getattr(level, name) + low for name in names})


def find_largest(outline: Outline, limit: int, shape: Shape) -> tuple[str, Level, int] | None:
    """The first level that fits, as large as the shape lets it grow, with the longest strings that fit; None if nothing fits."""

    def write(level: Level) -> str | None:
        return join_within(outline(level, _shortest(level, limit)), limit)

    level = next((level for level in shrink_levels(shape) if write(level) is not None), None)
    if level is None:
        return None
    level = grow_level(level, limit, shape, lambda level: write(level) is not None)
    if (whole := join_within(outline(level, limit), limit)) is not None:
        return whole, level, limit
    text, short, long = write(level) or "", _shortest(level, limit), limit
    while long - short > 1 + short // 16:
        between = (short + long) // 2
        if (longer := join_within(outline(level, between), limit)) is None:
            long = between
        else:
            text, short = longer, between
    return text, level, short


def _shortest(level: Level, limit: int) -> int:
    return min(level.shortest, max(_RECOGNISABLE_CHARS, limit // 8))


def join_within(parts: Iterable[str], limit: int) -> str | None:
    kept: list[str] = []
    size = 0
    for part in parts:
        size += len(part)
        if size > limit:
            return None
        kept.append(part)
    return "".join(kept)
