"""What lines show as a table: where columns are, what is no row, and what is no table."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest
from linear import is_linear

from overspill.lexical.kinds import recognise
from overspill.tables.lines import find_tables, is_sure
from overspill.tables.table import FoundTable


def find(text: str) -> list[FoundTable]:
    data = text.encode()
    return list(find_tables(data, 0, len(data)))


def read(text: str) -> tuple[list[str], list[list[str]]]:
    (found,) = find(text)
    data = text.encode()
    rows = [found.format.split(data[start:end].decode()) for start, end in zip(found.starts, found.ends, strict=True)]
    return list(found.format.names), rows


def test_one_wide_cell_does_not_move_the_columns_of_other_rows():
    rows = [["root", str(n), "0.0", str(n * 10), "?", "sleep 60"] for n in range(1, 40)]
    rows[17][3] = "1234567890"
    lines = [f"{user:<8} {pid:>7} {cpu:>4} {size:>6} {tty:<4} {command}" for user, pid, cpu, size, tty, command in rows]
    names, found = read("USER         PID %CPU    VSZ TTY  COMMAND\n" + "\n".join(lines) + "\n")
    assert (names, found) == (["USER", "PID", "%CPU", "VSZ", "TTY", "COMMAND"], rows)


def test_a_row_whose_cells_cannot_be_told_apart_is_unread():
    lines = [f"name{n:<12}  {n:>5}  some words  x" for n in range(20)]
    lines[7] = "a name with many words that goes on and on over all columns"
    _, found = read("NAME              SIZE  NOTE        Z\n" + "\n".join(lines) + "\n")
    assert found[7] == []
    assert found[8] == ["name8", "8", "some words", "x"]


def test_empty_cells_stay_empty():
    text = "NAME     SIZE   OWNER   NOTE\na           1   ann\nb               ben     late\nc           3           x y\nd\n"
    assert read(text)[1] == [["a", "1", "ann", ""], ["b", "", "ben", "late"], ["c", "3", "", "x y"], ["d", "", "", ""]]


@pytest.mark.parametrize(
    ("text", "names"),
    [
        (
            "IMAGE ID       CREATED AT   SIZE\nabcdef012345   2 days ago   5MB\n012345abcdef   3 days ago   6MB\n",
            ["IMAGE ID", "CREATED AT", "SIZE"],
        ),
        ("Filesystem Size Mounted on\n/dev/vda    99G /\ntmpfs       64M /run\n", ["Filesystem", "Size", "Mounted on"]),
        ("Name      Up Time   Z\nweb       12 days   x\ndatabase  3 days    y\n", ["Name", "Up Time", "Z"]),
    ],
)
def test_a_name_may_have_a_space(text: str, names: list[str]):
    assert read(text)[0] == names


def test_two_columns_are_a_table_where_a_rule_or_capitals_show_it():
    for text in (
        "Package Version\n------- -------\na       1.0\nb       2.0\nc       3\n",
        "NAME   VALUE\na      x y\nb      z\nc      w\n",
    ):
        data = text.encode()
        (found,) = find(text)
        assert (len(found), len(found.format.names), is_sure(data, found)) == (3, 2, True)
        assert recognise(data).name == "columns"


def test_rules_headers_that_repeat_and_counts_are_no_rows():
    page = " r  b   swpd\n 1  0      0\n 2  0      5\n"
    assert read(page + page)[1] == [["1", "0", "0"], ["2", "0", "5"]] * 2
    names, rows = read(" a | b \n---+---\n 1 | 2 \n(1 row)\n\n")
    assert (names, rows) == (["a", "b"], [["1", "2"]])
    names, rows = read("+---+---+\n| a | b |\n+---+---+\n| 1 | | |\n+---+---+\n1 row in set (0.00 sec)\n")
    assert (names, rows) == (["a", "b"], [["1", "|"]])


def test_cells_over_several_lines_are_one_row():
    top, between, bottom = "╭────┬──────╮\n", "├────┼──────┤\n", "╰────┴──────╯\n"
    rows = ["│ id │ note │\n", "│ 1  │ one  │\n", "│ 2  │ two  │\n│    │ rows │\n", "│ 3  │ a    │\n"]
    assert read(top + between.join(rows) + bottom)[1] == [["1", "one"], ["2", "two\nrows"], ["3", "a"]]


def test_several_tables_have_their_titles():
    text = "Pods:\nNAME   READY   AGE\na      1/1     5d\n\nServices\n\nNAME   TYPE        PORT\nb      ClusterIP   80\n"
    assert [(found.title, found.format.names, len(found)) for found in find(text)] == [
        ("Pods", ("NAME", "READY", "AGE"), 1),
        ("Services", ("NAME", "TYPE", "PORT"), 1),
    ]


def test_rows_without_a_header_have_numbered_columns():
    assert read("  12   345 6789 a.txt\n   1     2   33 b.txt\n  13   347 6822 total\n")[0] == [
        "column1",
        "column2",
        "column3",
        "column4",
    ]


@pytest.mark.parametrize(
    "text",
    [
        "The first line of a text\nand the second line of it\nand a third one.\n",
        "def f(x):\n    return x  # as it is\n\n\ndef g(y):\n    return y\n",
        "10:00:00  INFO   started  a\n10:00:01  WARN   slow     b\n10:00:02  INFO   done     c\n",
        "  -h, --help     show this help\n  -v, --version  show the version\n  -q, --quiet    say nothing\n",
    ],
)
def test_other_text_is_no_table(text: str):
    data = text.encode()
    assert recognise(data).name != "columns"
    assert not any(is_sure(data, found) for found in find(text))


def make_rows(count: int) -> str:
    return "NAME   SIZE  NOTE\n" + "".join(f"n{n % 99:<5} {n % 9999:>4}  a note\n" for n in range(count))


HOSTILE: dict[str, Callable[[int], str]] = {
    "rows": make_rows,
    "headers": lambda size: "NAME  A  B\nx  1  2\nNAME  A  C\n" * size,
    "blocks": lambda size: "NAME  SIZE\na     1\n\n" * size,
    "bars": lambda size: "| a | b |\n" * size,
    "rules": lambda size: "+---+---+\n" * size,
    "tops": lambda size: "+---+---+\n| a | b |\n" * size,
    "wide": lambda size: "  ".join(f"c{n}" for n in range(size)) + "\n" + ("  ".join(["1"] * size) + "\n") * 9,
    "one line": lambda size: "NAME  SIZE\n" + "a  " * 9 * size + "\nb  1\n",
    "accesses": lambda size: '1.2.3.4 - - [x] "' + 'GET \\" ' * size + "\n" + '1.2.3.4 - - [x] "GET / HTTP/1.1" 200 1\n' * 9,
    "dashes": lambda size: "a b\n" + "- " * 9 * size + "\nc d\n",
    "continued": lambda size: " a | b \n---+---\n" + " 1 | x+\n" * size,
}


@pytest.mark.slow
@pytest.mark.parametrize("shape", HOSTILE)
def test_time_is_linear(shape: str):
    assert is_linear(lambda size: lambda: [len(found) for found in find(HOSTILE[shape](size))], 5_000, quick=0.3, hopeless=30)


def test_random_tables_come_back_cell_by_cell():
    made = random.Random(7)  # noqa: S311
    for _ in range(200):
        names = [f"NAME{n}" + "X" * made.randint(0, 6) for n in range(made.randint(3, 8))]
        rights = [made.random() < 0.5 for _ in names]
        rows = [
            [str(made.randint(0, 10**6)) if right else made.choice(("a", "some-name", "b/c", "long-enough")) for right in rights]
            for _ in range(made.randint(3, 30))
        ]
        sizes = [max(map(len, column)) for column in zip(names, *rows, strict=True)]
        gap = " " * made.randint(1, 3)
        lines = [
            gap.join(
                cell.rjust(size) if right else cell.ljust(size) for cell, size, right in zip(row, sizes, rights, strict=True)
            )
            for row in (names, *rows)
        ]
        assert read("\n".join(line.rstrip() for line in lines) + "\n") == (names, rows)


def test_rows_that_are_printed_field_by_field_are_rows():
    text = "-[ RECORD 1 ]\nid   | 1\nnote | a+\n     | b | c\n-[ RECORD 2 ]\nid   | 2\n\n(2 rows)\n"
    assert read(text) == (["id", "note"], [["1", "a\nb | c"], ["2", ""]])


def test_rows_that_are_not_shown_are_named_even_if_nobody_counts_them():
    rows = [f"{n:<3} {n * 7:>5}  name{n}" for n in range(1, 9)]
    (found,) = find("id   size  name\n" + "\n".join((*rows[:4], "..    ...    ...", *rows[4:])) + "\n")
    assert (len(found), [each.what for each in found.omissions]) == (8, ["that the output does not show"])
