"""Questions a table answers by its order: the largest, the fewest, the top five, the first, the last."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator
from heapq import nlargest
from itertools import islice
from typing import Any

import msgspec
from msgspec import Struct

from overspill.engine.index import Index
from overspill.engine.outline import Table
from overspill.engine.query import Query
from overspill.engine.rank import Ranking
from overspill.engine.show import shown
from overspill.engine.words import STOP, stem, subwords, word_set

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


def ordered_rows(index: Index, query: Query, ranking: Ranking) -> Rows:
    """Empty when the question does not ask about order or no table fits."""
    words = re.findall(r"[^\W_]+", query.text.lower())
    direction = next(((number, word in _HIGH) for number, word in enumerate(words) if word in _HIGH or word in _LOW), None)
    place = next((number for number, word in enumerate(words) if word in _FIRST or word in _LAST), None)
    if (direction is None and place is None) or not index.outline.tables:
        return Rows()
    tables = _likeliest(index, ranking)
    if direction is not None:
        for table in tables:
            if rows := _by_value(index, table, words, *direction, ranking):
                return Rows(rows, _BY_VALUE)
    if place is None:
        return Rows()
    return Rows(_by_place(tables, words[place + 1 : place + 2], last=words[place] in _LAST), _BY_PLACE)


def _likeliest(index: Index, ranking: Ranking) -> list[Table]:
    """The tables whose header and best row hold most of the question; the longer when they hold the same."""
    outline = index.outline
    best: dict[int, float] = {}
    for record, score in ranking.scores.items():
        if table := outline.table_of(record):
            best[table.first] = max(score, best.get(table.first, 0.0))

    def relevance(table: Table) -> tuple[float, int]:
        header = sum(ranking.worth[term] for term in ranking.labels.get(table.header, {}))
        return header + best.get(table.first, 0.0), table.last - table.first

    return nlargest(_TABLES, outline.tables, key=relevance)


def _by_place(tables: list[Table], counted: list[str], *, last: bool) -> list[int]:
    wanted = int(counted[0]) if counted and counted[0].isdigit() else 1
    rows: list[int] = []
    for table in tables:
        edge = range(table.last - 1, table.first - 1, -1) if last else range(table.first, table.last)
        rows.extend(islice(edge, min(_SHOWN, wanted + 1)))
    return rows


def _by_value(index: Index, table: Table, words: list[str], place: int, high: bool, ranking: Ranking) -> list[int]:
    names = _columns(index, table)
    column = _column_asked(names, words, place)
    if column is None:
        return []
    column_cells = [
        (record, cells[column])
        for record, cells in islice(_cells(index, table), _MOST_ROWS)
        if column < len(cells) and cells[column]
    ]
    as_date = any(_DATE.search(cell) for _, cell in column_cells)
    values = [(value, record) for record, cell in column_cells if (value := _value(cell, as_date)) is not None]
    if len(values) < 3 or len(values) < 0.3 * (table.last - table.first):
        return []
    values.sort(key=lambda pair: (-pair[0] if high else pair[0], pair[1]))
    fitting = _fitting(ranking, {record for _, record in values})
    chosen = [record for _, record in values if record in fitting][:_SHOWN]
    overall = [record for _, record in values][:_SHOWN]
    asked = next((int(word) for word in words[max(0, place - 1) : place + 2] if word.isdigit()), 1)
    turns = chosen[:asked] + overall[:asked] + chosen[: 3 * asked] + overall[: 3 * asked] + chosen + overall
    return list(dict.fromkeys(turns))[: 2 * _SHOWN]


def _fitting(ranking: Ranking, records: set[int]) -> set[int]:
    """Rows that hold the rest of the question: the condition besides the order."""
    held = {record: sum(ranking.worth[term] for term in {spot[2] for spot in ranking.hits.get(record, ())}) for record in records}
    best = max(held.values(), default=0.0)
    return {record for record, worth in held.items() if worth >= 0.6 * best}


def _columns(index: Index, table: Table) -> list[str]:
    outline = index.outline
    if table.cells == "json":
        return list(_fields(index, table.first))
    text = shown(index, outline.label_starts[table.header], outline.label_ends[table.header])
    return _split(text, table)


def _column_asked(names: list[str], words: list[str], place: int) -> int | None:
    """The column the words after (or else before) the superlative name."""
    stems = [{stem(part) for word in re.findall(r"[^\W_]+", name) for part in (word.lower(), *subwords(word))} for name in names]
    after, before = words[place + 1 : place + 1 + _COLUMN_WORD], words[:place][::-1] + words[place + 1 + _COLUMN_WORD :]
    for word in (*after, *before):
        if word in STOP or len(word) < 2:
            continue
        for number, known in enumerate(stems):
            if any(_akin(stem(word), part) for part in known):
                return number
    return None


def _akin(one: str, other: str) -> bool:
    """Forms of one word, or one that is cut off: memory, mem."""
    shorter, longer = sorted((len(one), len(other)))
    near = (shorter >= 4 or (shorter == 3 and longer == 6)) and longer - shorter <= 3
    return one == other or (near and one[:shorter] == other[:shorter])


def _cells(index: Index, table: Table) -> Iterator[tuple[int, list[str]]]:
    names = _columns(index, table)
    for record in range(table.first, table.last):
        if table.cells == "json":
            fields = _fields(index, record)
            yield record, [fields.get(name, "") for name in names]
        else:
            text = shown(index, index.outline.starts[record], index.outline.ends[record])
            yield record, text.split(maxsplit=len(names) - 1) if table.cells == "words" else _split(text, table)


def _fields(index: Index, record: int) -> dict[str, str]:
    raw = bytes(index.text[index.outline.starts[record] : index.outline.ends[record]])
    raw = raw.replace(index.fill, b"") if index.fill else raw
    try:
        fields = msgspec.json.decode(raw, type=dict[str, Any])
    except (msgspec.DecodeError, UnicodeDecodeError):
        return {}
    return {key: str(field) for key, field in fields.items()}


def _split(text: str, table: Table) -> list[str]:
    if table.cells == "pipes":
        return [cell.strip() for cell in text.strip().removeprefix("|").split("|")]
    if table.cells in ("spaced", "words"):
        return re.split(r"\s{2,}" if table.cells == "spaced" else r"\s+", text.strip())
    rows: list[list[str]] = list(csv.reader([text.replace("\n", " ").replace("\r", " ")], delimiter=table.delimiter))
    return rows[0] if rows else []


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
