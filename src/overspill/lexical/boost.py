"""What a signal adds to a ranking, and the steps in which to show records."""

from __future__ import annotations

from collections.abc import Callable
from operator import itemgetter
from typing import TypeAlias

from msgspec import Struct

from overspill.lexical.index import Index
from overspill.lexical.query import Query
from overspill.lexical.rank import Ranking
from overspill.lexical.weights import WEIGHTS

Order: TypeAlias = list[tuple[int, float]]
"""Records and their scores, best first."""


class Step(Struct, frozen=True):
    """Records to add, best first, within the part of a budget that `room` gives."""

    order: Order
    room: Callable[[float], float] = float


class Boost(Struct, frozen=True):
    raised: dict[int, float] = {}
    """Scores that records have at least."""
    leads: list[int] = []
    """Rows that the question leads to through others, likeliest first."""
    rows: list[int] = []
    """Rows that answer the question, likeliest first."""
    brief: frozenset[int] = frozenset()
    """Records to shorten to their relevant parts until all of them are shown."""
    first: tuple[Step, ...] = ()
    """Records to show before all others."""
    is_whole: bool = False
    """Whether `first` is the whole answer. No further signal is consulted."""
    matches: frozenset[int] = frozenset()
    """Records that match the question by something other than their words."""
    evidence: float = 0.0
    """How strongly the structure of the text, not its words, supports the answer, 0…1."""


Signal: TypeAlias = Callable[[Index, Query, Ranking], Boost | None]
"""Returns what a signal adds; None if neither the question nor the text calls for it."""


def order_by_score(scores: dict[int, float]) -> Order:
    # Records with equal scores stay in document order. Two sorts take half the time of one with both keys.
    return sorted(sorted(scores.items()), key=itemgetter(1), reverse=True)


def order_by_tier(scores: dict[int, float]) -> Order:
    """The order for questions without a single best record: groups of about equal score, each in document order."""
    top = max(scores.values(), default=1.0) or 1.0
    return sorted(scores.items(), key=lambda pair: (-round(WEIGHTS.tiers * pair[1] / top), pair[0]))
