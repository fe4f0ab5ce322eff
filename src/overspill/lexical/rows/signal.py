"""Finds rows of tables that answer a question through other rows: by joining, filtering or ordering them."""

from __future__ import annotations

from heapq import nlargest

from msgspec.structs import replace

from overspill.lexical.boost import Boost
from overspill.lexical.index import Index
from overspill.lexical.query import Query
from overspill.lexical.rank import Ranking
from overspill.lexical.rows.cells import RowList, find_list, find_longest_list, read_columns, read_rows
from overspill.lexical.rows.conditions import blank_comparisons, compares_cells, find_meeting_rows
from overspill.lexical.rows.connect import connect
from overspill.lexical.rows.mentions import Question
from overspill.lexical.rows.ordering import find_ordered_rows
from overspill.lexical.weights import WEIGHTS

_MAX_ROWS = 60
_MAX_CANDIDATES = 120
"""How many rows to read if none are compared. A row may be long."""


def boost_rows(index: Index, query: Query, ranking: Ranking) -> Boost | None:
    """The rows that the question leads to and, if it asks for an order, the first of them, or of all rows."""
    led = _find_rows(index, query, ranking)
    if led.leads and index.traits.has_members:
        query = replace(query, text=blank_comparisons(query.text))
    ordered = find_ordered_rows(index, query, ranking, led.leads)
    if ordered.rows:
        return replace(ordered, leads=led.leads, matches=led.matches)
    return led if led.leads else None


def _find_rows(index: Index, query: Query, ranking: Ranking) -> Boost:
    meeting, around = connect(index, query, ranking)
    if around:
        return Boost(leads=around, rows=meeting, brief=frozenset(meeting))
    rows = find_filtered_rows(index, query, ranking)
    # If the question compares cells, these rows match even without its words.
    matches = frozenset(rows) if rows and compares_cells(query.text) else frozenset[int]()
    return Boost(leads=rows, rows=rows, brief=frozenset(rows), matches=matches)


def find_filtered_rows(index: Index, query: Query, ranking: Ranking) -> list[int]:
    """The rows of a list that meet its bounds and mention most of the rest; empty if the question does not ask for a list."""
    has_lists = index.traits.has_members or bool(index.outline.tables)
    is_compared = has_lists and compares_cells(query.text)
    if not (is_compared or (query.listing and index.traits.has_members)):
        return []
    best = ranking.best(1) if index.traits.has_members else []
    rows = (find_list(index, best[0]) if best else None) or index.remember(find_longest_list)
    if not rows:
        return []
    meeting = find_meeting_rows(index, rows, query.text)
    named = replace(query, text=blank_comparisons(query.text))
    likeliest = sorted(_list_likeliest(ranking)) if best else []
    said = _measure_said(index, named, ranking, rows, meeting or rows.keep(likeliest))
    most = max((worth for worth, _ in said.values()), default=0.0)
    likely = [record for record, (worth, _) in said.items() if worth >= WEIGHTS.filtered * most]
    if not meeting and (len(likely) > _MAX_ROWS or not most):
        return []
    return sorted(likely, key=lambda record: (-said[record][1], -said[record][0]))


def _list_likeliest(ranking: Ranking) -> list[int]:
    """The records with most of the question's words, the best first."""
    held = {record: sum(ranking.worth[term] for term in {spot[2] for spot in spots}) for record, spots in ranking.hits.items()}
    return nlargest(_MAX_CANDIDATES, held, key=lambda record: (held[record], ranking.scores.get(record, 0.0)))


def _measure_said(
    index: Index, query: Query, ranking: Ranking, rows: RowList, records: list[int]
) -> dict[int, tuple[float, int]]:
    """For each of these rows, the worth of the words of the question that are whole cells, and how many cells that are.

    Each word counts for one cell only, and a cell for one of several places: "2 stamps and 2 sheets" asks for two cells.
    """
    question, columns = Question(query, ranking), read_columns(index, rows.table)
    said: dict[int, tuple[float, int]] = {}
    for record, cells in read_rows(index, rows.table, records) if records else ():
        taken, filled = set[int](), set[tuple[int, str]]()
        named = enumerate(zip(columns, cells, strict=False))
        places = [(start, end, number) for number, names in named for start, end in question.find(*names)]
        for start, end, number in sorted(places, key=lambda place: place[0] - place[1]):
            value = number, " ".join(question.words[start:end])
            if value not in filled and taken.isdisjoint(range(start, end)):
                taken.update(range(start, end))
                filled.add(value)
        said[record] = question.measure(frozenset(taken)), len(filled)
    return said
