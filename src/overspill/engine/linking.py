"""Rows that a question means by way of another: what is the same there, or what belongs to it in another table."""

from __future__ import annotations

import re
from collections.abc import Iterator

from msgspec import Struct

from overspill.engine.cells import column_named, columns_of, rows_of
from overspill.engine.index import Index
from overspill.engine.outline import Table
from overspill.engine.query import Query, parse
from overspill.engine.rank import Ranking
from overspill.engine.show import shown
from overspill.engine.words import stem, word_set

_SAME = re.compile(r"\bsame (?P<what>[^.?!]{2,60}?) (?:as|with|of|like) (?P<whom>[^?!]+)", re.IGNORECASE)
_WORD = re.compile(r"[^\W_]+")
_YEAR = re.compile(r"\b(?:1\d{3}|20\d{2})\b")
_KEYS = word_set("id uid uuid guid key code no nr num number ref sku")
_NO_KEY = ("", "None", "True", "False")
_ANCHORS, _ALIKE = 4, 0.8
"""Rows that a question may begin from, and their share of the best one's score."""
_SHOWN = 12
_TABLES = 40
_MOST_ROWS = 200_000


class _Row(Struct, frozen=True):
    record: int
    table: Table


def linked_rows(index: Index, query: Query, ranking: Ranking) -> list[int]:
    """Likeliest first; empty where the question leads from no row to another."""
    if not index.outline.tables:
        return []
    return _alike(index, query, ranking) or _belonging(index, query, ranking)


def _alike(index: Index, query: Query, ranking: Ranking) -> list[int]:
    """The same year as this one: its row, its cell, and the rows with the same."""
    asked = _SAME.search(query.text)
    if not asked:
        return []
    words = _WORD.findall(asked["what"].lower())[::-1]
    keys = {term.key for term in parse(asked["whom"]).terms}
    found: list[int] = []
    for row in _anchors(index, ranking, keys):
        column = column_named(columns_of(index, row.table), words)
        by_year = "year" in words
        if column is None and by_year:
            column = _dated(index, row)
        if column is None:
            continue
        cells = {record: _same(cells[column], by_year) for record, cells in _whole(index, row.table, column)}
        found += [record for record, cell in cells.items() if cell and cell == cells.get(row.record)][:_SHOWN]
    return list(dict.fromkeys(found))


def _same(cell: str, by_year: bool) -> str:
    year = _YEAR.search(cell) if by_year else None
    return year[0] if year else cell.strip().casefold()


def _dated(index: Index, row: _Row) -> int | None:
    cells = next(rows_of(index, row.table, [row.record]))[1]
    return next((number for number, cell in enumerate(cells) if _YEAR.search(cell)), None)


def _whole(index: Index, table: Table, column: int) -> Iterator[tuple[int, list[str]]]:
    for record, cells in rows_of(index, table, range(table.first, min(table.last, table.first + _MOST_ROWS))):
        if column < len(cells):
            yield record, cells


def _anchors(index: Index, ranking: Ranking, keys: set[str] | None = None) -> list[_Row]:
    """The rows that hold most of the question, or of these of its terms."""
    counted = {number for number, term in enumerate(ranking.terms) if keys is None or term.key in keys}
    held: dict[int, float] = {}
    for record, spots in ranking.hits.items():
        worth = sum(ranking.worth[term] for term in {spot[2] for spot in spots} & counted)
        if worth:
            held[record] = worth
    least = _ALIKE * max(held.values(), default=0.0)
    best = sorted((record for record in held if held[record] >= least), key=lambda record: (-held[record], record))
    return [_Row(record, table) for record in best[:_ANCHORS] if (table := index.outline.table_of(record))]


def _belonging(index: Index, query: Query, ranking: Ranking) -> list[int]:
    """What has its key in another table, when the question has words for that table that the row's own has not."""
    tables = [table for table in index.outline.tables if table.cells == "json"]
    if not 1 < len(tables) <= _TABLES:
        return []
    words = _WORD.findall(query.text.lower())
    found: list[int] = []
    for row in _anchors(index, ranking):
        own = [_name(index, row.table), *columns_of(index, row.table)]
        foreign = [word for word in words if column_named(own, [word]) is None]
        for other in tables:
            if other is not row.table and column_named([_name(index, other), *columns_of(index, other)], foreign) is not None:
                found += sorted(_keyed(index, row, other), key=lambda record: -ranking.scores.get(record, 0.0))[:_SHOWN]
    return list(dict.fromkeys(found))


def _keyed(index: Index, row: _Row, other: Table) -> list[int]:
    cells = next(rows_of(index, row.table, [row.record]))[1]
    mine = dict(zip(columns_of(index, row.table), cells, strict=False))
    theirs = columns_of(index, other)
    pairs = [
        (value, number)
        for key, value in mine.items()
        for number, name in enumerate(theirs)
        if value not in _NO_KEY and _refers(key, _name(index, row.table), name, _name(index, other))
    ]
    if not pairs:
        return []
    text, outline = index.text, index.outline
    spelt = {value.encode() for value, _ in pairs}
    holding = [
        record
        for record in range(other.first, min(other.last, other.first + _MOST_ROWS))
        if any(value in text[outline.starts[record] : outline.ends[record]] for value in spelt)
    ]
    found = rows_of(index, other, holding) if holding else ()
    return [record for record, cells in found if any(cells[number] == value for value, number in pairs)]


def _refers(key: str, table: str, other_key: str, other_table: str) -> bool:
    """Whether one of two columns holds the key of the other: code and country_code, airline and the airlines' id."""
    mine, theirs = _parts(key), _parts(other_key)
    if not mine or not theirs:
        return False
    named = {stem(word) for word in _parts(table)}, {stem(word) for word in _parts(other_table)}
    if mine == theirs:
        return mine[-1] in _KEYS and len(mine) > 1
    if theirs[-1] in _KEYS and {*map(stem, theirs[:-1])} == named[0] and mine[-1] == theirs[-1]:
        return True
    if mine[-1] in _KEYS and {*map(stem, mine[:-1])} == named[1] and mine[-1] == theirs[-1]:
        return True
    return (theirs[-1] in _KEYS and {*map(stem, mine)} == named[1]) or (mine[-1] in _KEYS and {*map(stem, theirs)} == named[0])


def _parts(name: str) -> list[str]:
    return [part.lower() for word in _WORD.findall(name) for part in re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+", word)]


def _name(index: Index, table: Table) -> str:
    label = index.outline.under[table.first]
    return shown(index, index.outline.label_starts[label], index.outline.label_ends[label]) if label >= 0 else ""
