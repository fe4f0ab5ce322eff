"""Delimited rows: CSV, TSV, and rows with semicolons or bars between cells."""

from __future__ import annotations

import csv
import re
from collections import Counter
from typing import NamedTuple

from overspill.tables.table import RowFormat

_MAX_ABOVE = 6
_MIN_TITLED_CELLS = 3
"""A line above rows of two cells is as likely to be a sentence above others that have a comma."""
NUMBER = re.compile(r"\s*+[-+]?[\d.,]*\d\s*+%?$")


class Delimited(RowFormat, frozen=True):
    mark: str = ","

    def split(self, row: str) -> list[str]:
        return split_row(row, self.mark)


def split_row(row: str, mark: str) -> list[str]:
    if '"' not in row:
        return row.rstrip("\r\n").split(mark)
    try:
        return next(csv.reader([row.replace("\n", " ").replace("\r", " ")], delimiter=mark))
    except csv.Error:
        # A cell is too long for the parser, so the cells of this row are unknown.
        return []


class Dialect(NamedTuple):
    """How rows are written. `above` counts the rows above the header, such as a title; blank lines are no rows."""

    mark: str
    above: int = 0


def find_dialect(lines: list[str], min_rows: int = 3) -> Dialect | None:
    """With the character that splits these lines into the same number of cells. The last line may be cut off."""
    best, width = None, 1
    for mark in filter("\n".join(lines[:400]).__contains__, ",\t;|"):
        rows = [row for row in _rows(lines[:400], mark) if not is_blank_row(row)]
        if len(rows) < min_rows:
            continue
        cells = Counter(map(len, rows)).most_common(1)[0][0]
        above = _count_above(rows, cells)
        table = rows[above:]
        is_even = sum(len(row) == cells for row in table) >= 0.85 * len(table)
        if cells > width and is_even and len(table) >= min_rows and len(table[0]) == cells and _looks_tabular(table, mark):
            best, width = Dialect(mark, above), cells
    return best


def is_blank_row(cells: list[str]) -> bool:
    return not cells or (len(cells) == 1 and not cells[0].strip())


def _rows(lines: list[str], mark: str) -> list[list[str]]:
    try:
        return list(csv.reader((line + "\n" for line in lines), delimiter=mark))[:-1]
    except csv.Error:
        return []


def _count_above(rows: list[list[str]], cells: int) -> int:
    """How many rows are above the header: they have fewer cells, or most of theirs are empty."""
    if cells < _MIN_TITLED_CELLS:
        return 0
    for number, row in enumerate(rows[: _MAX_ABOVE + 1]):
        if len(row) == cells and 2 * sum(map(bool, row)) > cells:
            is_filled_out = any(len(above) == cells for above in rows[:number])
            # Below a first row with empty names, a row with numbers is data.
            return 0 if is_filled_out and any(map(NUMBER.match, row)) else number
    return 0


def _looks_tabular(rows: list[list[str]], mark: str) -> bool:
    """Commas also separate clauses, and semicolons end statements; in a table, header cells are short and cells are filled."""
    widest = max(len(cell) for cell in rows[0])
    spaced = sum(row[1][:1] == " " for row in rows if len(row) > 1) if mark == "," else 0
    filled = sum(any(row[1:]) for row in rows)
    return widest <= 60 and spaced < 0.5 * len(rows) and filled > 0.5 * len(rows)
