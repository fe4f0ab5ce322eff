"""Shortens a text that is over its limit, and says what is missing.

A limit is in characters. `STRATEGIES` is a plain mapping: put a strategy of your own into it and name it in the settings.
"""

from __future__ import annotations

from difflib import get_close_matches

from overspill.errors import SettingsError
from overspill.truncate.element import element
from overspill.truncate.ends import BothEnds, EndsStrategy, for_whole_text
from overspill.truncate.head import head
from overspill.truncate.head_tail import head_tail
from overspill.truncate.line import line
from overspill.truncate.none import none
from overspill.truncate.shape import Cut, Shape, Strategy, StrategyName, read_shape
from overspill.truncate.tail import tail

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
]

_BY_ENDS: dict[str, EndsStrategy] = {"head": head, "tail": tail, "head_tail": head_tail, "line": line}

ENDS_ARE_ENOUGH = frozenset(_BY_ENDS)
"""Strategies that do not look at the middle."""

STRATEGIES: dict[str, Strategy] = {
    **{name: for_whole_text(strategy) for name, strategy in _BY_ENDS.items()},
    "element": element,
    "none": none,
}

_DEFAULT_SHAPE = Shape()


def truncate(text: str, limit: int, strategy: str = "head_tail", shape: Shape = _DEFAULT_SHAPE) -> Cut:
    """The very text when it is within the limit, else what the strategy keeps of it; never over the limit, except by `none`."""
    _check(limit, strategy)
    return Cut(text, strategy) if len(text) <= limit else STRATEGIES[strategy](text, limit, shape)


def truncate_ends(
    head: str,
    tail: str,
    total_chars: int,
    total_lines: int,
    limit: int,
    strategy: str = "head_tail",
    shape: Shape = _DEFAULT_SHAPE,
) -> Cut:
    """As `truncate`, for a text of which only a beginning and an ending are loaded; the totals are the whole text's.

    Pieces that hold all of the text between them are treated as that text. Otherwise every strategy that would need the middle
    (`element`, `none`, your own) becomes `head_tail`, and the answer says so. Give each piece at least `limit` characters: what
    is not loaded cannot be kept.
    """
    _check(limit, strategy)
    if (whole := BothEnds(head, tail, total_chars, total_lines).whole) is not None:
        return truncate(whole, limit, strategy, shape)
    # A piece may stop between a CR and its LF; without the half it holds, no cut can part them.
    ends = BothEnds(head.removesuffix("\r"), tail.removeprefix("\n"), total_chars, total_lines)
    return _BY_ENDS.get(strategy, head_tail)(ends, limit, shape)


def _check(limit: int, strategy: str) -> None:
    if limit < 1:
        raise SettingsError(f"The limit is {limit}; it must be at least 1 character.")
    if strategy not in STRATEGIES:
        nearest = get_close_matches(strategy, STRATEGIES, n=1, cutoff=0)
        raise SettingsError(
            f"There is no truncation strategy {strategy!r}. Allowed are {', '.join(STRATEGIES)}; the nearest is {nearest[0]!r}."
        )
