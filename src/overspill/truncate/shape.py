"""The options that a strategy takes, and the result that it returns."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, TypeAlias

from msgspec import Struct

from overspill.errors import SettingsError
from overspill.text.humanize import count_noun

_MINIMUMS = {"head_lines": 1, "tail_lines": 1, "depth": 1, "first_elements": 0, "last_elements": 0, "max_keys": 0}


StrategyName: TypeAlias = Literal["head", "tail", "head_tail", "line", "element", "none"]
"""The built-in strategies, as the settings name them."""


class Shape(Struct, frozen=True):
    """The options of the strategies, named as in the settings' `truncation` section."""

    head_ratio: float = 0.6
    """The share of the room that `head_tail`, or a string inside JSON or XML, gives to the beginning."""
    head_lines: int | None = 300
    """None, here and in the following options, means as many as fit."""
    tail_lines: int | None = 200
    line_from: Literal["start", "end"] = "start"
    depth: int | None = 3
    """How many levels of arrays, objects or elements with children to show; deeper ones show only their count."""
    first_elements: int | None = 5
    last_elements: int | None = 5
    max_keys: int | None = 50

    def __post_init__(self) -> None:
        if not 0 <= self.head_ratio <= 1:
            raise SettingsError(f"head_ratio is {self.head_ratio}; it must be from 0 to 1.")
        if self.line_from not in ("start", "end"):
            raise SettingsError(f"line_from is {self.line_from!r}; allowed are 'start' and 'end'.")
        for name, least in _MINIMUMS.items():
            if (value := getattr(self, name)) is not None and value < least:
                raise SettingsError(f"{name} is {value}; it must be {least} or more.")


def read_shape(options: object) -> Shape:
    """The shape that the settings' `truncation` section, or anything else with the same attributes, describes."""
    return Shape(**{name: getattr(options, name) for name in Shape.__struct_fields__})


class Cut(Struct, frozen=True):
    """The shortened text.

    The counts refer to the source: lines that are not shown even in part, and characters that are not shown. `element` writes new
    text, so its counts are how many lines and characters that text has fewer than the source.
    """

    text: str
    strategy: str
    """The strategy actually used: `head_tail` if `element` could not parse the text."""
    omitted_lines: int = 0
    omitted_chars: int = 0


Strategy: TypeAlias = Callable[[str, int, Shape], Cut]
"""(text, limit in characters, shape) -> Cut. Called only if the text is over the limit."""

ELLIPSIS = "…"


def omitted_in_string(chars: int) -> str:
    return f"... [{chars:,} chars omitted] ..."


def say_omitted(count: int, noun: str) -> str:
    return f"{count_noun(count, noun)} omitted"
