"""Names: a question that names a function or a class is about what defines it, more than about what uses it."""

from __future__ import annotations

import re
import string

from overspill.lexical.query import Term
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


def score_definitions(
    text: Text, hits: dict[int, list[tuple[int, int, int]]], terms: tuple[Term, ...], worth: list[float]
) -> dict[int, float]:
    """What records gain by defining what the question names."""
    keys = {term.key: number for number, term in enumerate(terms) if not term.instead_of}
    gains: dict[int, float] = {}
    for record, spots in hits.items():
        names = {_find_name(text, start, end) for start, end, term in spots if not terms[term].instead_of}
        spelt = [bytes(text[start:end]).decode("utf-8", "replace") for start, end in names if is_defined(text, start, end)]
        if gain := max((_weigh_name(name, keys, terms, worth) for name in spelt), default=0.0):
            gains[record] = WEIGHTS.definition * gain
    return gains


def find_sole_places(
    text: Text, hits: dict[int, list[tuple[int, int, int]]], terms: tuple[Term, ...], *, defining: bool
) -> set[int]:
    """The records that alone have a name of the question, or, if `defining`, that alone define it."""
    holding: dict[int, set[int]] = {}
    for record, spots in hits.items():
        for start, end, term in spots:
            is_name = terms[term].literal and terms[term].telling and text[start : start + 1].isalpha()
            if is_name and _find_name(text, start, end) == (start, end) and (not defining or is_defined(text, start, end)):
                holding.setdefault(term, set()).add(record)
    return {record for records in holding.values() if len(records) == 1 for record in records}


def _weigh_name(name: str, keys: dict[str, int], terms: tuple[Term, ...], worth: list[float]) -> float:
    """What the words of a defined name are worth, less for others in it: `ApproxNumpy` says less about "approx" than `approx`."""
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
    """`def name`, `func (c *Context) Name`, `public void name(…) {`."""
    rest = bytes(text[end : end + _MAX_LINE_BYTES]).partition(b"\n")[0].rstrip()
    before = bytes(text[max(0, start - _MAX_LINE_BYTES) : start]).rpartition(b"\n")[2]
    return _KEYWORD.search(before) is not None or (rest[:1] == b"(" and rest[-1:] == b"{" and _TYPED.match(before) is not None)
