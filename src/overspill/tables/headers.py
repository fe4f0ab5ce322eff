"""Decides which of a table's first rows name its columns, and which come before them, such as a title."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import accumulate, pairwise
from typing import NamedTuple

from overspill.tables.table import make_unique, name_column
from overspill.tables.types import is_value
from overspill.text.regex import Pattern, regex

_MAX_ABOVE = 6
_MAX_HEADER_ROWS = 3
_MIN_TITLED_CELLS = 3
"""With only two cells in a row, a line above is just as likely a sentence above others with a comma."""
_MIN_ALIKE = 0.8
"""The share of a column's cells that must be numbers for a word above them to be a name."""
NUMBER = regex(r"\A\s*+[-+]?[\d.,]*\d\s*+(?:%|[KMGTP]i?B?)?$")
_PERIOD = regex(r"\A\s*+(?:(?:1[89]|2[01])\d\d(?:-\d\d){0,2}|\d\d?/\d\d?/(?:\d\d){1,2})\s*+$")
"""A year or a date: either a value, or the name of a column with values for that time."""
_NAME = regex(r"[A-Za-z_][\w%()/.-]{0,30}$")
_MIN_SURE_NAMES = 3
_FEW_UNMARKED, _MAX_UNMARKED = 3, 0.15
"""The number and share of rows below a header that may lack all marks."""


class Header(NamedTuple):
    above: int
    """How many rows are above the header."""
    first: int
    """The number of the row below the header."""
    names: list[str]


def find_header(rows: list[list[str]], mark: str, min_rows: int) -> Header | None:
    """Finds the header; None if these are not the rows of a table."""
    width = Counter(map(len, rows)).most_common(1)[0][0] if rows else 0
    above = _count_above(rows, width)
    table = rows[above:]
    first = table[0] if table else []
    # Whether these are almost certainly column names, even if the rows below them are uneven.
    are_names = len(set(first)) == len(first) >= _MIN_SURE_NAMES and all(map(_NAME.match, first))
    sizes = list(map(len, table))
    is_sure = are_names and sizes.count(1) <= max(_FEW_UNMARKED, _MAX_UNMARKED * len(table))
    even = sizes.count(width) / max(1, len(table))
    is_even = even >= (0.5 if is_sure else 0.85) and len(table) >= min_rows and len(first) == width > 1
    if not is_even or not _looks_tabular(table, mark, is_sure=is_sure, is_regular=even == 1 and width >= _MIN_TITLED_CELLS):
        return None
    count = count_header_rows(table, width)

    def spread(last: str, cell: str) -> str:
        """The name for a cell in an upper row of a header: an empty cell belongs to the filled one on its left."""
        return cell or last

    upper = [list(accumulate(map(str.strip, row), spread)) for row in table[: max(0, count - 1)]]
    names = [name_column([*upper, *table[count - 1 : count]], column) for column in range(width)]
    below = table[count] if 1 < count < len(table) and len(table[count]) == width else []
    filled = [bool(cell.strip()) for cell in below]
    # pandas writes the names of index columns one row below the other names.
    if any(filled) and not all(filled) and filled == sorted(filled, reverse=True):
        names, count = [index.strip() or name for index, name in zip(below, names, strict=True)], count + 1
    return Header(above, above + count, make_unique(names))


def _looks_tabular(rows: list[list[str]], mark: str, *, is_sure: bool, is_regular: bool) -> bool:
    """Whether rows look like a table: commas also separate clauses, but in a table, header cells are short and cells are filled.
    A name may be longer, such as a survey question, only if all rows have the same number of cells."""
    widest = max(len(cell) for cell in rows[0]) if mark != "\t" and not is_regular else 0
    spaced = sum(row[1][:1] == " " for row in rows if len(row) > 1) if mark == "," else 0
    filled = sum(any(row[1:]) for row in rows)
    return widest <= 60 and spaced < 0.5 * len(rows) and (is_sure or filled > 0.5 * len(rows))


def _count_above(rows: list[list[str]], width: int) -> int:
    """The number of rows above the header: titles, and details about an export."""
    if width < _MIN_TITLED_CELLS:
        return 0
    above = next((number for number, pair in enumerate(pairwise(rows[: _MAX_ABOVE + 2])) if not _is_above(*pair, width)), 0)
    empty = [number for number, row in enumerate(rows[:above]) if len(row) == width]
    # If most names in the first row are empty, a row with numbers below it is data.
    return empty[-1] if empty and not _are_names(rows[above], rows[above + 1 :]) else above


def _is_above(row: list[str], below: list[str], width: int) -> bool:
    filled = [number for number, cell in enumerate(row) if cell.strip()]
    if len(row) != width or len(filled) < 2:
        return True
    if 2 * len(filled) > width:
        return False
    # A few names belong to a header if the names below them are incomplete. In details about an export, they are name and value.
    is_named = len({cell.strip().lower() for cell in below if cell.strip()}) == width
    begins = filled == list(range(len(filled))) and all(cell.strip() for cell in below[: len(filled)])
    return is_named or begins or any(cell[:1] == " " for cell in row)


def count_header_rows(rows: list[list[str]], width: int) -> int:
    """Counts rows of names: words above columns of numbers, or years above columns of other values."""
    body = [row for row in rows[_MAX_HEADER_ROWS:] or rows[1:] if len(row) == width]
    for count in range(min(_MAX_HEADER_ROWS, len(rows) - 1), 1, -1):
        upper, lowest = rows[: count - 1], rows[count - 1]
        if len(lowest) != width or not all(_are_names(row, body) for row in (*upper, lowest)):
            continue
        numbers = [column for column in range(width) if _are_mostly(NUMBER, [row[column] for row in body])]
        named = sum(is_value(lowest[column].strip()) for column in numbers)
        has_groups = all(any(one.strip() and other.strip() in ("", one.strip()) for one, other in pairwise(row)) for row in upper)
        if named and (named > 1 or has_groups):
            return count
    is_worded = not all(map(_PERIOD.match, rows[0]))
    return int(is_worded and _are_names(rows[0], rows[1:]))


def _are_names(row: list[str], body: Sequence[list[str]]) -> bool:
    def is_name(column: int, cell: str) -> bool:
        if not NUMBER.match(cell) and not _PERIOD.match(cell):
            return True
        below = [each[column] for each in body if column < len(each)]
        if _PERIOD.match(cell):
            return bool(below) and not _are_mostly(_PERIOD, below)
        # A number can only name a column with other values, mostly words.
        return bool(below) and cell not in below and 2 * sum(map(bool, map(NUMBER.match, below))) < len(below)

    # pandas numbers columns that have no names.
    return row == ["", *map(str, range(len(row) - 1))] or all(is_name(column, cell) for column, cell in enumerate(row))


def _are_mostly(pattern: Pattern[str], cells: list[str]) -> bool:
    """Whether most cells that have a value match the pattern."""
    others = [cell for cell in cells if not pattern.match(cell)]
    if len(others) == len(cells):
        return False
    filled = len(cells) - sum(not is_value(cell.strip()) for cell in others)
    return len(cells) - len(others) >= _MIN_ALIKE * filled
