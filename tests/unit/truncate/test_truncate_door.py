"""`truncate` and `truncate_ends`: what they accept, and what holds for every strategy."""

from __future__ import annotations

from typing import get_args

import pytest
from msgspec.structs import asdict

from overspill import truncate as room
from overspill.errors import SettingsError
from overspill.settings import Settings
from overspill.settings.keys import Override, TruncationSettings
from overspill.truncate import (
    STRATEGIES,
    BothEnds,
    Cut,
    Shape,
    StrategyName,
    read_ends,
    read_shape,
    truncate,
    truncate_ends,
    truncate_until,
)

NUMBERED = "".join(f"line {number:03}\n" for number in range(1000))


def test_every_strategy_can_be_named_in_the_settings() -> None:
    assert set(STRATEGIES) == set(get_args(StrategyName))


def test_every_option_of_a_shape_is_a_setting_and_can_be_overridden_for_a_tool() -> None:
    fills = Shape(head_lines=None, tail_lines=None, depth=None, first_elements=None, last_elements=None, max_keys=None)
    assert read_shape(TruncationSettings()) == fills
    for preset in ("tool_output", "artifacts", "slow"):
        assert read_shape(Settings(preset).truncation) == Shape()
    assert set(Shape.__struct_fields__) <= set(Override.__struct_fields__)
    other = Shape(0.5, 1, 2, "end", 4, 6, 7, 8)
    assert read_shape(TruncationSettings(**asdict(other))) == other


def test_the_door_is_short() -> None:
    assert room.__all__ == [
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


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("text", ["", "short", "[1, 2]", "<a/>"])
def test_text_within_its_limit_is_returned_unchanged(strategy: str, text: str) -> None:
    cut = truncate(text, max(1, len(text)), strategy)
    assert cut == Cut(text, strategy, 0, 0)
    assert cut.text is text


def test_the_error_for_an_unknown_strategy_suggests_the_nearest_and_lists_all() -> None:
    with pytest.raises(SettingsError) as raised:
        truncate("text", 10, "head_tails")
    assert str(raised.value) == (
        "Unknown truncation strategy 'head_tails'; did you mean 'head_tail'? "
        "The strategies are head, tail, head_tail, line, element, none."
    )


@pytest.mark.parametrize("limit", [0, -1])
def test_a_limit_below_one_is_refused(limit: int) -> None:
    with pytest.raises(SettingsError, match=rf"^The limit is {limit}; it must be at least 1 character\.$"):
        truncate("", limit)
    with pytest.raises(SettingsError):
        truncate_ends(BothEnds("a", "b", 9, 1), limit)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"head_ratio": 1.5}, "head_ratio is 1.5; it must be from 0 to 1."),
        ({"head_ratio": float("nan")}, "head_ratio is nan; it must be from 0 to 1."),
        ({"line_from": "middle"}, "line_from is 'middle'; allowed are 'start' and 'end'."),
        ({"head_lines": 0}, "head_lines is 0; it must be 1 or more."),
        ({"max_keys": -1}, "max_keys is -1; it must be 0 or more."),
    ],
)
def test_an_impossible_shape_is_refused(options: dict[str, float], message: str) -> None:
    with pytest.raises(SettingsError) as raised:
        Shape(**options)  # pyright: ignore[reportArgumentType]
    assert str(raised.value) == message


def test_you_can_add_your_own_strategy() -> None:
    def shout(text: str, limit: int, shape: Shape) -> Cut:
        return Cut(text[:limit].upper(), "shout", 0, len(text) - limit)

    STRATEGIES["shout"] = shout
    try:
        assert truncate("abcdef", 3, "shout") == Cut("ABC", "shout", 0, 3)
        assert truncate_ends(BothEnds("abc", "xyz", 900, 9), 20, "shout").strategy == "head_tail"
    finally:
        del STRATEGIES["shout"]


@pytest.mark.parametrize("strategy", ["head", "tail", "head_tail", "line"])
def test_ends_give_what_the_whole_text_gives(strategy: str) -> None:
    ends = truncate_ends(BothEnds(NUMBERED[:500], NUMBERED[-500:], len(NUMBERED), 1000), 300, strategy)
    assert ends == truncate(NUMBERED, 300, strategy)


@pytest.mark.parametrize("text", ["aé€🎉" * 90, "🎉" * 301, "é" * 299 + "🎉", "€a" * 150])
def test_stored_bytes_give_what_their_text_gives(text: str) -> None:
    data, limit = text.encode(), 100
    ends = read_ends(lambda start, end: data[start:end], len(data), len(text), 1, limit)
    assert truncate_ends(ends, limit) == truncate(text, limit)


@pytest.mark.parametrize("strategy", ["element", "none"])
def test_head_tail_replaces_strategies_that_need_the_middle(strategy: str) -> None:
    ends = BothEnds(NUMBERED[:500], NUMBERED[-500:], 9000, 1000)
    assert truncate_ends(ends, 300, strategy) == truncate(NUMBERED, 300, "head_tail")


@pytest.mark.parametrize(
    ("head", "tail"), [("[1,2,3", "3,4,5]"), ("[1,2,3,4,5]", ""), ("[1,2,3,4,5]", "5]"), ("", "[1,2,3,4,5]")]
)
def test_ends_that_cover_everything_count_as_the_whole_text(head: str, tail: str) -> None:
    assert truncate_ends(BothEnds(head, tail, 11, 1), 11, "none") == Cut("[1,2,3,4,5]", "none", 0, 0)
    assert truncate_ends(BothEnds(head, tail, 11, 1), 3, "element") == Cut('"…"', "element", 0, 8)


def test_ends_without_a_middle_are_cut_even_below_the_limit() -> None:
    assert truncate_ends(BothEnds("abc\n", "xyz\n", 100, 25), 1000) == Cut(
        "abc\n\n... [23 lines / 92 chars omitted; the line below is cut] ...\nxyz\n", "head_tail", 23, 92
    )


def test_a_half_loaded_carriage_return_and_line_feed_is_not_shown() -> None:
    assert truncate_ends(BothEnds("abc\r", "\nxyz", 100, 3), 90).text == (
        "abc\n... [1 lines / 94 chars omitted; the lines above and below are cut] ...\nxyz"
    )


def test_a_text_is_cut_until_it_fits_and_says_so() -> None:
    text = "one two three four five six seven eight nine ten " * 20
    shown = truncate_until(text, lambda shown: len(shown) <= 300, "\n(cut)")
    assert shown.startswith("one two three")
    assert shown.endswith("\n(cut)")
    assert 200 < len(shown) <= 300
    assert truncate_until(text, lambda shown: True, "\n(cut)") == text
