from __future__ import annotations

import mmap
from pathlib import Path
from typing import Any

import pytest
from readers import BytesReader

from overspill.errors import BadRequest
from overspill.reading import Bound, Passage, Range, around, bytes_range, chars, grep, lines, raw
from overspill.reading.positions import View

ROOMY = Bound(10_000)


def opened(data: bytes) -> tuple[BytesReader, View]:
    reader = BytesReader(data)
    return reader, View(reader)


def test_a_small_output_comes_whole_with_its_positions() -> None:
    assert raw(*opened("één\ntwee\n".encode()), ROOMY) == Passage(
        text="één\ntwee\n", start_byte=0, end_byte=11, first_line=1, last_line=2, start_char=0, end_char=9, total=11
    )


def test_an_empty_output_is_an_empty_passage() -> None:
    assert raw(*opened(b""), ROOMY) == Passage(
        text="", start_byte=0, end_byte=0, first_line=0, last_line=0, start_char=0, end_char=0, total=0
    )


def test_what_does_not_fit_is_cut_at_a_line_end_and_continued_by_lines() -> None:
    answer = raw(*opened(b"first\nsecond\nthird\n"), Bound(14))
    assert answer.text == "first\nsecond\n"
    assert (answer.omitted, answer.next) == (6, Range("lines", 3, 3))


def test_a_line_over_the_bound_is_given_in_part_and_continued_by_bytes() -> None:
    answer = lines(*opened(b"top\n" + b"x" * 50 + b"\nend"), 2, 3, Bound(20))
    assert answer.text == "x" * 20
    assert (answer.start_byte, answer.end_byte, answer.omitted) == (4, 24, 34)
    assert answer.next == Range("bytes", 24, 58)


def test_a_bound_in_characters_holds_too() -> None:
    answer = chars(*opened("日本語テキスト".encode()), 0, None, Bound(1000, chars=3))
    assert answer.text == "日本語"
    assert answer.next == Range("chars", 3, 7)


def test_a_bound_smaller_than_a_character_still_gives_one() -> None:
    answer = chars(*opened("😀😀".encode()), 0, 2, Bound(1))
    assert answer.text == "😀"
    assert answer.next == Range("chars", 1, 2)


def test_invalid_bytes_count_as_large_as_they_are_shown() -> None:
    answer = bytes_range(*opened(b"\xff" * 10), 0, 10, Bound(7))
    assert answer.text == "\ufffd\ufffd"
    assert answer.next == Range("bytes", 2, 10)


def test_a_range_of_bytes_may_split_a_character() -> None:
    answer = bytes_range(*opened("aé".encode()), 0, 2, ROOMY)
    assert (answer.text, answer.start_byte, answer.end_byte, answer.next) == ("a\ufffd", 0, 2, None)


def test_an_end_past_the_end_means_the_end() -> None:
    reader, view = opened(b"one\ntwo\n")
    assert lines(reader, view, 2, 100, ROOMY).text == "two\n"
    assert bytes_range(reader, view, 4, 100, ROOMY).text == "two\n"
    assert chars(reader, view, 4, 100, ROOMY).text == "two\n"


def test_no_end_means_all_that_follow() -> None:
    reader, view = opened(b"one\ntwo\n")
    assert lines(reader, view, 2, None, ROOMY).text == "two\n"
    assert bytes_range(reader, view, 1, None, ROOMY).text == "ne\ntwo\n"


@pytest.mark.parametrize(
    ("first", "last", "text"),
    [
        (900, 901, "start_line 900 is past the end: the output has 3 lines."),
        (0, 1, "start_line must be at least 1, not 0."),
        (-1, 1, "start_line must be at least 1, not -1."),
        (3, 2, "The range from start_line 3 to end_line 2 is empty."),
        ("1", 2, "start_line must be a whole number, not '1'."),
        (1, 2.5, "end_line must be a whole number, not 2.5."),
        (True, 2, "start_line must be a whole number, not True."),
    ],
)
def test_lines_that_are_not_there_are_named(first: Any, last: Any, text: str) -> None:
    with pytest.raises(BadRequest) as raised:
        lines(*opened(b"a\nb\nc"), first, last, ROOMY)
    assert str(raised.value) == text


@pytest.mark.parametrize(
    ("start", "length", "text"),
    [
        (1, 5, "start 1 is past the end: the output has 1 character."),
        (-2, 5, "start must be at least 0, not -2."),
        (0, 0, "length must be at least 1, not 0."),
        (0, None, None),
    ],
)
def test_characters_that_are_not_there_are_named(start: int, length: int | None, text: str | None) -> None:
    if text is None:
        assert chars(*opened(b"a"), start, length, ROOMY).text == "a"
        return
    with pytest.raises(BadRequest) as raised:
        chars(*opened(b"a"), start, length, ROOMY)
    assert str(raised.value) == text


@pytest.mark.parametrize(
    ("start", "end", "text"),
    [(3, 4, "start 3 is past the end: the output has 3 bytes."), (2, 2, "The range from start 2 to end 2 is empty.")],
)
def test_bytes_that_are_not_there_are_named(start: int, end: int, text: str) -> None:
    with pytest.raises(BadRequest) as raised:
        bytes_range(*opened(b"abc"), start, end, ROOMY)
    assert str(raised.value) == text


def test_an_empty_output_has_no_range() -> None:
    with pytest.raises(BadRequest, match=r"^The output is empty\.$"):
        lines(*opened(b""), 1, 2, ROOMY)


def test_an_anchor_stands_in_the_middle_of_its_window() -> None:
    answer = around(*opened(b"a" * 100 + b"HERE" + b"b" * 100), "HERE", ROOMY, window=10)
    assert answer.text == "aaaHEREbbb"
    assert (answer.start_char, answer.matches, answer.next, answer.previous, answer.omitted) == (97, 1, None, None, 0)


def test_a_window_ends_where_the_output_does() -> None:
    assert around(*opened("é anchor".encode()), "anchor", ROOMY).text == "é anchor"


def test_a_window_is_never_smaller_than_its_anchor() -> None:
    assert around(*opened(b"an anchor here"), "anchor", ROOMY, window=1).text == "anchor"


def test_the_match_index_chooses_among_matches() -> None:
    answer = around(*opened(b"x1 x2 x3"), "x", ROOMY, window=2, match_index=2)
    assert (answer.text, answer.matches) == ("x3", 3)


def test_very_many_matches_are_not_counted() -> None:
    assert around(*opened(b"x" * 2000), "x", ROOMY, window=1).matches is None


def test_a_window_over_the_bound_keeps_the_anchor_and_names_both_rests() -> None:
    answer = around(*opened(b"a" * 500 + b"HERE" + b"b" * 500), "HERE", Bound(50), window=400)
    assert "HERE" in answer.text
    assert 40 <= len(answer.text) <= 50
    assert answer.previous == Range("chars", 302, answer.start_char)
    assert answer.next == Range("chars", answer.end_char, 702)
    assert answer.omitted == 400 - len(answer.text)


def test_an_anchor_over_the_bound_is_given_in_part() -> None:
    answer = around(*opened(b"a long anchor"), "long anchor", Bound(4), window=11)
    assert (answer.text, answer.next) == ("long", Range("chars", 6, 13))


@pytest.mark.parametrize(
    ("anchor", "index", "text"),
    [
        ("zzz", 0, "Anchor not found in content"),
        ("ab", 5, "Anchor not found in content at match_index 5: it occurs 2 times, and the first has match_index 0."),
        ("", 0, "The anchor must be the text to look for, not ''."),
        (7, 0, "The anchor must be the text to look for, not 7."),
        ("ab", -1, "match_index must be at least 0, not -1."),
    ],
)
def test_an_anchor_that_is_not_there_is_said_so(anchor: Any, index: int, text: str) -> None:
    with pytest.raises(BadRequest) as raised:
        around(*opened(b"ab ab"), anchor, ROOMY, match_index=index)
    assert str(raised.value) == text


def test_a_hundred_megabytes_in_one_line_are_within_reach() -> None:
    reader, view = opened(b"x" * 50_000_000 + "é needle ".encode() + b"y" * 50_000_000)
    answer = around(reader, view, "needle", Bound(100), window=20)
    assert answer.text == "xxxxxé needle yyyyyy"
    assert (answer.start_byte, answer.first_line) == (49_999_995, 1)
    tail = chars(reader, view, view.chars - 3, None, Bound(100))
    assert (tail.text, tail.last_line, tail.end_byte) == ("yyy", 1, 100_000_010)


class MappedReader(BytesReader):
    def __init__(self, path: Path) -> None:
        with path.open("rb") as file:
            self.mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        super().__init__(self.mapped[:])

    def buffer(self) -> memoryview:
        return memoryview(self.mapped)

    def close(self) -> None:
        self.mapped.close()


def test_neither_an_answer_nor_an_error_keeps_a_mapped_file_open(tmp_path: Path) -> None:
    path = tmp_path / "output"
    path.write_bytes(b"needle\n" * 5000)
    reader = MappedReader(path)
    view = View(reader)
    answers = around(reader, view, "needle", ROOMY), grep(reader, view, "need.e", Bound(100))
    with pytest.raises(BadRequest) as raised:
        around(reader, view, "no such thing", ROOMY)
    reader.close()
    assert str(raised.value) == "Anchor not found in content"
    assert reader.mapped.closed
    assert answers[1].next
