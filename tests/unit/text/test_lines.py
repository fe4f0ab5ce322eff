"""Counting lines: the same answer whoever asks."""

import pytest

from overspill.text.lines import count_line_ends, count_lines, iterate_lines, line_and_column, line_number


@pytest.mark.parametrize(
    ("text", "ends", "lines"),
    [("", 0, 0), ("a\nb", 1, 2), ("a\r\nb\r\n", 2, 2), ("a\rb", 1, 2), ("\n\r\n\r", 3, 3), ("a\x0b\x85\u2028b", 0, 1)],
)
def test_lines_end_with_lf_crlf_or_cr_and_nothing_else(text: str, ends: int, lines: int):
    assert count_line_ends(text) == count_line_ends(text.encode()) == ends
    assert count_lines(text) == lines


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_every_position_has_a_line_and_a_column(end: str):
    text = f"ab{end}{end}c"
    found = [line_and_column(text, at) for at in range(len(text) + 1)]
    end_columns = range(3, 3 + len(end))
    blank_columns = range(1, 1 + len(end))
    expected = [(1, 1), (1, 2), *((1, n) for n in end_columns), *((2, n) for n in blank_columns), (3, 1), (3, 2)]
    assert found == expected
    assert [line_number(text.encode(), at) for at in range(len(text) + 1)] == [line for line, _ in expected]


@pytest.mark.parametrize("ending", [b"", b"\n", b"\n\n", b"\r\n", b"cut off"])
@pytest.mark.parametrize("lengths", [(), (0,), (5, 0, 511, 512, 513), (70_000, 3, 200_000, 1), (30,) * 9_000])
def test_lines_are_found_one_after_the_other_however_long_they_are(lengths: tuple[int, ...], ending: bytes):
    text = b"before\n" + b"".join(b"x" * length + b"\n" for length in lengths) + ending
    found = [text[start:end] for start, end in iterate_lines(text, 7, len(text))]
    assert b"".join(found) == text[7:]
    assert all(line.find(b"\n") in (-1, len(line) - 1) and line for line in found)
    assert all(line.endswith(b"\n") for line in found[:-1])
