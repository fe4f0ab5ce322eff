"""head, tail, head_tail, line and none: which lines stay, and what the marker says."""

from __future__ import annotations

import pytest

from overspill.truncate import Cut, Shape, truncate

NUMBERED = "".join(f"line {number:03}\n" for number in range(1000))


def test_head_keeps_the_first_lines_and_counts_the_rest() -> None:
    assert truncate(NUMBERED, 92, "head") == Cut(
        "line 000\nline 001\nline 002\nline 003\n\n... [Remainder omitted: 996 lines / 8,964 chars] ...", "head", 996, 8964
    )


def test_tail_keeps_the_last_lines_and_counts_the_rest() -> None:
    assert truncate(NUMBERED, 84, "tail") == Cut(
        "... [Beginning omitted: 997 lines / 8,973 chars] ...\n\nline 997\nline 998\nline 999\n", "tail", 997, 8973
    )


def test_head_tail_keeps_both_ends_with_the_marker_between() -> None:
    assert truncate(NUMBERED, 90) == Cut(
        "line 000\nline 001\nline 002\n\n... [995 lines / 8,955 chars omitted] ...\nline 998\nline 999\n", "head_tail", 995, 8955
    )


def test_head_tail_gives_three_fifths_to_the_head() -> None:
    head, tail = truncate(NUMBERED, 5042).text.split("... [")
    assert (head.count("\nline"), tail.count("\nline")) == (332, 222)


def test_the_ratio_of_head_tail_can_be_chosen() -> None:
    assert truncate(NUMBERED, 90, shape=Shape(head_ratio=0.2)).text == (
        "line 000\n\n... [995 lines / 8,955 chars omitted] ...\nline 996\nline 997\nline 998\nline 999\n"
    )


def test_head_keeps_no_more_than_three_hundred_lines() -> None:
    cut = truncate(NUMBERED, 8000, "head")
    assert cut.text.endswith("line 299\n\n... [Remainder omitted: 700 lines / 6,300 chars] ...")


def test_tail_keeps_no_more_than_two_hundred_lines() -> None:
    cut = truncate(NUMBERED, 8000, "tail")
    assert cut.text.startswith("... [Beginning omitted: 800 lines / 7,200 chars] ...\n\nline 800\n")


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_every_kind_of_line_end_is_one_line(end: str) -> None:
    text = NUMBERED.replace("\n", end)
    shape = Shape(head_lines=2, tail_lines=3)
    head, tail = truncate(text, 8000, "head", shape), truncate(text, 8000, "tail", shape)
    assert head.text.startswith(f"line 000{end}line 001{end}")
    assert head.omitted_lines == 998
    assert tail.text.endswith(f"line 997{end}line 998{end}line 999{end}")
    assert tail.omitted_lines == 997
    both = truncate(text, 100)
    assert both.omitted_lines + both.text.count("line ") == 1000


def test_a_blank_line_parts_the_marker_from_a_kept_carriage_return() -> None:
    assert truncate("ab\r" * 100, 70, "head", Shape(head_lines=1)).text == (
        "ab\r\n\n... [Remainder omitted: 99 lines / 297 chars] ..."
    )


def test_a_line_and_paragraph_separator_ends_no_line() -> None:
    assert truncate("a\u2028b\u2029c\x0b\x0c\x85" * 100, 90, "head").omitted_lines == 0


def test_empty_lines_are_lines() -> None:
    assert truncate("\n" * 500, 100, "tail", Shape(tail_lines=7)) == Cut(
        "... [Beginning omitted: 493 lines / 493 chars] ...\n\n" + "\n" * 7, "tail", 493, 493
    )


def test_head_cuts_an_over_long_line_and_says_so() -> None:
    assert truncate("x" * 40_000 + "\nsecond\n", 100, "head") == Cut(
        "x" * 24 + "\n\n... [Remainder omitted: 1 lines / 39,984 chars; the line above is cut] ...", "head", 1, 39_984
    )


def test_tail_cuts_an_over_long_line_and_says_so() -> None:
    assert truncate("first\n" + "x" * 40_000, 100, "tail") == Cut(
        "... [Beginning omitted: 1 lines / 39,982 chars; the line below is cut] ...\n\n" + "x" * 24, "tail", 1, 39_982
    )


def test_head_tail_cuts_an_over_long_line_at_both_sides_and_says_so() -> None:
    assert truncate("x" * 40_000, 100) == Cut(
        "x" * 13 + "\n... [0 lines / 39,977 chars omitted; the lines above and below are cut] ...\n" + "x" * 10,
        "head_tail",
        0,
        39_977,
    )


def test_head_tail_says_which_side_is_cut() -> None:
    lines = "line\n" * 20
    assert truncate("x" * 200 + "\n" + lines, 100).text == (
        "x" * 15 + "\n... [18 lines / 276 chars omitted; the line above is cut] ...\n" + "line\n" * 2
    )
    assert truncate(lines + "x" * 200, 100).text == (
        "line\n" * 3 + "\n... [17 lines / 275 chars omitted; the line below is cut] ...\n" + "x" * 10
    )


def test_a_short_line_before_an_over_long_one_does_not_leave_the_room_empty() -> None:
    cut = truncate("title\n" + "x" * 40_000, 200, "head")
    assert cut.text.startswith("title\nxxxxx")
    assert len(cut.text) > 190


def test_a_line_shown_up_to_its_end_is_not_called_cut() -> None:
    text = "x" * 30 + "\n" + "y" * 970
    assert truncate(text, 82, "head").text == "x" * 30 + "\n\n... [Remainder omitted: 1 lines / 971 chars] ..."


def test_line_keeps_whole_lines_from_the_start() -> None:
    assert truncate(NUMBERED, 8000, "line", Shape(head_lines=2)) == Cut(
        "line 000\nline 001\n\n... [Remainder omitted: 998 lines / 8,982 chars] ...", "line", 998, 8982
    )


def test_line_keeps_whole_lines_from_the_end() -> None:
    assert truncate(NUMBERED, 75, "line", Shape(line_from="end")) == Cut(
        "... [Beginning omitted: 998 lines / 8,982 chars] ...\n\nline 998\nline 999\n", "line", 998, 8982
    )


@pytest.mark.parametrize(("line_from", "word"), [("start", "Remainder"), ("end", "Beginning")])
def test_line_shows_only_the_marker_where_no_line_fits(line_from: str, word: str) -> None:
    text = "x" * 9000 + "\n" + "y" * 9000
    assert truncate(text, 100, "line", Shape(line_from=line_from)).text == f"... [{word} omitted: 2 lines / 18,001 chars] ..."  # pyright: ignore[reportArgumentType]


def test_none_leaves_the_text_whole_whatever_the_limit() -> None:
    cut = truncate(NUMBERED, 10, "none")
    assert cut == Cut(NUMBERED, "none", 0, 0)
    assert cut.text is NUMBERED


@pytest.mark.parametrize(
    ("limit", "text"),
    [
        (1, "…"),
        (2, "0…"),
        (12, "01234567890…"),
        (21, "01234567890123456789…"),
        (23, "0123456789012345678901…"),
        (24, "0[99,999 chars omitted]"),
        (40, "01234567890123456[99,983 chars omitted]"),
    ],
)
def test_a_smaller_limit_gets_a_shorter_marker(limit: int, text: str) -> None:
    assert truncate("0123456789" * 10_000, limit, "head").text == text


def test_tiny_limits_keep_both_ends_too() -> None:
    assert truncate("0123456789" * 10, 6).text == "012…89"


def test_line_shows_the_shortest_marker_in_the_tiniest_room() -> None:
    assert truncate("abcdef\nghi", 3, "line").text == "…"
    assert truncate("ab\nghi" * 9, 4, "line").text == "ab\n…"
    assert truncate("abcdef\nghi" * 9, 25, "line").text == "abcdef\n[83 chars omitted]"


def test_a_cut_does_not_part_carriage_return_and_line_feed() -> None:
    text = "abc\r\ndef"
    assert truncate(text, 5, "head").text == "abc…"
    assert truncate(text, 5, "tail").text == "…def"


@pytest.mark.parametrize(
    "cluster", ["e\u0301", "\U0001f468\u200d\U0001f469\u200d\U0001f467", "\u2764\ufe0f", "\U0001f44d\U0001f3fd"]
)
def test_a_cut_does_not_part_what_is_read_as_one_character(cluster: str) -> None:
    for limit in range(8, 20):
        assert truncate("xx" + cluster * 4000, limit, "head").text[2:].replace(cluster, "") == "…"
        assert truncate(cluster * 4000 + "xx", limit, "tail").text[:-2].replace(cluster, "") == "…"


def test_a_pile_of_accents_is_cut_where_the_room_ends() -> None:
    assert truncate("e" + "\u0301" * 500, 19, "head").text == "e" + "\u0301" * 17 + "…"


def test_an_accent_after_a_line_end_belongs_to_no_line_end() -> None:
    assert truncate("ab\r\n" + "\u0301" * 12, 12, "head").text == "ab\r\n…"
