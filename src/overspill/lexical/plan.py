"""Decides the order in which to show records, given what the signals find."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct
from msgspec.structs import replace

from overspill.lexical.boost import Boost, Signal, Step, order_by_score, order_by_tier
from overspill.lexical.clues import favour_verdicts
from overspill.lexical.flow import flow
from overspill.lexical.index import Index
from overspill.lexical.query import Query
from overspill.lexical.rank import Ranking
from overspill.lexical.reply.repeats import move_repeats
from overspill.lexical.rows.cells import MOST_ROWS, list_notes
from overspill.lexical.weights import WEIGHTS

_MAX_LEADS = 24
_MAX_BRIEF_LEADS = 8
"""How many of the leads to show by name alone at first."""


class Plan(Struct, frozen=True):
    steps: tuple[Step, ...]
    ranking: Ranking
    evidence: float
    """How strongly the structure of the text, not its words, supports the answer, 0…1."""
    matches: set[int]
    """The records that match the question; others are shown for their position."""
    ordered: bool = False
    """Whether the question asks for the first few in some order, even if more match."""
    brief: frozenset[int] = frozenset()
    """Records to shorten to their relevant parts until all of them are shown."""
    partly: bool = False
    """Whether there are more rows than were compared."""
    notes: tuple[str, ...] = ()
    """Notes on the tables whose rows were compared."""


def plan(index: Index, query: Query, ranking: Ranking, signals: Sequence[Signal]) -> Plan:
    if query.listing and index.traits.has_replies:
        query = replace(query, listing=False)  # the messages of a thread are not a list, and replies need not match
    ranking = replace(ranking, scores=favour_verdicts(index, query, flow(index, query, ranking)))
    boosts: list[Boost] = []
    for signal in signals:
        if boost := signal(index, query, ranking):
            boosts.append(boost)
            if boost.is_whole:
                break
    steps = tuple(step for boost in boosts for step in boost.first)
    answer = next((boost for boost in boosts if boost.is_whole or boost.leads or boost.rows), Boost())
    matches = set(answer.matches) or ranking.matches
    if answer.is_whole:
        return Plan(steps, ranking, answer.evidence, matches)
    brief = answer.brief
    if answer.leads and not answer.rows and index.traits.has_members:
        # The question may want any row that it leads to, or the one that it names, and each may be long.
        brief = frozenset((*answer.leads[:_MAX_BRIEF_LEADS], *ranking.best(1)))
    partly = bool(answer.leads or answer.rows) and (index.is_partial or len(index.outline) > MOST_ROWS)
    steps += tuple(_plan_scores(index, query, ranking, boosts, answer))
    tables = dict.fromkeys(index.outline.table_of(row) for row in answer.rows) if answer.evidence or answer.matches else ()
    notes = tuple(note for table in tables if table for note in index.remember(list_notes, table))
    return Plan(steps, ranking, answer.evidence, matches, bool(answer.rows), brief, partly, notes)


def _plan_scores(index: Index, query: Query, ranking: Ranking, boosts: list[Boost], answer: Boost) -> list[Step]:
    scores = {record: score for record, score in ranking.scores.items() if not query.listing or record in ranking.matches}
    for boost in boosts:
        for record, score in boost.raised.items():
            scores[record] = max(scores.get(record, 0.0), score)
    top = max(scores.values(), default=1.0)
    for share, rows in ((WEIGHTS.lead, answer.leads[:_MAX_LEADS]), (WEIGHTS.answering_row, answer.rows)):
        for number, record in enumerate(rows):
            scores[record] = max(scores.get(record, 0.0), top * (share - WEIGHTS.row_step * number))
    if query.listing:
        order = order_by_score(scores) if answer.rows else order_by_tier(scores)
    else:
        order = [pair for pair in order_by_score(scores) if pair[1] >= WEIGHTS.least * top]
        order = order if answer.rows else move_repeats(index, order)
    if query.listing and index.traits.has_definitions:
        # The contents of a requested definition are not further definitions of that kind.
        return [Step([pair for pair in order if ranking.holds(pair[0])]), Step(order)]
    return [Step(order)]
