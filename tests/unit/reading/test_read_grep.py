from __future__ import annotations

import re
from typing import Any

import pytest
from readers import BytesReader

from overspill.errors import BadRequest
from overspill.reading import Bound, Grep, grep
from overspill.reading.positions import View

ROOMY = Bound(12_288)
LETTERS = b"".join(b"%c\n" % letter for letter in b"abcdefghij")


def search(data: bytes, pattern: str, bound: Bound = ROOMY, **options: Any) -> Grep:
    reader = BytesReader(data)
    return grep(reader, View(reader), pattern, bound, **options)


def test_a_hit_stands_between_two_lines_of_context() -> None:
    assert search(LETTERS, "e") == Grep(
        text="3-c\n4-d\n5:e\n6-f\n7-g", hits=1, total=1, exact=True, searched_from=0, searched_to=20, next=None, context=2
    )


def test_context_ends_where_the_output_does() -> None:
    assert search(LETTERS, "a|j", context=1).text == "1:a\n2-b\n--\n9-i\n10:j"


def test_overlapping_context_is_merged() -> None:
    assert search(LETTERS, "c|f|g").text == "1-a\n2-b\n3:c\n4-d\n5-e\n6:f\n7:g\n8-h\n9-i"


def test_adjacent_groups_need_no_separator() -> None:
    assert search(LETTERS, "b|e", context=1).text == "1-a\n2:b\n3-c\n4-d\n5:e\n6-f"


def test_without_context_there_are_only_hits() -> None:
    assert search(LETTERS, "b|e", context=0).text == "2:b\n5:e"


def test_nothing_found_says_what_was_searched() -> None:
    answer = search(LETTERS, "z", start_byte=4)
    assert (answer.text, answer.hits, answer.total, answer.exact, answer.next) == ("", 0, 0, True, None)
    assert (answer.searched_from, answer.searched_to) == (4, 20)


def test_an_empty_output_has_no_hits() -> None:
    assert search(b"", ".*").total == 0


def test_anchors_stand_at_lines_whatever_ends_them() -> None:
    assert search(b"one\r\ntwo\rthree\nfour", "^t.*e$|^two$|^one$|r$", context=0).text == "1:one\n2:two\n3:three\n4:four"


def test_there_is_no_line_between_cr_and_lf() -> None:
    assert search(b"a\r\n\r\nb\r\n", "^$", context=0).text == "2:"


def test_a_dot_and_a_class_stay_within_a_line() -> None:
    assert search(b"a\nb\r\nc", "a.*b|b[^x]c|(?s)a.b", context=0).hits == 0
    assert search(b"key: 1\nkey:\n2", r"key:[^\n]*1|key:\s*2", context=0).text == "1:key: 1"


def test_case_is_ignored_on_request() -> None:
    assert search("GRÖSSE\ngröße".encode(), "grö", context=0).text == "2:größe"
    assert search("GRÖSSE\ngröße".encode(), "grö", context=0, ignore_case=True).text == "1:GRÖSSE\n2:größe"


def test_a_literal_is_taken_as_it_is() -> None:
    assert search(b"a.c\nabc", "a.c", context=0, literal=True).text == "1:a.c"
    assert search(b"A.C\nabc", "a.c", context=0, literal=True, ignore_case=True).text == "1:A.C"


def test_invalid_bytes_are_searched_like_any_character() -> None:
    assert search(b"a\xffc\na\xc3\xa9c\r\xed\xa0\x80", "^a.c$|^.$", context=0).text == "1:a\ufffdc\n2:aéc\n3:\ud800"


def test_a_pattern_that_matches_nothing_everywhere_hits_each_line_once() -> None:
    assert search(b"ab\n\ncd", "x*", context=0).text == "1:ab\n2:\n3:cd"
    assert search(b"ab\ncd", "", context=0).text == "1:ab\n2:cd"
    assert search(b"ab\ncd\n", "$", context=0).text == "1:ab\n2:cd"


@pytest.mark.parametrize("pattern", ["a\nb", r"a\nb", r"\r", r"\Ab", r"b\z", r"(?-m)^b", r"[ab]\n"])
def test_a_pattern_over_lines_is_refused(pattern: str) -> None:
    with pytest.raises(BadRequest, match=r"^A pattern matches within one line"):
        search(LETTERS, pattern)


def test_a_literal_over_lines_is_refused() -> None:
    with pytest.raises(BadRequest, match=r"^A pattern matches within one line"):
        search(LETTERS, "a\nb", literal=True)


def test_an_escaped_backslash_before_n_is_no_line_end() -> None:
    assert search(rb"C:\new", r"C:\\new", context=0).hits == 1
    assert search(rb"C:\new", r"C:\new", context=0, literal=True).hits == 1


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        ("a(?=b)", "The pattern cannot be used: invalid perl operator: (?=. Look-around and backreferences are not supported."),
        ("a(", "The pattern cannot be used: missing ): a(. Look-around and backreferences are not supported."),
        (r"(a)\1", r"The pattern cannot be used: invalid escape sequence: \1. Look-around and backreferences are not supported."),
    ],
)
def test_a_pattern_that_cannot_be_used_is_explained(pattern: str, text: str) -> None:
    with pytest.raises(BadRequest) as raised:
        search(LETTERS, pattern)
    assert str(raised.value) == text


@pytest.mark.parametrize(
    ("pattern", "options", "text"),
    [
        ("a", {"start_byte": 21}, "from 21 is past the end: the output has 20 bytes."),
        ("a", {"start_byte": -1}, "from must be at least 0, not -1."),
        ("a", {"context": "2"}, "context must be a whole number, not '2'."),
        (7, {}, "The pattern must be a string, not 7."),
    ],
)
def test_a_request_that_cannot_be_served_is_explained(pattern: Any, options: dict[str, Any], text: str) -> None:
    with pytest.raises(BadRequest) as raised:
        search(LETTERS, pattern, **options)
    assert str(raised.value) == text


def test_hits_that_do_not_fit_are_counted_and_continued() -> None:
    data = b"".join(b"hit %d\n" % number for number in range(50))
    answer = search(data, "hit", Bound(120), context=0)
    assert answer.text == "\n".join(f"{number + 1}:hit {number}" for number in range(14))
    assert (answer.hits, answer.total, answer.exact, answer.next) == (14, 50, True, 88)
    assert search(data, "hit", Bound(120), context=0, start_byte=88).text.startswith("15:hit 14\n")


def test_very_many_hits_are_not_all_counted() -> None:
    answer = search(b"hit\n" * 5000, "hit", Bound(100))
    assert not answer.exact
    assert 1000 < answer.total < 1100
    assert answer.next is not None
    assert answer.next <= answer.searched_to < 20_000


def test_a_continuation_brings_the_context_not_shown_yet() -> None:
    first = search(LETTERS, "b|h", Bound(22))
    assert (first.text, first.next) == ("1-a\n2:b\n3-c\n4-d", 10)
    assert search(LETTERS, "b|h", Bound(22), start_byte=10).text == "6-f\n7-g\n8:h\n9-i\n10-j"


def test_context_gives_way_before_a_hit_does() -> None:
    answer = search(LETTERS, "e", Bound(12))
    assert (answer.text, answer.context) == ("4-d\n5:e\n6-f", 1)
    answer = search(LETTERS, "e", Bound(4))
    assert (answer.text, answer.context) == ("5:e", 0)


def test_a_row_over_the_bound_is_clipped() -> None:
    assert search(b"1234567890", "5", Bound(4)).text == "1 (b"
    assert search(b"abc", "b", Bound(100, chars=3)).text == "1:a"


def test_a_long_line_is_shown_around_its_hits() -> None:
    answer = search(b"top\n" + b"x" * 5000 + "é needle ".encode() + b"y" * 5000 + b" needle\nend", "needle", context=1)
    rows = answer.text.split("\n")
    assert rows[0] == "1-top"
    assert rows[1] == "2 (byte 4507, char 4507):…" + "x" * 497 + "é needle " + "y" * 493 + "…"
    assert rows[2] == "2 (byte 9515, char 9514):…" + "y" * 499 + " needle"
    assert rows[3:] == ["3-end"]
    assert (answer.hits, answer.total) == (2, 2)


def test_a_long_context_line_is_shown_from_its_beginning() -> None:
    answer = search(b"a" + "é".encode() * 2000 + b"\nhit", "hit")
    assert answer.text == "1 (byte 0, char 0)-a" + "é" * 499 + "…\n2:hit"


def test_a_match_longer_than_its_row_is_one_hit() -> None:
    answer = search(b"x" * 3000 + b"\nx", "x+", context=0)
    assert answer.text == "1 (byte 0, char 0):" + "x" * 500 + "…\n2:x"


@pytest.mark.slow
def test_one_line_of_a_hundred_megabytes_is_searched() -> None:
    data = b"x" * 60_000_000 + b" needle-17 " + b"y" * 40_000_000
    for pattern in ("needle-17", "needle-[0-9]+", "(?i)NEEDLE"):
        answer = search(data, pattern)
        assert answer.text == "1 (byte 59999501, char 59999501):…" + "x" * 499 + " needle-17 " + "y" * 490 + "…"
        assert (answer.total, answer.exact) == (1, True)


def test_an_output_growing_meanwhile_is_searched_as_far_as_the_view_goes() -> None:
    reader = BytesReader(b"needle\n")
    view = View(reader)
    reader.data += b"needle\n"
    assert grep(reader, view, "needle", ROOMY).text == "1:needle"


def test_context_has_an_upper_limit_and_says_so() -> None:
    answer = search(b"x\n" * 300 + b"hit\n", "hit", context=1000)
    assert answer.context == 200
    assert len(re.findall("-x", answer.text)) == 200
