"""Finds rows of tables that answer a question through other rows: by joining, filtering or ordering them."""

from __future__ import annotations

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

_MAX_ROWS = 60
_MAX_CANDIDATES = 400
"""How many rows to read if none are compared, the best first."""


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
    matches = frozenset(rows) if compares_cells(query.text) else frozenset[int]()
    return Boost(leads=rows, rows=rows, brief=frozenset(rows), matches=matches)


def find_filtered_rows(index: Index, query: Query, ranking: Ranking) -> list[int]:
    """The rows of a list that meet its bounds and mention most of the rest; empty if the question does not ask for a list."""
    is_compared = compares_cells(query.text)
    if not (is_compared or (query.listing and index.traits.has_members)):
        return []
    best = ranking.best(_MAX_CANDIDATES) if index.traits.has_members else []
    rows = (find_list(index, best[0]) if best else None) or index.remember(find_longest_list)
    if not rows:
        return []
    meeting = find_meeting_rows(index, rows, query.text)
    said = _count_said(index, replace(query, text=blank_comparisons(query.text)), ranking, rows, meeting or rows.keep(best))
    most = max(said.values(), default=0)
    likely = [record for record, count in said.items() if count == most]
    return likely if meeting or (most and len(likely) <= _MAX_ROWS) else []


def _count_said(index: Index, query: Query, ranking: Ranking, rows: RowList, records: list[int]) -> dict[int, int]:
    """For each of these rows, how many of its whole cells the question mentions. Each word counts for one cell only."""
    question, columns = Question(query, ranking), read_columns(index, rows.table)
    said: dict[int, int] = {}
    for record, cells in read_rows(index, rows.table, records) if records else ():
        places = {place for column, cell in zip(columns, cells, strict=False) for place in question.find(column, cell)}
        taken: set[int] = set()
        said[record] = 0
        for start, end in sorted(places, key=lambda place: place[0] - place[1]):
            if taken.isdisjoint(range(start, end)):
                taken.update(range(start, end))
                said[record] += 1
    return said
