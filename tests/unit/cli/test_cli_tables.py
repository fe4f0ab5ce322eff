"""Long tables look exactly as Rich prints them."""

from __future__ import annotations

import io
import random

import pytest
from rich import box
from rich.console import Console
from rich.table import Table

from overspill.cli import tables

WORDS = [
    "ab",
    "größe",
    "日本語テキスト",
    "x" * 30,
    "a b",
    "  lead",
    "tail  ",
    "",
    "1,234",
    "\\u202e",
    "👩\u200d👩\u200d👧 x",
    "-" * 9,
]


def printed(table_of, rows: list[list[str]], width: int, encoding: str) -> bytes:
    raw = io.BytesIO()
    file = io.TextIOWrapper(raw, encoding=encoding, errors="replace")
    table = Table(title="Title", box=box.SQUARE, title_justify="left")
    for number in range(len(rows[0])):
        justify = "right" if number % 3 == 1 else "left"
        table.add_column("ID" if not number else f"Column {number}", justify=justify, overflow="fold", no_wrap=not number)
    table_of(Console(file=file, width=width), table, rows)
    file.flush()
    return raw.getvalue()


@pytest.mark.parametrize("encoding", ["utf-8", "ascii"])
@pytest.mark.parametrize("width", [8, 20, 40, 80, 200])
def test_a_long_table_is_printed_as_rich_prints_it(width: int, encoding: str):
    chance = random.Random(width)  # noqa: S311
    for columns in range(1, 7):
        cells = [" ".join(chance.choices(WORDS, k=chance.randint(0, 4))) for _ in range(12 * columns)]
        rows = [cells[start : start + columns] for start in range(0, len(cells), columns)]
        assert printed(tables.lay_out_long, rows, width, encoding) == printed(tables.lay_out, rows, width, encoding)
