"""Rows that a question describes through another row, by the same cell."""

from __future__ import annotations

from overspill.lexical.index import Index
from overspill.lexical.query import Query, parse
from overspill.lexical.rank import Ranking
from overspill.lexical.rows.cells import MOST_ROWS, find_column, read_columns, read_rows
from overspill.lexical.rows.mentions import find_anchors
from overspill.text.regex import regex

_SAME = regex(r"(?i)\bsame (?P<what>[^.?!]{2,60}?) (?:as|with|of|like) (?P<whom>[^?!]+)")
_WORD = regex(r"[^\W_]+")
_YEAR = regex(r"\b(?:1\d{3}|20\d{2})\b")


def asks_for_likeness(query: Query) -> bool:
    return _SAME.search(query.text) is not None


def find_similar_rows(index: Index, query: Query, ranking: Ranking) -> list[int]:
    """ "The same year as X": finds the row of X, its cell, and the rows with the same cell."""
    asked = _SAME.search(query.text)
    if not asked or not index.outline.tables:
        return []
    words = _WORD.findall(asked["what"].lower())[::-1]
    by_year = "year" in words

    def read(cell: str) -> str:
        year = _YEAR.search(cell) if by_year else None
        return year[0] if year else cell.strip().casefold()

    wanted: dict[tuple[int, int], set[str]] = {}
    for row in find_anchors(index, ranking, {term.key for term in parse(asked["whom"]).terms}):
        table = index.outline.table_of(row)
        cells = next(read_rows(index, table, [row]))[1] if table else []
        column = find_column(read_columns(index, table), words) if table else None
        if column is None and by_year:
            column = next((number for number, cell in enumerate(cells) if _YEAR.search(cell)), None)
        if table and column is not None and column < len(cells):
            wanted.setdefault((table.first, column), set()).add(read(cells[column]))
    found: list[int] = []
    for (first, column), values in wanted.items():
        table = index.outline.table_of(first)
        rows = read_rows(index, table, range(table.first, min(table.last, table.first + MOST_ROWS))) if table else ()
        found += [record for record, cells in rows if column < len(cells) and read(cells[column]) in values - {""}]
    return list(dict.fromkeys(found))
