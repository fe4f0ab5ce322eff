"""Answers questions about order, by the columns of tables: the largest, the fewest, the top five, the oldest."""

from __future__ import annotations

import re
from collections.abc import Sequence
from heapq import nlargest
from itertools import islice

from msgspec import Struct

from overspill.lexical.boost import Boost
from overspill.lexical.index import Index
from overspill.lexical.outline import Table
from overspill.lexical.query import Query
from overspill.lexical.rank import Ranking
from overspill.lexical.rows.cells import MOST_ROWS, ends_with_total, find_column, read_columns, read_rows, sample_columns
from overspill.lexical.rows.measures import Scale, are_measures, find_scale, measure
from overspill.lexical.weights import WEIGHTS
from overspill.lexical.words import read_lexicon, read_list
from overspill.text.regex import regex

_MAX_ROWS = 12
_MAX_TABLES = 4
_WORDS_AFTER_SUPERLATIVE = 4
_MIN_MEASURED, _MIN_MEASURED_SHARE = 3, 0.3
"""The number and share of rows with a measure that a column needs to order them."""
_COUNT = regex(r"\d{1,6}")


class _OrderQuestion(Struct, frozen=True):
    """The order that a question asks for: the position of its superlative, -1 for none."""

    words: list[str]
    most: int
    high: bool

    @property
    def when(self) -> bool:
        """Whether it asks for an order in time."""
        return not read_lexicon("time").isdisjoint(self.words[self.most : self.most + 2])

    @property
    def many(self) -> int:
        spelt = {word: number for number, word in enumerate(read_list("numbers"), 1)}
        near = self.words[max(0, self.most - 1) : self.most + 2]
        return next((spelt.get(word) or int(word) for word in near if word in spelt or _COUNT.fullmatch(word)), 1)


def asks_for_order(query: Query) -> bool:
    return _parse_question(query.text).most >= 0


def _parse_question(question: str) -> _OrderQuestion:
    words = re.findall(r"[^\W_]+", question.lower())
    high, low = read_lexicon("high"), read_lexicon("low")
    most = next((number for number, word in enumerate(words) if word in high or word in low), -1)
    return _OrderQuestion(words, most, most >= 0 and words[most] in high)


def find_ordered_rows(index: Index, query: Query, ranking: Ranking, among: Sequence[int] = ()) -> Boost:
    """Finds no rows if the question does not ask for an order or nothing can be ordered. `among` limits the rows to compare."""
    asked = _parse_question(query.text)
    if asked.most < 0:
        return Boost()
    by_table: dict[Table, Sequence[int]] = {}
    if among:
        for table in {table: None for record in among if (table := index.outline.table_of(record))}:
            by_table[table] = [record for record in among if table.first <= record < table.last]
    else:
        likeliest = _find_likeliest_tables(index, ranking)
        by_table = {table: range(table.first, table.last - ends_with_total(index, table)) for table in likeliest}
    for table, records in by_table.items():
        if rows := _order_by_value(index, table, asked, ranking, records):
            return Boost(rows=rows, evidence=WEIGHTS.evidence_of_value)
    return Boost()


def _find_likeliest_tables(index: Index, ranking: Ranking) -> list[Table]:
    """The tables whose best row contains most of the question; longer ones first if they contain the same."""
    best: dict[int, float] = {}
    for record, score in ranking.scores.items():
        if table := index.outline.table_of(record):
            best[table.first] = max(score, best.get(table.first, 0.0))

    def relevance(table: Table) -> tuple[float, int]:
        return best.get(table.first, 0.0), table.last - table.first

    return nlargest(_MAX_TABLES, index.outline.tables, key=relevance)


def _measure_rows(index: Index, table: Table, column: int, scale: Scale, records: Sequence[int] = ()) -> list[tuple[float, int]]:
    return [
        (value, record)
        for record, cells in islice(read_rows(index, table, records), MOST_ROWS)
        if column < len(cells) and cells[column] and (value := measure(cells[column], scale)) is not None
    ]


def _order_by_value(index: Index, table: Table, asked: _OrderQuestion, ranking: Ranking, records: Sequence[int]) -> list[int]:
    """Orders by the column that the words after the superlative name, or else those before it."""
    names, columns = read_columns(index, table), index.remember(sample_columns, table)
    column = _choose_column(names, columns, asked)
    if column is None:
        return []
    scale = find_scale(columns[column])
    values = _measure_rows(index, table, column, scale, records)
    if len(values) < max(_MIN_MEASURED, _MIN_MEASURED_SHARE * min(len(records), MOST_ROWS)):
        return []
    # The oldest has the earliest date but the highest age.
    high = asked.high != (asked.when and (scale == "span" or find_column(names, ["age"]) == column))
    values.sort(key=lambda pair: (-pair[0] if high else pair[0], pair[1]))
    held = {
        record: sum(ranking.worth[term] for term in {spot[2] for spot in ranking.hits.get(record, ())}) for _, record in values
    }
    least = WEIGHTS.condition * max(held.values())
    # First the rows with most of the question's words, then all.
    fitting = [record for _, record in values if held[record] >= least], [record for _, record in values]
    turns = [record for many in (asked.many, 3 * asked.many, _MAX_ROWS) for rows in fitting for record in rows[:many]]
    return list(dict.fromkeys(turns))[: 2 * _MAX_ROWS]


def _choose_column(names: list[str], columns: list[list[str]], asked: _OrderQuestion) -> int | None:
    """The column to order by: one with measures if possible, then one that suits the superlative, then any."""
    before, after = asked.words[: asked.most][::-1], asked.words[asked.most + 1 :]
    near = [*after[:_WORDS_AFTER_SUPERLATIVE], *before, *after[_WORDS_AFTER_SUPERLATIVE:]]
    named = find_column([name if are_measures(cells) else "" for name, cells in zip(names, columns, strict=True)], near)
    if named is not None and (not asked.when or find_scale(columns[named]) != "number"):
        return named
    meant = find_column(names, read_list("ages")) if asked.when else None
    others = (meant, named, find_column(names, near), find_column(names, ["size"]))
    return next((column for column in others if column is not None), None)
