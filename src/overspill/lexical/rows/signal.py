"""Rows of tables that answer by what they have to do with others: unlike or like them, joined with them, filtered, ordered."""

from __future__ import annotations

from msgspec.structs import replace

from overspill.lexical.boost import Boost
from overspill.lexical.index import Index
from overspill.lexical.query import Query
from overspill.lexical.rank import Ranking
from overspill.lexical.rows.conditions import blank_comparisons, find_filtered_rows
from overspill.lexical.rows.connect import connect
from overspill.lexical.rows.likeness import find_similar_rows
from overspill.lexical.rows.ordering import find_ordered_rows


def boost_rows(index: Index, query: Query, ranking: Ranking) -> Boost | None:
    """The rows that the question leads to and, if it asks for an order, those that are first among them, or among all."""
    led = _find_rows(index, query, ranking)
    if led.leads and index.traits.has_members:
        query = replace(query, text=blank_comparisons(query.text))
    ordered = find_ordered_rows(index, query, ranking, led.leads)
    if ordered.records:
        return Boost(leads=led.leads, rows=ordered.records, evidence=ordered.evidence, is_compared=ordered.compared)
    return led if led.leads else None


def _find_rows(index: Index, query: Query, ranking: Ranking) -> Boost:
    if rows := find_similar_rows(index, query, ranking):
        return Boost(leads=rows)
    meeting, around = connect(index, query, ranking)
    if around:
        return Boost(leads=around, rows=meeting, brief=frozenset(meeting))
    rows = find_filtered_rows(index, query, ranking)
    # Rows of lines are found by their cells alone, and may be too many to show: all of them count.
    return Boost(
        leads=rows, rows=rows, brief=frozenset(rows), matches=frozenset() if index.traits.has_members else frozenset(rows)
    )
