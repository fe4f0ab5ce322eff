"""Replies: who asks about something names it; who answers in the next message of the thread often does not."""

from __future__ import annotations

from collections.abc import Iterator

from overspill.lexical.boost import Boost
from overspill.lexical.index import Index
from overspill.lexical.outline import Outline
from overspill.lexical.query import Query
from overspill.lexical.rank import Ranking
from overspill.lexical.weights import WEIGHTS

_ANSWERED_RECORDS = 10
"""Replies are looked for after this many of the best records."""
_MAX_REPLIES = 3
_MAX_DISTANCE_RECORDS = 200
"""Further on in a long thread, messages answer others."""


def boost_replies(index: Index, query: Query, ranking: Ranking) -> Boost | None:
    """Puts the beginnings of the next messages of a thread after the record that they may answer."""
    if not index.traits.has_replies:
        return None
    scores = dict(ranking.scores)
    for record in ranking.best(_ANSWERED_RECORDS):
        share = ranking.scores[record]
        for reply in _find_replies(index.outline, record):
            share *= WEIGHTS.reply
            scores[reply] = max(share, scores.get(reply, 0.0))
    return Boost(rescored=scores)


def _find_replies(outline: Outline, record: int) -> Iterator[int]:
    """The first records of the next messages in the same thread."""
    message, replies = outline.under[record], 0
    thread = outline.label_parents[message] if message >= 0 else -1
    if thread < 0:
        thread = message  # what opens a thread may be under its title alone
    for after in range(record + 1, min(len(outline), record + 1 + _MAX_DISTANCE_RECORDS)):
        label = outline.under[after]
        if label == message:
            continue
        if label < 0 or outline.label_parents[label] != thread or replies == _MAX_REPLIES:
            return
        message, replies = label, replies + 1
        yield after
