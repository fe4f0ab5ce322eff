"""Questions a table answers by its order: the largest, the fewest, the top five, the first, the last."""

from __future__ import annotations

import re
from collections.abc import Sequence
from heapq import nlargest, nsmallest
from itertools import islice

from msgspec import Struct

from overspill.engine.cells import column_named, columns_of, rows_of
from overspill.engine.index import Index
from overspill.engine.outline import Table
from overspill.engine.query import Query
from overspill.engine.rank import Ranking
from overspill.engine.words import word_set

_MOST_ROWS = 200_000
_SHOWN = 12
_TABLES = 4
_BY_VALUE, _BY_PLACE = 0.7, 0.4
_COLUMN_WORD = 4

_HIGH = word_set(
    """most highest largest greatest biggest longest maximum max top best latest newest heaviest tallest richest higher
    larger greater bigger longer more exceeding above newer deepest widest peak majority"""
)
_LOW = word_set(
    """least lowest smallest fewest shortest minimum min worst earliest oldest lightest poorest lower smaller shorter fewer
    less youngest slowest older nearest narrowest bottom"""
)
_FIRST = word_set("first top initial opening beginning start earliest")
_LAST = word_set("last final latest ending end bottom recent")
_DATES = ("date", "year")
_FOREMOST = 2
_BY_MEASURE = re.compile(r"\bin terms of\b", re.IGNORECASE)
_NUMBER = re.compile(r"[-−]?\d[\d,' ]*(?:\.\d+)?")
_UNITS = "KMGTP"
_UNIT = re.compile(r" ?([kKMGTP])i?B?(?!\w)")
_YEAR = re.compile(r"\b(1[0-9]{3}|20[0-9]{2})\b")
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_DATE = re.compile(
    rf"(?P<d1>\d{{1,2}})?\W{{0,2}}(?P<month>{'|'.join(_MONTHS)})[a-z]*\.?\W{{0,2}}(?P<d2>\d{{1,2}})?\b", re.IGNORECASE
)


class Rows(Struct, frozen=True):
    """Rows a question about order asks for, likeliest first, and how sure that is."""

    records: list[int] = []
    evidence: float = 0.0


def ordered_rows(index: Index, query: Query, ranking: Ranking, among: Sequence[int] = ()) -> Rows:
    """Empty when the question does not ask about order or no table fits. Some rows alone may be meant already."""
    words = re.findall(r"[^\W_]+", query.text.lower())
    direction = next(((number, word in _HIGH) for number, word in enumerate(words) if word in _HIGH or word in _LOW), None)
    place = next((number for number, word in enumerate(words) if word in _FIRST or word in _LAST), None)
    if (direction is None and place is None) or not index.outline.tables:
        return Rows()
    if direction is None and place is not None and _BY_MEASURE.search(query.text):
        direction = (place, words[place] in _FIRST)
    tables = _likeliest(index, ranking)
    if among:
        table = index.outline.table_of(among[0])
        rows = _by_value(index, table, words, *direction, ranking, among) if table and direction else []
        return Rows(rows, _BY_VALUE if rows else 0.0)
    if direction is not None:
        for table in tables:
            if rows := _by_value(index, table, words, *direction, ranking, range(table.first, table.last)):
                return Rows(rows, _BY_VALUE)
        if direction[1] and (rows := _commonest(index, tables[0], words[: direction[0]][::-1])):
            return Rows(rows, _BY_PLACE)
    if place is None:
        return Rows()
    last = words[place] in _LAST
    return Rows([*_by_date(index, tables[0], last=last), *_by_place(tables, words[place + 1 : place + 2], last=last)], _BY_PLACE)


def _likeliest(index: Index, ranking: Ranking) -> list[Table]:
    """The tables whose header and best row hold most of the question; the longer when they hold the same."""
    outline = index.outline
    best: dict[int, float] = {}
    for record, score in ranking.scores.items():
        if table := outline.table_of(record):
            best[table.first] = max(score, best.get(table.first, 0.0))

    def relevance(table: Table) -> tuple[float, int]:
        labels = (table.header, outline.under[table.first])
        header = sum(ranking.worth[term] for term in {term for label in labels for term in ranking.labels.get(label, {})})
        return header + best.get(table.first, 0.0), table.last - table.first

    return nlargest(_TABLES, outline.tables, key=relevance)


def _by_place(tables: list[Table], counted: list[str], *, last: bool) -> list[int]:
    wanted = int(counted[0]) if counted and counted[0].isdigit() else 1
    rows: list[int] = []
    for table in tables:
        edge = range(table.last - 1, table.first - 1, -1) if last else range(table.first, table.last)
        rows.extend(islice(edge, min(_SHOWN, wanted + 1)))
    return rows


def _by_date(index: Index, table: Table, *, last: bool) -> list[int]:
    """The first ones where the rows stand in another order than they happened."""
    column = column_named(columns_of(index, table), _DATES)
    if column is None:
        return []
    dated = [
        (value, record)
        for record, cells in islice(rows_of(index, table), _MOST_ROWS)
        if column < len(cells) and (value := _value(cells[column], as_date=True)) is not None
    ]
    return [record for _, record in (nlargest if last else nsmallest)(_FOREMOST, dated)]


def _by_value(
    index: Index, table: Table, words: list[str], place: int, high: bool, ranking: Ranking, records: Sequence[int]
) -> list[int]:
    after, before = words[place + 1 : place + 1 + _COLUMN_WORD], words[:place][::-1] + words[place + 1 + _COLUMN_WORD :]
    column = column_named(columns_of(index, table), [*after, *before])
    if column is None:
        return []
    column_cells = [
        (record, cells[column])
        for record, cells in rows_of(index, table, records[:_MOST_ROWS])
        if column < len(cells) and cells[column]
    ]
    as_date = any(_DATE.search(cell) for _, cell in column_cells)
    values = [(value, record) for record, cell in column_cells if (value := _value(cell, as_date)) is not None]
    if len(values) < 3 or len(values) < 0.3 * len(records):
        return []
    values.sort(key=lambda pair: (-pair[0] if high else pair[0], pair[1]))
    asked = next((int(word) for word in words[max(0, place - 1) : place + 2] if word.isdigit()), 1)
    fitting = [
        [record for _, record in values if record in rows] for rows in _conditions(ranking, {record for _, record in values})
    ]
    turns = [record for many in (asked, 3 * asked, _SHOWN) for records in fitting for record in records[:many]]
    return list(dict.fromkeys(turns))[: 2 * _SHOWN]


def _commonest(index: Index, table: Table, words: list[str]) -> list[int]:
    """Which of them has the most rows, where no column says how many: the first of those rows."""
    column = column_named(columns_of(index, table), words)
    if column is None:
        return []
    places: dict[str, list[int]] = {}
    for record, cells in islice(rows_of(index, table), _MOST_ROWS):
        if column < len(cells) and cells[column].strip():
            places.setdefault(cells[column].strip().casefold(), []).append(record)
    most = nlargest(_FOREMOST, places.values(), key=len)
    return [record for records in most if len(records) > 1 for record in records[:_FOREMOST]]


def _conditions(ranking: Ranking, records: set[int]) -> list[set[int]]:
    """What besides the order may be asked of rows: as much of the question as any has, nothing, or one of its words."""
    terms = {record: {spot[2] for spot in ranking.hits.get(record, ())} for record in records}
    held = {record: sum(ranking.worth[term] for term in found) for record, found in terms.items()}
    best = max(held.values(), default=0.0)
    telling = {term for found in terms.values() for term in found if ranking.terms[term].telling}
    alone = [
        {record for record, found in terms.items() if term in found}
        for term in sorted(telling, key=lambda term: -ranking.worth[term])
    ]
    return [{record for record, worth in held.items() if worth >= 0.6 * best}, records, *alone]


def _value(cell: str, as_date: bool) -> float | None:
    """A number, or in a column of dates the days of one."""
    if as_date:
        year, date = _YEAR.search(cell), _DATE.search(cell)
        day = int(date["d1"] or date["d2"] or 1) if date else 0
        month = _MONTHS.index(date["month"].lower()) if date else 0
        return int(year[1] if year else 0) * 372.0 + month * 31 + day if year or date else None
    number = _NUMBER.search(cell)
    if not number:
        return None
    unit = _UNIT.match(cell, number.end())
    size = 1000.0 ** (1 + _UNITS.index(unit[1].upper())) if unit else 1.0
    return float(re.sub(r"[,' ]", "", number[0]).replace("−", "-")) * size
