"""Headers of HTML tables that take several rows, or have cells over several columns."""

from __future__ import annotations

import pytest

from overspill.lexical.index import Index, build
from overspill.lexical.rows.cells import read_columns, read_rows
from overspill.lexical.select import select

HEADER = (
    "<tr><th rowspan=2>Team</th><th colspan='3'>Home</th><th COLSPAN=\"3\">Away</th></tr>"
    "<tr><th>Won</th><th>Drawn</th><th>Lost</th><th>Won</th><th>Drawn</th><th>Lost</th></tr>"
)
GAMES = [(f"Team{number}", *(number * prime % 101 for prime in (7, 11, 13, 17, 19, 23))) for number in range(60)]


def build_page(header: str, rows: list[tuple[object, ...]]) -> Index:
    body = "".join("<tr>" + "".join(f"<td>{cell}</td>" for cell in row) + "</tr>" for row in rows)
    return build(f"<html><body><h1>League</h1><table>{header}{body}</table></body></html>".encode())


def list_columns(header: str, rows: list[tuple[object, ...]] = GAMES) -> list[str]:
    index = build_page(header, rows)
    return read_columns(index, index.outline.tables[0])


def test_a_column_has_the_names_of_all_cells_above_it():
    assert list_columns(HEADER) == ["Team", "Home Won", "Home Drawn", "Home Lost", "Away Won", "Away Drawn", "Away Lost"]


@pytest.mark.parametrize(
    ("question", "column"),
    [("which team lost the most away", 6), ("which team won the most at home", 1), ("the team with the highest away drawn", 5)],
)
def test_rows_are_ordered_by_the_column_that_is_meant(question: str, column: int):
    found = select(build_page(HEADER, GAMES), question, max_tokens=120)
    best = max(GAMES, key=lambda row: int(row[column]))
    assert f"{best[0]} | {best[1]} | " in found.text


def test_both_rows_of_the_header_are_shown():
    found = select(build_page(HEADER, GAMES), "games of Team37", max_tokens=100)
    assert "Team | Home | Away" in found.text
    assert "Won | Drawn | Lost | Won | Drawn | Lost" in found.text
    assert "Team37 | " in found.text


def test_a_row_of_values_is_no_header_even_below_cells_that_span_it():
    header = "<tr><th colspan=2>Team</th><th>Points</th></tr>"
    assert list_columns(header, [("red", "Team1", 3), ("blue", "Team2", 5), ("green", "Team3", 7)]) == ["Team", "Team", "Points"]


def test_spans_that_are_no_sizes_count_as_one_column_and_huge_ones_end():
    header = "<tr><th colspan=0>a</th><th colspan=x>b</th><th rowspan=>c</th></tr>"
    rows: list[tuple[object, ...]] = [(1, 2, 3), (4, 5, 6), (7, 8, 9)]
    assert list_columns(header, rows) == ["a", "b", "c"]
    wide = "<tr>" + "".join(f"<th colspan=999 rowspan=999>{number}</th>" for number in range(300)) + "</tr>"
    assert len(list_columns(wide, rows)) <= 500


def test_a_row_may_be_one_cell_that_spans_all_columns_or_have_no_text():
    rows = (
        '<tr><td rowspan=3>north</td><td colspan=2>calm</td></tr><tr><td colspan=2>1.5</td></tr><tr><td colspan="2"></td></tr>'
        '<tr><td colspan="3">no data</td></tr><tr><td>south</td><td>a</td><td>b</td></tr>'
    )
    index = build(f"<table><tr><th>Where</th><th>First</th><th>Last</th></tr>{rows}</table><p>calm | too</p>".encode())
    (table,) = index.outline.tables
    assert [cells for _, cells in read_rows(index, table)] == [
        ["north", "calm", "calm"],
        ["north", "1.5", "1.5"],
        ["north", "", ""],
        ["no data", "no data", "no data"],
        ["south", "a", "b"],
    ]


def test_a_table_with_a_comment_that_does_not_end_is_read_without_its_spans():
    rows = "<tr><th>a</th><th colspan=2>b</th></tr>" + "<tr><td>1</td><td>2</td></tr>" * 4
    index = build(f"<table>{rows}<tr><td>x<!-- y</td></tr></table>".encode())
    assert [read_columns(index, table) for table in index.outline.tables] == [["a", "b"]]
