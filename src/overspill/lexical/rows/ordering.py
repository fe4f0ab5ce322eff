"""Answers questions about the order of a table: the largest, the fewest, the top five, the first, the last."""

from __future__ import annotations

import re
from collections.abc import Sequence
from heapq import nlargest, nsmallest
from itertools import islice

from msgspec import Struct

from overspill.lexical.index import Index
from overspill.lexical.outline import Table
from overspill.lexical.query import Query
from overspill.lexical.rank import Ranking
from overspill.lexical.rows.cells import MOST_ROWS, find_column, read_columns, read_rows
from overspill.lexical.rows.listings import find_listed_rows, find_newest_rows
from overspill.lexical.rows.measures import Scale, are_measures, find_scale, measure
from overspill.lexical.weights import WEIGHTS
from overspill.lexical.words import read_lexicon

_MAX_ROWS = 12
_MAX_TABLES = 4
_WORDS_AFTER_SUPERLATIVE = 4

_DATES = ("date", "year", "created", "timestamp")
_AGES = ("age", *_DATES, "updated", "time")
_TIMES = ("duration", "elapsed", "latency", "time", "ms", "seconds")
_SPEEDS = ("speed", "rate", "throughput")
_SAMPLED_ROWS = 200
"""Rows to read to find out what a column measures."""
_MAX_DATED_ROWS = 2
_COUNT = re.compile(r"\d{1,6}")
_BY_MEASURE = re.compile(r"\bin terms of\b", re.IGNORECASE)


class Rows(Struct, frozen=True):
    """The rows that a question about order asks for, likeliest first, and how sure that is."""

    records: list[int] = []
    evidence: float = 0.0
    compared: bool = True
    """Whether all rows were compared, instead of taking them by position."""


class _OrderQuestion(Struct, frozen=True):
    """What a question says about order: the positions of its superlative and of its "first" or "last", -1 for none."""

    words: list[str]
    most: int
    high: bool
    place: int
    last: bool

    @property
    def when(self) -> bool:
        """Whether it asks for an order in time."""
        return not read_lexicon("time").isdisjoint(self.words[self.most : self.most + 2])

    @property
    def slow(self) -> bool:
        return self.words[self.most] in read_lexicon("speed")

    @property
    def many(self) -> int:
        at = max(self.most, self.place)
        return next((int(word) for word in self.words[max(0, at - 1) : at + 2] if _COUNT.fullmatch(word)), 1)


def asks_for_order(query: Query) -> bool:
    asked = _parse_question(query.text)
    return asked.most >= 0 or asked.place >= 0


def find_ordered_rows(index: Index, query: Query, ranking: Ranking, among: Sequence[int] = ()) -> Rows:
    """Empty if the question does not ask about order or nothing here has one. `among` limits the rows to compare."""
    asked = _parse_question(query.text)
    if asked.most < 0 and asked.place < 0:
        return Rows()
    by_table: dict[Table, list[int]] = {}
    for record in among:
        if table := index.outline.table_of(record):
            by_table.setdefault(table, []).append(record)
    for table, records in by_table.items():
        if rows := _order_by_value(index, table, asked, ranking, records):
            return Rows(rows, WEIGHTS.evidence_of_value)
    if among:
        return Rows()
    tables = _find_likeliest_tables(index, ranking)
    for table in tables:
        if rows := _order_by_value(index, table, asked, ranking, range(table.first, table.last)):
            return Rows(rows, WEIGHTS.evidence_of_value)
    return _order_without_column(index, tables, asked)


def _parse_question(question: str) -> _OrderQuestion:
    words = re.findall(r"[^\W_]+", question.lower())
    most = next((number for number, word in enumerate(words) if word in read_lexicon("high") or word in read_lexicon("low")), -1)
    place = next(
        (number for number, word in enumerate(words) if word in read_lexicon("first") or word in read_lexicon("last")), -1
    )
    high = most >= 0 and words[most] in read_lexicon("high")
    if most < 0 <= place and _BY_MEASURE.search(question):
        most, high = place, words[place] in read_lexicon("first")
    return _OrderQuestion(words, most, high, place, last=place >= 0 and words[place] in read_lexicon("last"))


def _order_without_column(index: Index, tables: list[Table], asked: _OrderQuestion) -> Rows:
    """For questions that name no column: orders by count, by the sizes of a listing, by date, or by position."""
    rows: list[int] = []
    if asked.most >= 0:
        rows = _find_commonest(index, tables[0], asked) if tables and asked.high else []
        rows = rows or find_listed_rows(index, high=asked.high)
    if rows or asked.place < 0:
        return Rows(rows, WEIGHTS.evidence_of_place if rows else 0.0)
    dated = _order_by_date(index, tables[0], asked) if tables else []
    rows = [*dated, *_order_by_place(tables, asked)] if tables else find_newest_rows(index, asked.many, newest=asked.last)
    return Rows(rows, WEIGHTS.evidence_of_place if rows else 0.0, compared=bool(dated))


def _find_likeliest_tables(index: Index, ranking: Ranking) -> list[Table]:
    """The tables whose header and best row contain most of the question; longer ones first if they contain the same."""
    outline = index.outline
    best: dict[int, float] = {}
    for record, score in ranking.scores.items():
        if table := outline.table_of(record):
            best[table.first] = max(score, best.get(table.first, 0.0))

    def relevance(table: Table) -> tuple[float, int]:
        labels = (table.header, outline.under[table.first])
        header = sum(ranking.worth[term] for term in {term for label in labels for term in ranking.labels.get(label, {})})
        return header + best.get(table.first, 0.0), table.last - table.first

    return nlargest(_MAX_TABLES, outline.tables, key=relevance)


def _order_by_place(tables: list[Table], asked: _OrderQuestion) -> list[int]:
    rows: list[int] = []
    for table in tables:
        edge = range(table.last - 1, table.first - 1, -1) if asked.last else range(table.first, table.last)
        rows.extend(islice(edge, min(_MAX_ROWS, asked.many + 1)))
    return rows


def _order_by_date(index: Index, table: Table, asked: _OrderQuestion) -> list[int]:
    """The first or last by date, for rows that are not in the order of their dates."""
    names = read_columns(index, table)
    column = find_column(names, asked.words)
    if column is None or _find_column_scale(index, table, column) != "date":
        column = find_column(names, _DATES)
    if column is None:
        return []
    dated = [
        (value, record)
        for record, cells in islice(read_rows(index, table), MOST_ROWS)
        if column < len(cells) and (value := measure(cells[column], "date")) is not None
    ]
    return [record for _, record in (nlargest if asked.last else nsmallest)(_MAX_DATED_ROWS, dated)]


def _find_column_scale(index: Index, table: Table, column: int) -> Scale:
    return find_scale([cells[column] for _, cells in islice(read_rows(index, table), _SAMPLED_ROWS) if column < len(cells)])


def _order_by_value(index: Index, table: Table, asked: _OrderQuestion, ranking: Ranking, records: Sequence[int]) -> list[int]:
    """Orders by the column that the words after the superlative name, or else those before it."""
    column = _choose_column(index, table, asked) if asked.most >= 0 else None
    if column is None:
        return []
    scale, records = _find_column_scale(index, table, column), records[:MOST_ROWS]
    values = [
        (value, record)
        for record, cells in read_rows(index, table, records)
        if column < len(cells) and cells[column] and (value := measure(cells[column], scale)) is not None
    ]
    if len(values) < 3 or len(values) < 0.3 * len(records):
        return []
    high = asked.high != _is_reversed(read_columns(index, table), column, asked, scale)
    values.sort(key=lambda pair: (-pair[0] if high else pair[0], pair[1]))
    fitting = [
        [record for _, record in values if record in rows] for rows in _list_conditions(ranking, {record for _, record in values})
    ]
    turns = [record for many in (asked.many, 3 * asked.many, _MAX_ROWS) for rows in fitting for record in rows[:many]]
    return list(dict.fromkeys(turns))[: 2 * _MAX_ROWS]


def _choose_column(index: Index, table: Table, asked: _OrderQuestion) -> int | None:
    """Prefers a column with measures, then one that suits the superlative, then any."""
    words, after = asked.words, asked.most + 1
    near = [
        *words[after : after + _WORDS_AFTER_SUPERLATIVE],
        *words[: asked.most][::-1],
        *words[after + _WORDS_AFTER_SUPERLATIVE :],
    ]
    names = read_columns(index, table)
    rows = [cells for _, cells in islice(read_rows(index, table), _SAMPLED_ROWS)]
    columns = [[cells[number] for cells in rows if number < len(cells)] for number in range(len(names))]
    named = find_column([name if are_measures(cells) else "" for name, cells in zip(names, columns, strict=True)], near)
    if named is not None and (not asked.when or find_scale(columns[named]) != "number"):
        return named
    meant = find_column(names, _AGES if asked.when else (*_TIMES, *_SPEEDS) if asked.slow else ())
    return next((column for column in (meant, named) if column is not None), find_column(names, near))


def _is_reversed(names: list[str], column: int, asked: _OrderQuestion, scale: Scale) -> bool:
    """The oldest has the earliest date but the highest age, the slowest the longest time but the lowest speed."""
    if asked.when:
        return scale == "span" or find_column(names, ("age",)) == column
    return asked.slow and find_column(names, _SPEEDS) == column


def _find_commonest(index: Index, table: Table, asked: _OrderQuestion) -> list[int]:
    """The first rows of the value that has the most rows."""
    column = find_column(read_columns(index, table), asked.words[: asked.most][::-1])
    if column is None:
        return []
    places: dict[str, list[int]] = {}
    for record, cells in islice(read_rows(index, table), MOST_ROWS):
        if column < len(cells) and cells[column].strip():
            places.setdefault(cells[column].strip().casefold(), []).append(record)
    most = nlargest(_MAX_DATED_ROWS, places.values(), key=len)
    return [record for records in most if len(records) > 1 for record in records[:_MAX_DATED_ROWS]]


def _list_conditions(ranking: Ranking, records: set[int]) -> list[set[int]]:
    """What rows may have to match besides the order: most of the question, nothing, or one of its words."""
    terms = {record: {spot[2] for spot in ranking.hits.get(record, ())} for record in records}
    held = {record: sum(ranking.worth[term] for term in found) for record, found in terms.items()}
    best = max(held.values(), default=0.0)
    telling = {term for found in terms.values() for term in found if ranking.terms[term].telling}
    alone = [
        {record for record, found in terms.items() if term in found}
        for term in sorted(telling, key=lambda term: -ranking.worth[term])
    ]
    return [{record for record, worth in held.items() if worth >= WEIGHTS.condition * best}, records, *alone]
