"""Yes or no: a question that can be answered so is answered by a passage that begins with one of them."""

from __future__ import annotations

import math
import re
from functools import cache

from overspill.lexical.index import Index
from overspill.lexical.query import Query
from overspill.lexical.words import read_lexicon

_GAIN = 2.0
"""Beside how rare such passages are."""
_ENOUGH = 0.2
"""The share of the best score from which on a passage gains all of that: with less, it says no to something else."""
_BEFORE_QUESTION = r"\W{0,3}(?:and |but |so |or |then )?"
_BEFORE_ANSWER = (
    rb"\W{0,8}(?:[^\n<>]{0,40}<[^<>\s]{1,40}> |[A-Z][\w.'-]{0,20}(?: [A-Z][\w.'-]{0,20}){0,3}: ){0,2}\W{0,8}"
    + rb"(?:\w{1,20}[,:]\W{1,4})?"
)
"""What may precede the first word of a passage: who says it, and perhaps to whom, or `Answer:`."""
_MAX_BEGINNING_BYTES = 200


def favour_verdicts(index: Index, query: Query, scores: dict[int, float]) -> dict[int, float]:
    """Only passages that share words with the question gain by it, and the rarer such beginnings are, the more."""
    if not scores or not index.traits.is_running_text or not compile_questions().match(query.text):
        return scores
    starts, ends, says = index.outline.starts, index.outline.ends, compile_beginnings()
    saying = [
        record
        for record in scores
        if says.match(index.text, starts[record], min(ends[record], starts[record] + _MAX_BEGINNING_BYTES))
    ]
    gain = _GAIN * math.log(1 + len(scores) / max(1, len(saying)))
    enough = _ENOUGH * max(scores.values())
    return scores | {record: scores[record] + gain * min(1.0, scores[record] / enough) for record in saying if enough}


@cache
def compile_questions() -> re.Pattern[str]:
    """That can be answered with yes or no."""
    return re.compile(rf"{_BEFORE_QUESTION}(?:{'|'.join(sorted(read_lexicon('asking')))})\b[^.!?]{{0,500}}+\?", re.IGNORECASE)


@cache
def compile_beginnings() -> re.Pattern[bytes]:
    """Of passages that say yes or no."""
    words = "|".join(sorted(read_lexicon("verdict"))).encode()
    return re.compile(_BEFORE_ANSWER + rb"(?i:" + words + rb")\b")
