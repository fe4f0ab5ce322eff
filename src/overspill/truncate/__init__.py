"""Shortens text that is over its limit, and says what is missing.

Limits are in characters. `STRATEGIES` is a plain mapping: add your own strategy to it and name it in the settings.

A built-in strategy is a function, an entry below, and a `StrategyName`.
"""

from __future__ import annotations

from collections.abc import Callable
from difflib import get_close_matches

from overspill.errors import SettingsError
from overspill.truncate.element import element
from overspill.truncate.ends import BothEnds, EndsStrategy, for_whole_text, head, head_tail, line, tail
from overspill.truncate.shape import Cut, Shape, Strategy, StrategyName, read_shape

__all__ = [
    "ENDS_ARE_ENOUGH",
    "STRATEGIES",
    "Cut",
    "Shape",
    "Strategy",
    "StrategyName",
    "read_shape",
    "truncate",
    "truncate_ends",
    "truncate_until",
]

_BY_ENDS: dict[str, EndsStrategy] = {"head": head, "tail": tail, "head_tail": head_tail, "line": line}

ENDS_ARE_ENOUGH = frozenset(_BY_ENDS)
"""Strategies that never read the middle."""

STRATEGIES: dict[str, Strategy] = {
    **{name: for_whole_text(strategy) for name, strategy in _BY_ENDS.items()},
    "element": element,
    "none": lambda text, limit, shape: Cut(text, "none"),
}

_DEFAULT_SHAPE = Shape()


def truncate(text: str, limit: int, strategy: str = "head_tail", shape: Shape = _DEFAULT_SHAPE) -> Cut:
    """Returns text within the limit unchanged, and shortens any other. Only `none` ever returns more than the limit."""
    _check(limit, strategy)
    return Cut(text, strategy) if len(text) <= limit else STRATEGIES[strategy](text, limit, shape)


def truncate_until(text: str, fits: Callable[[str], bool], ending: str = "") -> str:
    """As much of its beginning as fits, with the ending if something is left out; or a single character."""
    shown, limit = text, len(text)
    while limit > 1 and not fits(shown):
        limit = limit * 9 // 10
        shown = truncate(text, max(1, limit), "head").text + ending
    return shown


def truncate_ends(
    head: str,
    tail: str,
    total_chars: int,
    total_lines: int,
    limit: int,
    strategy: str = "head_tail",
    shape: Shape = _DEFAULT_SHAPE,
) -> Cut:
    """Like `truncate`, for text of which only both ends are loaded. The totals are those of the whole text.

    If the two pieces cover the whole text, the result is that of `truncate`. Otherwise `head_tail` replaces any strategy that
    needs the middle (`element`, `none`, your own), and the result names it. Load at least `limit` characters of each end: what is
    not loaded cannot be kept.
    """
    _check(limit, strategy)
    if (whole := BothEnds(head, tail, total_chars, total_lines).whole) is not None:
        return truncate(whole, limit, strategy, shape)
    # A piece may end between a CR and its LF. Drop its half, so that no cut can separate them.
    ends = BothEnds(head.removesuffix("\r"), tail.removeprefix("\n"), total_chars, total_lines)
    return _BY_ENDS.get(strategy, head_tail)(ends, limit, shape)


def _check(limit: int, strategy: str) -> None:
    if limit < 1:
        raise SettingsError(f"The limit is {limit}; it must be at least 1 character.")
    if strategy not in STRATEGIES:
        nearest = get_close_matches(strategy, STRATEGIES, n=1, cutoff=0)
        raise SettingsError(
            f"Unknown truncation strategy {strategy!r}; did you mean {nearest[0]!r}? The strategies are {', '.join(STRATEGIES)}."
        )
