"""Finds rows that a question describes through another row, by the same cell."""

from __future__ import annotations

import re
from collections.abc import Iterator

from overspill.lexical.index import Index
from overspill.lexical.outline import Table
from overspill.lexical.query import Query, parse
from overspill.lexical.rank import Ranking
from overspill.lexical.rows.cells import MOST_ROWS, find_column, read_columns, read_rows
from overspill.lexical.rows.mentions import find_anchors

_SAME = re.compile(r"\bsame (?P<what>[^.?!]{2,60}?) (?:as|with|of|like) (?P<whom>[^?!]+)", re.IGNORECASE)
_WORD = re.compile(r"[^\W_]+")
_YEAR = re.compile(r"\b(?:1\d{3}|20\d{2})\b")


def asks_for_likeness(query: Query) -> bool:
    return _SAME.search(query.text) is not None


def find_similar_rows(index: Index, query: Query, ranking: Ranking) -> list[int]:
    """ "The same year as X": finds the row of X, its cell, and the rows with the same cell."""
    asked = _SAME.search(query.text)
    if not asked or not index.outline.tables:
        return []
    words = _WORD.findall(asked["what"].lower())[::-1]
    keys = {term.key for term in parse(asked["whom"]).terms}
    found: list[int] = []
    read: dict[tuple[int, int], dict[int, str]] = {}
    for row in find_anchors(index, ranking, keys):
        table = index.outline.table_of(row)
        column = find_column(read_columns(index, table), words) if table else None
        by_year = "year" in words
        if column is None and by_year and table:
            column = _find_date_column(index, table, row)
        if column is None or not table:
            continue
        place = (table.first, column)
        if place not in read:
            read[place] = {
                record: _normalize_cell(cells[column], by_year) for record, cells in _rows_with_column(index, table, column)
            }
        cells = read[place]
        found += [record for record, cell in cells.items() if cell and cell == cells.get(row)]
    return list(dict.fromkeys(found))


def _normalize_cell(cell: str, by_year: bool) -> str:
    year = _YEAR.search(cell) if by_year else None
    return year[0] if year else cell.strip().casefold()


def _find_date_column(index: Index, table: Table, row: int) -> int | None:
    cells = next(read_rows(index, table, [row]))[1]
    return next((number for number, cell in enumerate(cells) if _YEAR.search(cell)), None)


def _rows_with_column(index: Index, table: Table, column: int) -> Iterator[tuple[int, list[str]]]:
    for record, cells in read_rows(index, table, range(table.first, min(table.last, table.first + MOST_ROWS))):
        if column < len(cells):
            yield record, cells
