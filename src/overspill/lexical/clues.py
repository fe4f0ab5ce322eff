"""Clues to the answer besides the words of the question: definitions of its names, names in one place, yes and no."""

from __future__ import annotations

import math
import string
from functools import cache

from overspill.lexical.index import Index
from overspill.lexical.query import Query, Term
from overspill.lexical.weights import WEIGHTS
from overspill.lexical.words import read_lexicon, split_subwords, stem
from overspill.tables.table import Span, Text
from overspill.text.regex import Pattern, regex

_KEYWORD = regex(
    rb"(?:\b(?:def|class|func|fn|function|struct|trait|interface|enum|impl|type|object|sub|proc|module|record)\s{1,4}"
    rb"(?:\([^()\n]{0,80}\)\s?)?|#define )\Z"
)
"""What precedes a name in its definition; in Go, this includes the type that a method belongs to."""
_TYPED = regex(rb"\s*+(?:(?!return\b|new\b|throw\b|await\b|else\b|yield\b)[\w<>\[\],.*&:?]{1,60}[ \t]{1,4}\*{0,2}){0,6}\Z")
"""What may precede a name without such a keyword: modifiers and a type, or nothing."""
_NAME = (string.ascii_letters + string.digits + "_").encode()
_MAX_NAME_BYTES = 60
"""How much of a name to read on each side of a hit."""
_MAX_LINE_BYTES = 200
_VERDICT_GAIN = 2.0
"""Multiplied by how rare passages are that say yes or no."""
_MIN_VERDICT_SHARE = 0.2
"""A passage with at least this share of the best score gains fully. One with less says yes or no to something else."""
_BEFORE_QUESTION = r"\W{0,3}(?:and |but |so |or |then )?"
_BEFORE_ANSWER = (
    rb"\W{0,8}(?:[^\n<>]{0,40}<[^<>\s]{1,40}> |[A-Z][\w.'-]{0,20}(?: [A-Z][\w.'-]{0,20}){0,3}: ){0,2}\W{0,8}"
    + rb"(?:\w{1,20}[,:]\W{1,4})?"
)
"""What may precede the first word of a passage: who says it, and perhaps to whom, or `Answer:`."""
_MAX_BEGINNING_BYTES = 200

Hits = dict[int, list[tuple[int, int, int]]]
"""For each record, the start and end of every hit and the number of its term."""


def score_definitions(text: Text, hits: Hits, terms: tuple[Term, ...], worth: list[float]) -> dict[int, float]:
    """What records gain by defining a name in the question, which is more about the definition than about its uses."""
    keys = {term.key: number for number, term in enumerate(terms) if not term.instead_of}
    gains: dict[int, float] = {}
    for record, spots in hits.items():
        names = {_find_name(text, start, end) for start, end, term in spots if not terms[term].instead_of}
        spelt = [bytes(text[start:end]).decode("utf-8", "replace") for start, end in names if is_defined(text, start, end)]
        if gain := max((_weigh_name(name, keys, terms, worth) for name in spelt), default=0.0):
            gains[record] = WEIGHTS.definition * gain
    return gains


def find_sole_places(text: Text, hits: Hits, terms: tuple[Term, ...]) -> set[int]:
    """The records that are the only ones to contain a name from the question."""
    holding: dict[int, set[int]] = {}
    for record, spots in hits.items():
        for start, end, term in spots:
            is_name = terms[term].literal and terms[term].telling and text[start : start + 1].isalpha()
            if is_name and _find_name(text, start, end) == (start, end):
                holding.setdefault(term, set()).add(record)
    return {record for records in holding.values() if len(records) == 1 for record in records}


def _weigh_name(name: str, keys: dict[str, int], terms: tuple[Term, ...], worth: list[float]) -> float:
    """The worth of a defined name, reduced by words not in the question: `ApproxNumpy` says less about "approx" than `approx`."""
    whole = keys.get(name.lower())
    if whole is not None and terms[whole].telling:
        return worth[whole]
    parts = dict.fromkeys(map(stem, split_subwords(name)))
    named = [keys[part] for part in parts if part in keys]
    if not any(terms[term].telling for term in named):
        return 0.0
    return sum(worth[term] for term in named) * len(named) / len(parts)


def _find_name(text: Text, start: int, end: int) -> Span:
    """The whole name that a hit is in."""
    before, after = bytes(text[max(0, start - _MAX_NAME_BYTES) : start]), bytes(text[end : end + _MAX_NAME_BYTES])
    return start - len(before) + len(before.rstrip(_NAME)), end + len(after) - len(after.lstrip(_NAME))


def is_defined(text: Text, start: int, end: int) -> bool:
    """Whether a name is defined here: `def name`, `func (c *Context) Name`, `public void name(…) {`."""
    rest = bytes(text[end : end + _MAX_LINE_BYTES]).partition(b"\n")[0].rstrip()
    before = bytes(text[max(0, start - _MAX_LINE_BYTES) : start]).rpartition(b"\n")[2]
    return _KEYWORD.search(before) is not None or (rest[:1] == b"(" and rest[-1:] == b"{" and _TYPED.match(before) is not None)


def favour_verdicts(index: Index, query: Query, scores: dict[int, float]) -> dict[int, float]:
    """Raises passages that begin with yes or no, if the question can be answered that way.

    Only passages that share words with the question gain. They gain more, the rarer such beginnings are.
    """
    if not scores or not index.traits.is_running_text or not compile_questions().match(query.text):
        return scores
    starts, ends, says = index.outline.starts, index.outline.ends, compile_beginnings()
    saying = [
        record
        for record in scores
        if says.match(index.text, starts[record], min(ends[record], starts[record] + _MAX_BEGINNING_BYTES))
    ]
    gain = _VERDICT_GAIN * math.log(1 + len(scores) / max(1, len(saying)))
    enough = _MIN_VERDICT_SHARE * max(scores.values())
    return scores | {record: scores[record] + gain * min(1.0, scores[record] / enough) for record in saying if enough}


@cache
def compile_questions() -> Pattern[str]:
    """Matches questions that can be answered with yes or no."""
    return regex(rf"(?i){_BEFORE_QUESTION}(?:{'|'.join(sorted(read_lexicon('asking')))})\b[^.!?]{{0,500}}+\?")


@cache
def compile_beginnings() -> Pattern[bytes]:
    """Matches the beginning of a passage that says yes or no."""
    words = "|".join(sorted(read_lexicon("verdict"))).encode()
    return regex(_BEFORE_ANSWER + rb"(?i:" + words + rb")\b")
