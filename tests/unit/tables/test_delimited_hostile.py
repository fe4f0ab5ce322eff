"""Delimited rows with hostile shapes: every row and cell is there, or a note says what is not, in linear time."""

from __future__ import annotations

import csv
import io
import time
from random import Random

import pytest
from asked_tables import read_card_tables
from extras import needs

from overspill.lexical.index import build
from overspill.lexical.rows.cells import read_columns, read_rows
from overspill.lexical.select import select
from overspill.sql.answers import read_row
from overspill.sql.library import Source, SqlLibrary
from overspill.store.readers import BytesReader
from overspill.tables.delimited import Heading, find_heading, iterate_rows, split_row, take_heading
from overspill.tables.table import describe_rows
from overspill.text.encoding import decode

pytestmark = pytest.mark.usefixtures("forked_workers")

CELLS = (
    "",
    "a",
    "12",
    "-3.5",
    'say "hi"',
    "two\nlines",
    "x,y",
    "x;y",
    "tab\there",
    "é",
    " padded ",
    '"',
    '""',
    "\u2028",
    "null",
    "a\r\nb",
)


def make_rows(seed: int, mark: str) -> tuple[str, list[list[str]], list[str]]:
    chooser = Random(seed)  # noqa: S311
    width = chooser.randint(2, 8)
    names = [f"name {number}" for number in range(width)]
    rows = [[chooser.choice(CELLS) for _ in range(width)] for _ in range(chooser.randint(5, 40))]
    rows = [[f"row {number}", *row[1:]] for number, row in enumerate(rows)]
    text = io.StringIO()
    writer = csv.writer(text, delimiter=mark, lineterminator=chooser.choice(["\n", "\r\n"]))
    writer.writerows([names, *rows])
    return text.getvalue(), rows, names


@pytest.mark.parametrize("mark", [",", "\t", ";", "|"])
def test_rows_and_cells_are_those_that_were_written(mark: str) -> None:
    for seed in range(250):
        text, rows, names = make_rows(seed, mark)
        data = text.encode()
        heading = take_heading(data)
        assert (heading.format.mark, list(heading.format.names)) == (mark, names), text
        spans = iterate_rows(data, mark, heading.first, len(data))
        assert [heading.format.split(decode(data[start:end])) for start, end in spans] == rows, text


@needs("duckdb", "sql")
@pytest.mark.parametrize("seed", range(4))
def test_sql_counts_the_rows_that_were_written(seed: int) -> None:
    text, rows, _ = make_rows(seed, ",\t;|"[seed])
    with SqlLibrary() as library:
        (table,) = library.load(Source("key", BytesReader(text.encode()), "csv"))[0].tables
    assert (table.rows, table.bad_rows) == (len(rows), 0)


def test_a_long_cell_is_read_and_the_parser_of_the_host_program_is_left_alone() -> None:
    limit = csv.field_size_limit()
    long = "x, " * 100_000
    text = 'id,note\n1,"' + long + '"\n' + "".join(f'{n},"short, {n}"\n' for n in range(2, 9))
    index = build(text.encode())
    (table,) = index.outline.tables
    assert [len(cells[1]) for _, cells in read_rows(index, table)][:2] == [len(long), 8]
    assert csv.field_size_limit() == limit


def test_a_quotation_mark_that_nothing_closes_is_part_of_its_cell() -> None:
    data = b'id,name,size\n1,"open,2\n3,b,4\n5,c,6\n'
    heading = take_heading(data)
    spans = iterate_rows(data, ",", heading.first, len(data))
    assert [split_row(decode(data[start:end]).rstrip(), ",") for start, end in spans] == [
        ["1", '"open', "2"],
        ["3", "b", "4"],
        ["5", "c", "6"],
    ]


@pytest.mark.parametrize("line", ['"a""', '"', '""', 'x,"', '"x"y', '",', '"\r'])
def test_quotation_marks_take_linear_time(line: str) -> None:
    data = "".join(f"{line}\n" for _ in range(120_000)).encode()
    started = time.process_time()
    rows = sum(1 for _ in iterate_rows(data, ",", 0, len(data)))
    assert rows > 0
    assert time.process_time() - started < 5


def test_ten_thousand_columns_are_a_table_for_the_engine_and_the_card() -> None:
    names = [f"column {number}" for number in range(10_000)]
    text = "".join(
        ",".join(row) + "\n" for row in (names, *([str(number * each) for number in range(10_000)] for each in range(5)))
    )
    index = build(text.encode())
    (table,) = index.outline.tables
    assert read_columns(index, table) == names
    (card,) = read_card_tables(text.encode())
    assert (card.rows, len(card.names)) == (5, 10_000)


@needs("duckdb", "sql")
def test_a_row_is_found_again_however_lines_end() -> None:
    text = "id,kind,value\r" + "".join(f"{n},a,{n * 2}\r" for n in range(30))
    assert read_row(BytesReader(text.encode()), 18).text == "17,a,34"


@needs("duckdb", "sql")
def test_a_row_of_a_total_is_named() -> None:
    text = "City,People,Area\n" + "".join(f"c{n},{n * 100},{n}\n" for n in range(40)) + "Total,,780\n"
    (table,) = read_card_tables(text.encode())
    assert table.tally
    assert (table.rows, list(table.tally.describe())) == (41, ["the last row sums up others: Total 780"])
    with SqlLibrary() as library:
        (loaded,) = library.load(Source("key", BytesReader(text.encode())))[0].tables
    assert (loaded.rows, loaded.note) == (41, "The last row sums up others: Total 780.")


NAMES: dict[str, tuple[str, int, list[str]]] = {
    "years": ("Region,2023,2024\nNorth,10,20\nSouth,11,21\nEast,12,22\n", 0, ["Region", "2023", "2024"]),
    "years as values": ("1999,2001,2004\n2000,2002,2005\n2001,2003,2006\n", 0, ["column1", "column2", "column3"]),
    "groups of columns": (
        ",,2023,,2024,\nRegion,City,Cost,Units,Cost,Units\n" + "N,Ulm,1,2,3,4\n" * 5,
        0,
        ["Region", "City", "2023 Cost", "2023 Units", "2024 Cost", "2024 Units"],
    ),
    "a name above an empty one": (
        "Name,Scores,,\n,math,art,music\n" + "Ann,1,2,3\n" * 5,
        0,
        ["Name", "Scores math", "Scores art", "Scores music"],
    ),
    "names and values above": (
        "Report,Q1 sales,,\nMade on,2024-01-01,,\nid,city,sum,tax\n" + "1,Ulm,3,4\n" * 5,
        2,
        ["id", "city", "sum", "tax"],
    ),
    "a title with commas": ("Sales, by city,,\nid,city,sum,tax\n" + "1,Ulm,3,4\n" * 5, 1, ["id", "city", "sum", "tax"]),
    "a first row with missing values": (
        "name,score,age\nann,n/a,-\nbob,3,40\ncat,4,50\ndan,5,60\neve,6,70\n",
        0,
        ["name", "score", "age"],
    ),
    "text alone": ("name,city\nann,ulm\nbob,bonn\ncat,jena\n", 0, ["name", "city"]),
    "a number above words": ("1,order\nr1,x\nr2,yes\nr3,no\n", 0, ["1", "order"]),
    "a number above numbers": ("7,open\n1,x\n2,yes\n3,no\n", 0, ["column1", "column2"]),
    "columns that pandas numbers": (",0,1\n0,7,1\n1,5,2\n2,9,3\n", 0, ["column1", "0", "1"]),
    "rows without a value": ("id,city,zip\n,,\n,,\n7,,\n,,\n", 0, ["id", "city", "zip"]),
    "uneven rows below names": ("id\tcity\tzip\n1\tUlm\n2\tBonn\t7\n3\tJena\t8\n4\n", 0, ["id", "city", "zip"]),
    "questions as names": (
        f"when,{'How content are you with ' * 4},why\n" + "1 May,yes,no\n" * 5,
        0,
        ["when", ("How content are you with " * 4).strip(), "why"],
    ),
    "an unnamed column": (",name,city\n0,ann,ulm\n1,bob,bonn\n2,cat,jena\n", 0, ["column1", "name", "city"]),
}


@pytest.mark.parametrize("case", NAMES)
def test_headers_are_told_from_titles_and_rows(case: str) -> None:
    text, above, names = NAMES[case]
    heading = find_heading(text.encode()) or Heading()
    assert (len(heading.above), list(heading.format.names)) == (above, names)


@needs("duckdb", "sql")
def test_a_header_that_repeats_is_no_row_and_is_named() -> None:
    rows = "".join(f"{n},city{n},{n * 7}\n" for n in range(60))
    text = f"id,city,area\n{rows}id,city,area\n{rows}".encode()
    (card,), index = read_card_tables(text), build(text)
    with SqlLibrary() as library:
        (loaded,) = library.load(Source("key", BytesReader(text)))[0].tables
    assert (card.rows, loaded.rows, index.outline.tables[0].last) == (120, 120, 120)
    said = "1 row left out: the header again"
    assert [list(describe_rows(each, None)) for each in (card.omissions, index.outline.tables[0].omissions)] == [[said], [said]]
    assert loaded.note == f"{said}."


def test_few_long_rows_without_a_last_line_end_are_a_table() -> None:
    rows = [[f"c{n}" for n in range(10_000)], *([str(n) for n in range(10_000)] for _ in range(3))]
    (card,) = read_card_tables("\n".join(map(",".join, rows)).encode())
    assert (card.rows, len(card.names)) == (3, 10_000)


def test_an_answer_shows_all_rows_of_a_header() -> None:
    text = "Year,,2023,2024\nRegion,City,Cost,Cost\n" + "".join(f"N,city{n},{n},{n * 2}\n" for n in range(400))
    shown = select(build(text.encode()), "city377", max_tokens=60).text
    assert "Year,,2023,2024\nRegion,City,Cost,Cost" in shown
    assert "N,city377,377,754" in shown


def test_a_short_row_below_two_rows_of_names_is_a_row() -> None:
    rows = "".join(f"r{n},p{n},{n * 3}.5,{n}\n" for n in range(30))
    heading = take_heading(f"Year,,2024,2024\nRegion,Product,Revenue,Units\nx,,\n{rows}".encode())
    assert heading.format.names == ("Year Region", "Year Product", "2024 Revenue", "2024 Units")
