"""Finds rows that a question describes through another row: with the same cell, or related to it in another table."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from heapq import nlargest
from itertools import islice

from overspill.lexical.index import Index
from overspill.lexical.outline import Table
from overspill.lexical.query import Query, parse
from overspill.lexical.rank import Ranking
from overspill.lexical.rows.cells import MOST_ROWS, find_column, read_columns, read_rows
from overspill.lexical.rows.mentions import find_anchors
from overspill.lexical.words import stem

_SAME = re.compile(r"\bsame (?P<what>[^.?!]{2,60}?) (?:as|with|of|like) (?P<whom>[^?!]+)", re.IGNORECASE)
_NOT = re.compile(r"(?:\bnot|n't|\bother than|\bnon)[ -](?:yet |in |of |from )?(?P<what>[^\W_]+)", re.IGNORECASE)
_WORD = re.compile(r"[^\W_]+")
_YEAR = re.compile(r"\b(?:1\d{3}|20\d{2})\b")
_MIN_USUAL_SHARE = 0.1
"""Share of rows that must have a word in a column before the rows without it can be asked for."""
_MAX_COMPARED_TABLES = 2
_SAMPLED_ROWS = 1_000
_MAX_CELL_CHARS = 100


def asks_for_likeness(query: Query) -> bool:
    return _SAME.search(query.text) is not None or _NOT.search(query.text) is not None


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


def find_unlike_rows(index: Index, query: Query, ranking: Ranking) -> list[int]:
    """ "Which are not running?": finds the rows that have something else where many have that word."""
    asked = _NOT.search(query.text)
    word = stem(asked["what"].lower()) if asked else ""
    tables = {table.first: table for record in ranking.hits if (table := index.outline.table_of(record))} if asked else {}
    for table in nlargest(_MAX_COMPARED_TABLES, tables.values(), key=lambda table: table.last - table.first):
        sample = [list(map(_first_stem, cells)) for _, cells in islice(read_rows(index, table), _SAMPLED_ROWS)]
        having = Counter(number for stems in sample for number, each in enumerate(stems) if each == word)
        column, times = max(having.items(), key=lambda pair: pair[1], default=(0, 0))
        if times >= max(_MAX_COMPARED_TABLES, _MIN_USUAL_SHARE * len(sample)):
            return [
                record
                for record, cells in _rows_with_column(index, table, column)
                if _first_stem(cells[column]) not in ("", word)
            ]
    return []


def _first_stem(cell: str) -> str:
    found = _WORD.match(cell[:_MAX_CELL_CHARS])
    return stem(found[0].lower()) if found else ""


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
