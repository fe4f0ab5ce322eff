"""Counting lines: the same answer whoever asks."""

import pytest

from overspill.text.lines import count_line_ends, count_lines, line_and_column, line_number


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
