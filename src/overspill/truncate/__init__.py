"""Shortens text that exceeds its limit, and says what is missing.

Limits are in characters. `STRATEGIES` is a plain mapping: add your own strategy to it and name it in the settings.

A built-in strategy is a function, an entry below, and a `StrategyName`.
"""

from __future__ import annotations

from collections.abc import Callable
from difflib import get_close_matches
from functools import partial

from msgspec.structs import replace

from overspill.errors import SettingsError
from overspill.text.encoding import decode
from overspill.text.lines import count_lines
from overspill.text.regex import regex
from overspill.truncate.element_json import outline_json
from overspill.truncate.element_xml import outline_xml
from overspill.truncate.ends import BothEnds, shorten_ends, shorten_text
from overspill.truncate.shape import Cut, Shape, Strategy, StrategyName, read_shape

__all__ = [
    "ENDS_ARE_ENOUGH",
    "STRATEGIES",
    "BothEnds",
    "Cut",
    "Shape",
    "Strategy",
    "StrategyName",
    "read_ends",
    "read_shape",
    "truncate",
    "truncate_ends",
    "truncate_until",
]

ENDS_ARE_ENOUGH = frozenset(("head", "tail", "head_tail", "line"))
"""Strategies that never read the middle."""
_XML = regex(r"\ufeff?[ \t\r\n]*<")


def _outline(text: str, limit: int, shape: Shape) -> Cut:
    """Keeps the structure of JSON and XML and omits elements. Falls back to `head_tail` if the text does not parse, is nested too
    deeply or cannot stay valid within the limit."""
    try:
        outline = outline_xml(text, limit, shape) if _XML.match(text) else outline_json(text, limit, shape)
    except RecursionError:
        outline = None
    if outline is None:
        return shorten_text("head_tail", text, limit, shape)
    return Cut(outline, "element", max(0, count_lines(text) - count_lines(outline)), len(text) - len(outline))


STRATEGIES: dict[str, Strategy] = {
    **{name: partial(shorten_text, name) for name in ("head", "tail", "head_tail", "line")},
    "element": _outline,
    "none": lambda text, limit, shape: Cut(text, "none"),
}

_DEFAULT_SHAPE = Shape()


def truncate(text: str, limit: int, strategy: str = "head_tail", shape: Shape = _DEFAULT_SHAPE) -> Cut:
    """Returns text within the limit unchanged, and shortens any other. Only `none` ever returns more than the limit."""
    _check(limit, strategy)
    return Cut(text, strategy) if len(text) <= limit else STRATEGIES[strategy](text, limit, shape)


def truncate_until(text: str, fits: Callable[[str], bool], ending: str = "") -> str:
    """As much of the beginning as fits, followed by `ending` if anything is left out. Returns at least one character."""
    shown, limit = text, len(text)
    while limit > 1 and not fits(shown):
        limit = limit * 9 // 10
        shown = truncate(text, max(1, limit), "head").text + ending
    return shown


def truncate_ends(ends: BothEnds, limit: int, strategy: str = "head_tail", shape: Shape = _DEFAULT_SHAPE) -> Cut:
    """Like `truncate`, for text with only its two ends loaded.

    If the two pieces cover the whole text, the result is that of `truncate`. Otherwise `head_tail` replaces any strategy that
    needs the middle (`element`, `none`, your own), and the result names it. Load at least `limit` characters of each end, because
    only loaded text can be kept.
    """
    _check(limit, strategy)
    if (whole := ends.whole) is not None:
        return truncate(whole, limit, strategy, shape)
    # A piece may end between a CR and its LF. Drop its half to keep cuts from separating them.
    ends = replace(ends, head=ends.head.removesuffix("\r"), tail=ends.tail.removeprefix("\n"))
    return shorten_ends(strategy if strategy in ENDS_ARE_ENOUGH else "head_tail", ends, limit, shape)


def read_ends(read: Callable[[int, int], bytes], size: int, chars: int, lines: int, limit: int) -> BothEnds:
    """Both ends of `size` bytes of which `read` returns a range, as much of each as may be shown within the limit."""
    reach = 4 * limit  # a character has at most four bytes, so the halves of characters are not among the last or first `limit`
    return BothEnds(decode(read(0, reach))[:limit], decode(read(max(0, size - reach), size))[-limit:], chars, lines)


def _check(limit: int, strategy: str) -> None:
    if limit < 1:
        raise SettingsError(f"The limit is {limit}; it must be at least 1 character.")
    if strategy not in STRATEGIES:
        nearest = get_close_matches(strategy, STRATEGIES, n=1, cutoff=0)
        raise SettingsError(
            f"Unknown truncation strategy {strategy!r}; did you mean {nearest[0]!r}? The strategies are {', '.join(STRATEGIES)}."
        )
