"""Signals: what a question may want besides its words, in the order in which they are tried.

`benchmarks/engine/recall.py --ablate` shows what each signal is worth.
"""

from __future__ import annotations

from overspill.lexical.boost import Signal
from overspill.lexical.index import Index
from overspill.lexical.query import Query
from overspill.lexical.rows.conditions import compares_cells
from overspill.lexical.rows.ordering import asks_for_order, lists_sizes
from overspill.lexical.rows.signal import boost_rows
from overspill.lexical.signals.count import boost_counts
from overspill.lexical.signals.facts import boost_facts
from overspill.lexical.signals.failure import boost_failures


def compares_rows(index: Index, query: Query) -> bool:
    """Whether a question needs all rows of a table or listing, wherever they are."""
    if index.traits.is_celled or index.traits.is_markup:
        is_compared = index.traits.is_celled and compares_cells(query.text)
        return is_compared or asks_for_order(query)
    return asks_for_order(query) and lists_sizes(index)


SIGNALS: tuple[Signal, ...] = (boost_counts, boost_failures, boost_facts, boost_rows)
