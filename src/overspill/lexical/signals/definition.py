"""Definitions: a question that names a function or a class is about what defines it, more than about what uses it."""

from __future__ import annotations

import re
import string

from overspill.lexical.boost import Boost
from overspill.lexical.index import Index
from overspill.lexical.query import Query
from overspill.lexical.rank import Ranking
from overspill.lexical.weights import WEIGHTS
from overspill.lexical.words import split_subwords, stem
from overspill.tables.table import Span, Text

_KEYWORD = re.compile(
    rb"(?:\b(?:def|class|func|fn|function|struct|trait|interface|enum|impl|type|object|sub|proc|module|record)\s{1,4}"
    rb"(?:\([^()\n]{0,80}\)\s?)?|#define )\Z"
)
"""What precedes a name that is defined; in Go, with the type that a method belongs to."""
_TYPED = re.compile(rb"\s*+(?:(?!return\b|new\b|throw\b|await\b|else\b|yield\b)[\w<>\[\],.*&:?]{1,60}[ \t]{1,4}\*{0,2}){0,6}\Z")
"""What may precede a name without such a keyword: modifiers and a type, or nothing."""
_NAME = (string.ascii_letters + string.digits + "_").encode()
_MAX_NAME_BYTES = 60
"""On each side of a hit."""
_MAX_LINE_BYTES = 200
_MAX_BODY_BYTES = 4_000
"""A longer body, as of a class, is not completed."""


def boost_definitions(index: Index, query: Query, ranking: Ranking) -> Boost | None:
    if not index.traits.has_definitions:
        return None
    scores = dict(ranking.scores)
    raised: dict[int, float] = {}
    keys = {term.key: number for number, term in enumerate(ranking.terms) if not term.instead_of}
    for record, spots in ranking.hits.items():
        names = {_find_name(index.text, start, end) for start, end, term in spots if not ranking.terms[term].instead_of}
        gain = max((_weigh_name(index.text, name, keys, ranking) for name in names), default=0.0)
        if gain:
            scores[record] += WEIGHTS.definition * gain
            for body in _list_body(index, record):
                raised[body] = max(raised.get(body, 0.0), WEIGHTS.body * scores[record])
    return Boost(rescored=scores, raised=raised) if scores != ranking.scores else None


def _weigh_name(text: Text, name: Span, keys: dict[str, int], ranking: Ranking) -> float:
    """What the words of a defined name are worth, less for others in it: `ApproxNumpy` says less about "approx" than `approx`."""
    start, end = name
    if not _is_defined(text, start, end):
        return 0.0
    spelt = bytes(text[start:end]).decode("utf-8", "replace")
    whole = keys.get(spelt.lower())
    if whole is not None and ranking.terms[whole].telling:
        return ranking.worth[whole]
    parts = dict.fromkeys(map(stem, split_subwords(spelt)))
    named = [keys[part] for part in parts if part in keys]
    if not any(ranking.terms[term].telling for term in named):
        return 0.0
    return sum(ranking.worth[term] for term in named) * len(named) / len(parts)


def _find_name(text: Text, start: int, end: int) -> Span:
    """The whole name that a hit is in."""
    before, after = bytes(text[max(0, start - _MAX_NAME_BYTES) : start]), bytes(text[end : end + _MAX_NAME_BYTES])
    return start - len(before) + len(before.rstrip(_NAME)), end + len(after) - len(after.lstrip(_NAME))


def _is_defined(text: Text, start: int, end: int) -> bool:
    """`def name`, `func (c *Context) Name`, `public void name(…) {`."""
    rest = bytes(text[end : end + _MAX_LINE_BYTES]).partition(b"\n")[0].rstrip()
    before = bytes(text[max(0, start - _MAX_LINE_BYTES) : start]).rpartition(b"\n")[2]
    return _KEYWORD.search(before) is not None or (rest[:1] == b"(" and rest[-1:] == b"{" and _TYPED.match(before) is not None)


def _list_body(index: Index, record: int) -> list[int]:
    """The records below a definition whose block was too large for one."""
    outline = index.outline
    label = outline.label_at(outline.starts[record])
    body: list[int] = []
    for below in range(record + 1, len(outline) if label >= 0 else 0):
        if outline.ends[below] - outline.starts[record] > _MAX_BODY_BYTES or label not in outline.lineage(below):
            break
        body.append(below)
    return body
