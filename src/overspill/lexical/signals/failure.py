"""Failures: what gave up, and what probably made it."""

from __future__ import annotations

import re
from collections import Counter

from overspill.lexical.boost import Boost, Order, Step, order_by_score, order_by_tier
from overspill.lexical.confidence import measure_best_share
from overspill.lexical.failures import Signs, list_backwards
from overspill.lexical.index import Index
from overspill.lexical.query import Query
from overspill.lexical.rank import Ranking
from overspill.lexical.weights import WEIGHTS

_LONG_NUMBER = re.compile(r"\d{4,}")
_STRETCH_TOKENS = 450
_MAX_STRETCH_SHARE, _MIN_STRETCH_SHARE = 0.8, 0.4
_RARE_TOKENS, _RARE_SHARE = 200.0, 0.2
_MAX_RARE_RECORDS = 3
"""A word of the question in no more records than this is what is looked for, even if the question is about a failure."""
_VERDICTS_SHARE = 0.7
_REPORTS_SHARE = 0.4
_MIN_KNOWN_SHARE = 0.85
"""An event with less of what is asked shares some words with the question."""
_NAMED_SHARE = 0.3
"""Of the budget, for what has words of a question that no event answers."""
_SMALL_OUTPUT_BYTES = 4_000_000


def boost_failures(index: Index, query: Query, ranking: Ranking) -> Boost | None:
    is_program_output = index.traits.is_program_output
    is_read = index.traits.is_code or index.traits.is_running_text
    may_be_output = not is_read and index.total_bytes <= _SMALL_OUTPUT_BYTES and not query.how
    if not query.failure:
        return _add_failure(index, query, ranking)
    if not (is_program_output or may_be_output) or _has_known_number(ranking):
        return None
    signs = index.signs
    if not (signs.evidence or is_program_output):
        return None
    order = order_by_score(_score_blame(ranking, signs))
    steps = _plan_failures(ranking, signs, dict(order)) if query.listing else _plan_causes(signs, order)
    rare = Step(order_by_score(_score_rare(ranking)), lambda tokens: max(_RARE_TOKENS, _RARE_SHARE * tokens))
    return Boost(first=(rare, *steps, Step(order)), is_whole=True, matches=frozenset(signs.failing), evidence=signs.evidence)


def _add_failure(index: Index, query: Query, ranking: Ranking) -> Boost | None:
    """If no event of a log has most of what is asked, and something visibly gave up: that is likely the reason to ask."""
    if not index.traits.is_log or query.listing or query.how or not ranking.terms or _has_known_number(ranking):
        return None
    # Signs last: reading them takes as long as the search.
    if measure_best_share(index, ranking) >= _MIN_KNOWN_SHARE or not index.signs.is_told:
        return None
    named = Step(order_by_score(ranking.scores), lambda tokens: _NAMED_SHARE * tokens)
    order = order_by_score(_score_blame(ranking, index.signs))
    return Boost(first=(named, *_plan_causes(index.signs, order), Step(order)), is_whole=True)


def _has_known_number(ranking: Ranking) -> bool:
    """Whether the text has a long number of the question, a port or an id: that is looked up, whatever else is asked."""
    long = {number for number, term in enumerate(ranking.terms) if term.literal and _LONG_NUMBER.fullmatch(term.key)}
    return bool(long) and any(term in long for spots in ranking.hits.values() for _, _, term in spots)


def _score_rare(ranking: Ranking) -> dict[int, float]:
    """Records with a word of the question that is in hardly any other."""
    held = {record: {term for _, _, term in spots if ranking.terms[term].telling} for record, spots in ranking.hits.items()}
    spread = Counter(term for terms in held.values() for term in terms)
    rare = {term for term, times in spread.items() if times <= _MAX_RARE_RECORDS}
    return {record: ranking.scores[record] for record, terms in held.items() if not rare.isdisjoint(terms)}


def _score_blame(ranking: Ranking, signs: Signs) -> dict[int, float]:
    top = max(ranking.scores.values(), default=1.0)
    scores = {record: score * WEIGHTS.failure_terms for record, score in ranking.scores.items()}
    for record, share in signs.scores.items():
        scores[record] = scores.get(record, 0.0) + top * share
    return scores


def _plan_failures(ranking: Ranking, signs: Signs, scores: dict[int, float]) -> list[Step]:
    """Everything that failed: verdicts, then reports of failure, then the question's words; what surrounds them last."""
    top = max(ranking.scores.values(), default=1.0)
    speaking = {record: top * own + ranking.scores.get(record, 0.0) for record, own in signs.failing.items()}
    return [
        Step(
            order_by_score({record: scores.get(record, 0.0) for record in signs.verdicts}),
            lambda tokens: _VERDICTS_SHARE * tokens,
        ),
        Step(order_by_tier(speaking)),
        Step(order_by_score({record: scores[record] for record in ranking.scores if record in ranking.matches})),
    ]


def _plan_causes(signs: Signs, order: Order) -> list[Step]:
    """Where a cause is likeliest: before the first sign of giving up, else before a report; at the first message, at the end."""
    top = order[0][1] if order else 1.0
    reports = [] if signs.gave_up else [pair for pair in order if pair[0] in signs.failing]
    return [
        Step(reports, lambda tokens: _REPORTS_SHARE * tokens),
        Step([(record, top) for record in (list_backwards(reports[0][0]) if reports else signs.before)], _stretch_room),
        Step([(record, top) for record in signs.first_message]),
        Step([(record, top) for record in signs.end], lambda tokens: (tokens - _stretch_room(tokens)) / 2),
    ]


def _stretch_room(tokens: float) -> float:
    return max(_MIN_STRETCH_SHARE * tokens, min(_MAX_STRETCH_SHARE * tokens, _STRETCH_TOKENS))
