"""Joins: the rows that connect what a question names, and those that it asks for around them."""

from __future__ import annotations

from overspill.lexical.boost import Boost
from overspill.lexical.connect import connect
from overspill.lexical.index import Index
from overspill.lexical.query import Query
from overspill.lexical.rank import Ranking


def boost_joined_rows(index: Index, query: Query, ranking: Ranking) -> Boost | None:
    if ranking.leads:
        return None
    found = connect(index, query, ranking)
    if not found.around:
        return None
    return Boost(leads=found.around, rows=found.meeting, brief=frozenset(found.meeting))
