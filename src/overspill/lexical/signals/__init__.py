"""What a question may want besides its words, in the order in which it is tried.

`benchmarks/engine_recall.py --ablate` says what each signal is worth.
"""

from __future__ import annotations

from overspill.lexical.boost import Signal
from overspill.lexical.index import Index
from overspill.lexical.likeness import asks_for_likeness
from overspill.lexical.listings import lists_sizes
from overspill.lexical.ordering import asks_for_order
from overspill.lexical.query import Query
from overspill.lexical.signals.context import boost_context
from overspill.lexical.signals.count import boost_counts
from overspill.lexical.signals.definition import boost_definitions
from overspill.lexical.signals.expansion import boost_related_words
from overspill.lexical.signals.facts import boost_facts
from overspill.lexical.signals.failure import boost_failures
from overspill.lexical.signals.neighbours import boost_bodies, boost_neighbours
from overspill.lexical.signals.replies import boost_replies
from overspill.lexical.signals.rows import boost_rows
from overspill.lexical.signals.scope import boost_scope
from overspill.lexical.signals.section import boost_sections
from overspill.lexical.signals.subsection import boost_subsections
from overspill.lexical.signals.threads import boost_threads
from overspill.lexical.signals.verdict import boost_yes_or_no
from overspill.lexical.signals.vicinity import boost_vicinity
from overspill.lexical.signals.windows import boost_windows


def compares_rows(index: Index, query: Query) -> bool:
    """Whether a question needs all rows of a table or listing, wherever they are."""
    if index.traits.is_celled or index.traits.is_markup:
        return asks_for_order(query) or asks_for_likeness(query)
    return asks_for_order(query) and lists_sizes(index)


SIGNALS: tuple[Signal, ...] = (
    boost_related_words,
    boost_context,
    boost_vicinity,
    boost_sections,
    boost_windows,
    boost_replies,
    boost_threads,
    boost_definitions,
    boost_scope,
    boost_yes_or_no,
    boost_counts,
    boost_failures,
    boost_facts,
    boost_bodies,
    boost_subsections,
    boost_neighbours,
    boost_rows,
)
