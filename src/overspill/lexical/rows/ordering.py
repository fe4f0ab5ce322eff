"""Answers questions about order: the largest, the fewest, the top five, the first, the last.

Tables have named columns; listings (ls -l, du, find) a size in each line; and histories begin with the newest.
"""

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
from overspill.lexical.reply.render import render
from overspill.lexical.rows.cells import MOST_ROWS, ends_with_total, find_column, read_columns, read_rows, sample_columns
from overspill.lexical.rows.measures import Scale, are_measures, find_scale, measure
from overspill.lexical.weights import WEIGHTS
from overspill.lexical.words import read_lexicon, read_list
from overspill.text.encoding import decode
from overspill.text.regex import regex

_MAX_ROWS = 12
_MAX_TABLES = 4
_WORDS_AFTER_SUPERLATIVE = 4
_MAX_DATED_ROWS = 2
_MIN_MEASURED, _MIN_MEASURED_SHARE = 3, 0.3
"""The number and share of rows with a measure that a column needs to order them."""
_COUNT = regex(r"\d{1,6}")
_SIZE = regex(r"\d[\d,]*(?:\.\d+)?(?:[kKMGTP]i?B?|m?s)?")
_COMMIT = regex(rb"(?:commit )?[0-9a-f]{7,64}\b")
_HEAD_BYTES = 4_000
_MIN_SIZED_SHARE = 0.8


class _OrderQuestion(Struct, frozen=True):
    """The order that a question asks for: the positions of its superlative and of its "first" or "last", -1 for none."""

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
        at, spelt = max(self.most, self.place), {word: number for number, word in enumerate(read_list("numbers"), 1)}
        near = self.words[max(0, at - 1) : at + 2]
        return next((spelt.get(word) or int(word) for word in near if word in spelt or _COUNT.fullmatch(word)), 1)


def asks_for_order(query: Query) -> bool:
    asked = _parse_question(query.text)
    return asked.most >= 0 or asked.place >= 0


def _parse_question(question: str) -> _OrderQuestion:
    words = re.findall(r"[^\W_]+", question.lower())
    high, last = read_lexicon("high"), read_lexicon("last")
    most = next((number for number, word in enumerate(words) if word in high or word in read_lexicon("low")), -1)
    place = next((number for number, word in enumerate(words) if word in last or word in read_lexicon("first")), -1)
    return _OrderQuestion(words, most, most >= 0 and words[most] in high, place, place >= 0 and words[place] in last)


def find_ordered_rows(index: Index, query: Query, ranking: Ranking, among: Sequence[int] = ()) -> Boost:
    """Finds no rows if the question does not ask for an order or nothing can be ordered. `among` limits the rows to compare."""
    asked = _parse_question(query.text)
    if asked.most < 0 and asked.place < 0:
        return Boost()
    by_table: dict[Table, Sequence[int]] = {}
    if among:
        for table in {table: None for record in among if (table := index.outline.table_of(record))}:
            by_table[table] = [record for record in among if table.first <= record < table.last]
    else:
        likeliest = _find_likeliest_tables(index, ranking)
        by_table = {table: range(table.first, table.last - ends_with_total(index, table)) for table in likeliest}
    for table, records in by_table.items() if asked.most >= 0 else ():
        if rows := _order_by_value(index, table, asked, ranking, records):
            return Boost(rows=rows, evidence=WEIGHTS.evidence_of_value)
    rows = [] if among else _order_without_column(index, list(by_table), asked)
    return Boost(rows=rows, evidence=WEIGHTS.evidence_of_place if rows else 0.0)


def _order_without_column(index: Index, tables: list[Table], asked: _OrderQuestion) -> list[int]:
    """The order for questions that name no column: by the sizes of a listing, by date, or by place."""
    if asked.most >= 0 and (rows := _list_by_size(index, high=asked.high)):
        return rows
    if asked.place < 0:
        return []
    if not tables:
        return _list_by_age(index, asked.many, newest=asked.last)
    rows = _order_by_date(index, tables[0], asked)
    for table in tables:
        edge = range(table.last - 1, table.first - 1, -1) if asked.last else range(table.first, table.last)
        rows += edge[: min(_MAX_ROWS, asked.many + 1)]
    return rows


def _find_likeliest_tables(index: Index, ranking: Ranking) -> list[Table]:
    """The tables whose best row contains most of the question; longer ones first if they contain the same."""
    best: dict[int, float] = {}
    for record, score in ranking.scores.items():
        if table := index.outline.table_of(record):
            best[table.first] = max(score, best.get(table.first, 0.0))

    def relevance(table: Table) -> tuple[float, int]:
        return best.get(table.first, 0.0), table.last - table.first

    return nlargest(_MAX_TABLES, index.outline.tables, key=relevance)


def _order_by_date(index: Index, table: Table, asked: _OrderQuestion) -> list[int]:
    """The first or last by date, for rows that are not in the order of their dates."""
    names, columns = read_columns(index, table), index.remember(sample_columns, table)
    column = find_column(names, asked.words)
    if column is None or find_scale(columns[column]) != "date":
        column = find_column(names, read_list("dates"))
    dated = _measure_rows(index, table, column, "date") if column is not None else []
    return [record for _, record in sorted(dated, reverse=asked.last)[:_MAX_DATED_ROWS]]


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
    # The oldest has the earliest date but the highest age, the slowest the longest time but the lowest speed.
    is_age = asked.when and (scale == "span" or find_column(names, ["age"]) == column)
    is_speed = not asked.when and asked.slow and find_column(names, read_list("speeds")) == column
    high = asked.high != (is_age or is_speed)
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
    meant = find_column(
        names, read_list("ages") if asked.when else (*read_list("durations"), *read_list("speeds")) if asked.slow else ()
    )
    others = (meant, named, find_column(names, near), find_column(names, ["size"]))
    return next((column for column in others if column is not None), None)


def _list_by_size(index: Index, *, high: bool) -> list[int]:
    """Lines ordered by the size that each begins with, as `du` and `wc` print them."""
    outline = index.outline
    lines = range(min(len(outline), MOST_ROWS) if _may_list(index) else 0)
    words = {record: render(index, outline.starts[record], outline.ends[record]).split(None, 1)[:1] for record in lines}
    sizes = {
        record: measure(word, "span" if word.endswith("s") else "number") or 0.0
        for record, first in words.items()
        for word in first
        if _SIZE.fullmatch(word)
    }
    if len(sizes) < max(_MIN_MEASURED, _MIN_SIZED_SHARE * len(lines)):
        return []
    return sorted(sizes, key=lambda record: -sizes[record] if high else sizes[record])[:_MAX_ROWS]


def lists_sizes(index: Index) -> bool:
    """Whether the lines at the beginning have such sizes."""
    lines = decode(bytes(index.source[:_HEAD_BYTES])).splitlines()[:-1]
    sized = sum(_SIZE.fullmatch(line.split(maxsplit=1)[0]) is not None for line in lines if line.strip())
    return _may_list(index) and sized > _MIN_SIZED_SHARE * max(1, len(lines))


def _may_list(index: Index) -> bool:
    return index.traits.is_log or index.traits.has_one_header


def _list_by_age(index: Index, count: int, *, newest: bool) -> list[int]:
    """The commits at one end of a history; empty if this is not one."""
    if not index.traits.is_log or not _COMMIT.match(index.text):
        return []
    total = len(index.outline)
    return list(range(min(count, total)) if newest else range(total - 1, max(-1, total - 1 - count), -1))
