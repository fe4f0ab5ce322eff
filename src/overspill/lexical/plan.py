"""Decides in which order to show records, given the kind of answer that a question wants."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable

from msgspec import Struct
from msgspec.structs import replace

from overspill.lexical.cells import MOST_ROWS
from overspill.lexical.failures import Signs
from overspill.lexical.index import Index
from overspill.lexical.linking import find_linked_rows, find_unlike_rows
from overspill.lexical.ordering import Rows, find_ordered_rows
from overspill.lexical.query import Query
from overspill.lexical.rank import Ranking

_MAX_ANCHORS = 5
"""Best records whose neighbours count if the question says "after" or "before"."""
_BODY_SHARE = 0.95
_ASKED_SIDE_SHARE, _OTHER_SIDE_SHARE = 0.95, 0.6
_STRETCH_TOKENS = 450
_MAX_STRETCH_SHARE, _MIN_STRETCH_SHARE = 0.8, 0.4
_RARE_TOKENS, _RARE_SHARE = 200.0, 0.2
_MAX_RARE_RECORDS = 3
"""A word of the question in no more records than this is what is looked for, even if the question is about a failure."""
_VERDICTS_SHARE = 0.7
_COUNTS_SHARE = 0.3
_NUMBER = re.compile(rb"(?<![\w./-])\d[\d,.]{0,12} \Z")
_MAX_NUMBER_BYTES = 12
"""How many bytes before a word to look for its number."""
_FAILURE_TERMS_FACTOR = 0.3
"""How much the words of a question about a failure count, compared with what looks like its cause."""
_MIN_SCORE_SHARE = 0.05
"""A record below this share of the best score only shares a common word with the question."""
_SMALL_OUTPUT_BYTES = 4_000_000
_TIERS = 10
_MAX_LINKED_ROWS, _LINK_LEAD, _LINK_STEP = 24, 0.95, 0.01
_UNLIKE_EVIDENCE = 0.7
_ROW_LEAD, _ROW_STEP = 1.2, 0.01

Order = list[tuple[int, float]]


class Step(Struct, frozen=True):
    """Records to add, best first, within the part of a budget that `room` gives."""

    order: Order
    room: Callable[[float], float] = float


class Plan(Struct, frozen=True):
    steps: tuple[Step, ...]
    evidence: float
    """How sure the structure of the text, not its words, makes the answer, 0…1."""
    matches: set[int]
    """The records that contain what is asked; others are shown for their position."""
    ordered: bool = False
    """Whether the question asks for a few by their order, however many match."""
    partly: bool = False
    """Whether there are more rows than were compared."""


def plan(index: Index, query: Query, ranking: Ranking) -> Plan:
    way = _plan(index, query, ranking)
    if query.counting and (counts := _find_counts(index, ranking)):
        return replace(way, steps=(Step(counts, lambda tokens: _COUNTS_SHARE * tokens), *way.steps))
    return way


def _find_counts(index: Index, ranking: Ranking) -> Order:
    """Records with a number before a word of the question: `58 passed`."""
    return _order(
        {
            record: ranking.scores[record]
            for record, spots in ranking.hits.items()
            if any(
                ranking.terms[term].telling and _NUMBER.search(index.text[max(0, start - _MAX_NUMBER_BYTES) : start])
                for start, _, term in spots
            )
        }
    )


def _plan(index: Index, query: Query, ranking: Ranking) -> Plan:
    may_report_failure = index.traits.is_program_output or (index.total_bytes <= _SMALL_OUTPUT_BYTES and not query.how)
    signs = index.signs if query.failure and may_report_failure else None
    if signs and (signs.evidence or index.traits.is_program_output):
        order = _order(_score_blame(ranking, signs))
        steps = _plan_failures(ranking, signs, dict(order)) if query.listing else _plan_causes(signs, order)
        steps = (Step(_order(_score_rare(ranking)), lambda tokens: max(_RARE_TOKENS, _RARE_SHARE * tokens)), *steps, Step(order))
        return Plan(steps, signs.evidence, ranking.matches.union(signs.failing))
    scores = {record: score for record, score in ranking.scores.items() if not query.listing or record in ranking.matches}
    _raise_bodies(scores, index, ranking)
    if query.after or query.before:
        _raise_neighbours(scores, ranking, query, len(index.outline))
    unlike = find_unlike_rows(index, query, ranking)
    linked = unlike or find_linked_rows(index, query, ranking)
    rows = find_ordered_rows(index, query, ranking, linked)
    if unlike and not rows.records:
        rows = Rows(unlike[:_MAX_LINKED_ROWS], _UNLIKE_EVIDENCE)
    top = max(scores.values(), default=1.0)
    for number, record in enumerate(linked[:_MAX_LINKED_ROWS]):
        scores[record] = max(scores.get(record, 0.0), top * (_LINK_LEAD - _LINK_STEP * number))
    for number, record in enumerate(rows.records):
        scores[record] = max(scores.get(record, 0.0), top * (_ROW_LEAD - _ROW_STEP * number))
    least = 0.0 if query.listing else _MIN_SCORE_SHARE * top
    order = _order_by_tier(scores) if query.listing and not rows.records else _order(scores)
    steps = [Step([pair for pair in order if pair[1] >= least])]
    if query.listing and index.traits.has_definitions:
        # The contents of a requested definition are not further definitions of that kind.
        steps.insert(0, Step([pair for pair in order if ranking.holds(pair[0])]))
    partly = bool(linked or (rows.records and rows.compared)) and len(index.outline) > MOST_ROWS
    return Plan(tuple(steps), rows.evidence, ranking.matches, bool(rows.records), partly)


def _order(scores: dict[int, float]) -> Order:
    return sorted(scores.items(), key=lambda pair: (-pair[1], pair[0]))


def _order_by_tier(scores: dict[int, float]) -> Order:
    """If no record is best: groups of about equal score, each in document order."""
    top = max(scores.values(), default=1.0) or 1.0
    return sorted(scores.items(), key=lambda pair: (-round(_TIERS * pair[1] / top), pair[0]))


def _raise_bodies(scores: dict[int, float], index: Index, ranking: Ranking) -> None:
    """A matching heading says little without the record below it."""
    for label in ranking.labels:
        heading = index.outline.record_at(index.outline.label_starts[label])
        if heading in scores and heading + 1 < len(index.outline) and index.outline.under[heading + 1] == label:
            scores[heading + 1] = max(scores.get(heading + 1, 0.0), scores[heading] * _BODY_SHARE)


def _raise_neighbours(scores: dict[int, float], ranking: Ranking, query: Query, total: int) -> None:
    for record in ranking.best(_MAX_ANCHORS):
        for step, asked in ((1, query.after), (-1, query.before)):
            beside = record + step
            if 0 <= beside < total:
                share = _ASKED_SIDE_SHARE if asked else _OTHER_SIDE_SHARE
                scores[beside] = max(scores.get(beside, 0.0), ranking.scores[record] * share)


def _score_rare(ranking: Ranking) -> dict[int, float]:
    """Records with a word of the question that is in hardly any other."""
    held = {record: {term for _, _, term in spots if ranking.terms[term].telling} for record, spots in ranking.hits.items()}
    spread = Counter(term for terms in held.values() for term in terms)
    rare = {term for term, times in spread.items() if times <= _MAX_RARE_RECORDS}
    return {record: ranking.scores[record] for record, terms in held.items() if not rare.isdisjoint(terms)}


def _score_blame(ranking: Ranking, signs: Signs) -> dict[int, float]:
    top = max(ranking.scores.values(), default=1.0)
    scores = {record: score * _FAILURE_TERMS_FACTOR for record, score in ranking.scores.items()}
    for record, share in signs.scores.items():
        scores[record] = scores.get(record, 0.0) + top * share
    return scores


def _plan_failures(ranking: Ranking, signs: Signs, scores: dict[int, float]) -> list[Step]:
    """Everything that failed: verdicts, then reports of failure, then the question's words; what surrounds them last."""
    top = max(ranking.scores.values(), default=1.0)
    speaking = {record: top * own + ranking.scores.get(record, 0.0) for record, own in signs.failing.items()}
    return [
        Step(_order({record: scores.get(record, 0.0) for record in signs.verdicts}), lambda tokens: _VERDICTS_SHARE * tokens),
        Step(_order_by_tier(speaking)),
        Step(_order({record: scores[record] for record in ranking.scores if record in ranking.matches})),
    ]


def _plan_causes(signs: Signs, order: Order) -> list[Step]:
    """Where a cause is likeliest: before the first sign of giving up, at the first message, at the end."""
    top = order[0][1] if order else 1.0
    return [
        Step([(record, top) for record in signs.before], _stretch_room),
        Step([(record, top) for record in signs.first_message]),
        Step([(record, top) for record in signs.end], lambda tokens: (tokens - _stretch_room(tokens)) / 2),
    ]


def _stretch_room(tokens: float) -> float:
    return max(_MIN_STRETCH_SHARE * tokens, min(_MAX_STRETCH_SHARE * tokens, _STRETCH_TOKENS))
