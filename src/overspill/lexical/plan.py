"""Decides in which order to show records, given what the signals find."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct
from msgspec.structs import replace

from overspill.lexical.boost import Boost, Signal, Step, order_by_score, order_by_tier
from overspill.lexical.flow import flow
from overspill.lexical.index import Index
from overspill.lexical.query import Query
from overspill.lexical.rank import Ranking
from overspill.lexical.reply.repeats import move_repeats
from overspill.lexical.rows.cells import MOST_ROWS
from overspill.lexical.verdicts import favour_verdicts
from overspill.lexical.weights import WEIGHTS

_MAX_LEADS = 24
_MAX_BRIEF_LEADS = 8
"""How many of these are first shown by their names alone."""


class Plan(Struct, frozen=True):
    steps: tuple[Step, ...]
    ranking: Ranking
    evidence: float
    """How sure the structure of the text, not its words, makes the answer, 0…1."""
    matches: set[int]
    """The records that contain what is asked; others are shown for their position."""
    ordered: bool = False
    """Whether the question asks for a few by their order, however many match."""
    brief: frozenset[int] = frozenset()
    """Records to show only by what they say about the question, until all of them are shown."""
    partly: bool = False
    """Whether there are more rows than were compared."""


def plan(index: Index, query: Query, ranking: Ranking, signals: Sequence[Signal]) -> Plan:
    if query.listing and index.traits.has_replies:
        query = replace(query, listing=False)  # what is said in a thread is no list, and replies need not match
    ranking = replace(ranking, scores=favour_verdicts(index, query, flow(index, query, ranking)))
    boosts: list[Boost] = []
    for signal in signals:
        if boost := signal(index, query, ranking):
            boosts.append(boost)
            ranking = replace(ranking, leads=ranking.leads or boost.leads)
            if boost.is_whole:
                break
    first = [step for boost in boosts for step in boost.first]
    if boosts and boosts[-1].is_whole:
        return Plan(tuple(first), ranking, boosts[-1].evidence, ranking.matches.union(boosts[-1].matches))
    answer = next((boost for boost in reversed(boosts) if boost.rows), Boost())
    steps = _plan_scores(index, query, ranking, boosts, answer.rows)
    partly = any(boost.leads for boost in boosts) or answer.is_compared
    return Plan(
        (*first, *steps),
        ranking,
        answer.evidence,
        ranking.matches.union(answer.matches),
        bool(answer.rows),
        answer.brief if answer.rows else _list_brief(index, ranking),
        partly and (index.is_partial or len(index.outline) > MOST_ROWS),
    )


def _list_brief(index: Index, ranking: Ranking) -> frozenset[int]:
    """Rows that the question leads to, and the one that it names. All of them may be asked for, and each may be long."""
    if not ranking.leads or not index.traits.has_members:
        return frozenset()
    return frozenset((*ranking.leads[:_MAX_BRIEF_LEADS], *ranking.best(1)))


def _plan_scores(index: Index, query: Query, ranking: Ranking, boosts: list[Boost], rows: list[int]) -> list[Step]:
    scores = {record: score for record, score in ranking.scores.items() if not query.listing or record in ranking.matches}
    for boost in boosts:
        for record, score in boost.raised.items():
            scores[record] = max(scores.get(record, 0.0), score)
    top = max(scores.values(), default=1.0)
    for number, record in enumerate(ranking.leads[:_MAX_LEADS]):
        scores[record] = max(scores.get(record, 0.0), top * (WEIGHTS.lead - WEIGHTS.row_step * number))
    for number, record in enumerate(rows):
        scores[record] = max(scores.get(record, 0.0), top * (WEIGHTS.answering_row - WEIGHTS.row_step * number))
    least = 0.0 if query.listing else WEIGHTS.least * top
    order = order_by_tier(scores) if query.listing and not rows else order_by_score(scores)
    order = [pair for pair in order if pair[1] >= least]
    if not query.listing and not rows:
        order = move_repeats(index, order)
    steps = [Step(order)]
    if query.listing and index.traits.has_definitions:
        # The contents of a requested definition are not further definitions of that kind.
        steps.insert(0, Step([pair for pair in order if ranking.holds(pair[0])]))
    return steps
