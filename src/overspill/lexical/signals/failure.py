"""Failures: what gave up, and the probable cause."""

from __future__ import annotations

from overspill.lexical.boost import Boost, Order, Step, order_by_score, order_by_tier
from overspill.lexical.failures import Signs, list_backwards, read_signs
from overspill.lexical.index import Index
from overspill.lexical.query import Query
from overspill.lexical.rank import Ranking
from overspill.lexical.weights import WEIGHTS

_STRETCH_TOKENS = 450
_MAX_STRETCH_SHARE, _MIN_STRETCH_SHARE = 0.8, 0.4
_VERDICTS_SHARE = 0.7
_REPORTS_SHARE = 0.4
_SMALL_OUTPUT_BYTES = 4_000_000


def boost_failures(index: Index, query: Query, ranking: Ranking) -> Boost | None:
    is_program_output = index.traits.is_program_output
    is_read = index.traits.is_code or index.traits.is_running_text
    may_be_output = not is_read and index.total_bytes <= _SMALL_OUTPUT_BYTES and not query.how
    if not query.failure or not (is_program_output or may_be_output):
        return None
    signs = index.remember(read_signs)
    if not (signs.evidence or is_program_output):
        return None
    top = max(ranking.scores.values(), default=1.0)
    blame = {record: score * WEIGHTS.failure_terms for record, score in ranking.scores.items()}
    for record, share in signs.scores.items():
        blame[record] = blame.get(record, 0.0) + top * share
    order = order_by_score(blame)
    steps = _plan_failures(ranking, signs, dict(order)) if query.listing else _plan_causes(signs, order)
    return Boost(first=(*steps, Step(order)), is_whole=True, matches=frozenset(signs.failing), evidence=signs.evidence)


def _plan_failures(ranking: Ranking, signs: Signs, scores: dict[int, float]) -> list[Step]:
    """Everything that failed: verdicts, then reports of failure, then the question's words, and finally their surroundings."""
    top = max(ranking.scores.values(), default=1.0)
    speaking = {record: top * own + ranking.scores.get(record, 0.0) for record, own in signs.failing.items()}
    verdicts = {record: scores.get(record, 0.0) for record in signs.verdicts}
    return [
        Step(order_by_score(verdicts), lambda tokens: _VERDICTS_SHARE * tokens),
        Step(order_by_tier(speaking)),
        Step(order_by_score({record: scores[record] for record in ranking.scores if record in ranking.matches})),
    ]


def _plan_causes(signs: Signs, order: Order) -> list[Step]:
    """The likeliest places of a cause: before the first sign of giving up or else a report, and at the end."""
    top = order[0][1] if order else 1.0
    reports = [] if signs.gave_up else [pair for pair in order if pair[0] in signs.failing]
    return [
        Step(reports, lambda tokens: _REPORTS_SHARE * tokens),
        Step([(record, top) for record in (list_backwards(reports[0][0]) if reports else signs.before)], _stretch_room),
        Step([(record, top) for record in signs.end], lambda tokens: (tokens - _stretch_room(tokens)) / 2),
    ]


def _stretch_room(tokens: float) -> float:
    return max(_MIN_STRETCH_SHARE * tokens, min(_MAX_STRETCH_SHARE * tokens, _STRETCH_TOKENS))
