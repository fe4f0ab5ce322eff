"""Yes or no: a question that can be answered so is answered by a passage that begins with one of them."""

from __future__ import annotations

import math
import re
from functools import cache

from overspill.lexical.boost import Boost
from overspill.lexical.index import Index
from overspill.lexical.query import Query
from overspill.lexical.rank import Ranking
from overspill.lexical.weights import WEIGHTS
from overspill.lexical.words import read_lexicon

_ASKS = re.compile(
    r"\W{0,3}(?:and |but |so |or |then )?(?:is|are|was|were|am|do|does|did|can|could|will|would|should|shall|may|might|must|has"
    r"|have|had|isn't|aren't|don't|doesn't|didn't|can't|couldn't|won't|wouldn't|shouldn't)\b[^.!?]*\?",
    re.IGNORECASE,
)
_BEFORE = (
    rb"\W{0,8}(?:[^\n<>]{0,40}<[^<>\s]{1,40}> |[A-Z][\w.'-]{0,20}(?: [A-Z][\w.'-]{0,20}){0,3}: ){0,2}\W{0,8}"
    + rb"(?:\w{1,20}[,:]\W{1,4})?"
)
"""What may precede the first word of a passage: who says it, and perhaps to whom, or `Answer:`."""
_MAX_BEGINNING_BYTES = 200


def boost_yes_or_no(index: Index, query: Query, ranking: Ranking) -> Boost | None:
    """Only passages that share words with the question gain by it, and the rarer such beginnings are, the more."""
    if not index.traits.is_running_text or not _ASKS.match(query.text):
        return None
    starts, ends, says = index.outline.starts, index.outline.ends, compile_beginnings()
    saying = [
        record
        for record in ranking.scores
        if says.match(index.text, starts[record], min(ends[record], starts[record] + _MAX_BEGINNING_BYTES))
    ]
    if not saying:
        return None
    gain = WEIGHTS.yes_or_no * math.log(1 + len(ranking.scores) / len(saying))
    enough = WEIGHTS.yes_or_no_share * max(ranking.scores.values())
    own = {record: ranking.scores[record] for record in saying}
    return Boost(
        rescored=ranking.scores | {record: score + gain * min(1.0, score / enough) for record, score in own.items() if enough}
    )


@cache
def compile_beginnings() -> re.Pattern[bytes]:
    """Of passages that say yes or no."""
    words = "|".join(sorted(read_lexicon("verdict"))).encode()
    return re.compile(_BEFORE + rb"(?i:" + words + rb")\b")
