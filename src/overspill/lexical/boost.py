"""What a signal adds to a ranking, and the steps in which records are shown."""

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
    is_compared: bool = False
    """Whether all rows were compared to find these."""
    brief: frozenset[int] = frozenset()
    """Records to show only by what they say about the question, until all of them are shown."""
    first: tuple[Step, ...] = ()
    """Records to show before all others."""
    is_whole: bool = False
    """Whether `first` is the whole answer, so that no further signal is asked."""
    matches: frozenset[int] = frozenset()
    """Records that contain what is asked, though not by their words."""
    evidence: float = 0.0
    """How sure the structure of the text, not its words, makes the answer, 0…1."""


Signal: TypeAlias = Callable[[Index, Query, Ranking], Boost | None]
"""None if the question or the text gives no reason for it."""


def order_by_score(scores: dict[int, float]) -> Order:
    # Of equal ones, the first in the document is in front. Two sorts take half the time of one by both.
    return sorted(sorted(scores.items()), key=itemgetter(1), reverse=True)


def order_by_tier(scores: dict[int, float]) -> Order:
    """If no record is best: groups of about equal score, each in document order."""
    top = max(scores.values(), default=1.0) or 1.0
    return sorted(scores.items(), key=lambda pair: (-round(WEIGHTS.tiers * pair[1] / top), pair[0]))
