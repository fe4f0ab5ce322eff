"""Filters: the rows of a list that meet most conditions of a question, each shown by the fields that it asks about."""

from __future__ import annotations

import re

from overspill.lexical.boost import Boost
from overspill.lexical.index import Index
from overspill.lexical.outline import Text
from overspill.lexical.query import Query
from overspill.lexical.rank import Ranking
from overspill.lexical.weights import WEIGHTS
from overspill.lexical.words import split_subwords, stem

_MAX_VALUE_BYTES = 80
"""A longer value is a description, which mentions much that is not so."""
_MAX_ROWS = 60
_ROW = re.compile(rb"\{")
_KEY_BEFORE = re.compile(rb"\"([^\"\\]{1,60})\"\s{0,4}:\s{0,4}\"?(-?)\Z")
_AFTER_NUMBER = re.compile(rb"\s{0,40}[,}\]\"]| ")
_NEGATIVE = re.compile(r"(?<![^\s(\"'=<>])[-\u2212](\d[\d.]*)")
_KEY_AFTER = re.compile(rb"\"\s{0,4}:")


def boost_filtered_rows(index: Index, query: Query, ranking: Ranking) -> Boost | None:
    if not query.listing or not index.traits.has_members or ranking.leads:
        return None
    met: dict[int, float] = {}
    negative = frozenset(_NEGATIVE.findall(query.text))
    for record, spots in ranking.hits.items():
        if _ROW.match(index.text, index.outline.starts[record]):
            met[record] = _score(index.text, ranking, spots, negative)
    most = max(met.values(), default=0.0)
    rows = sorted((record for record in met if met[record] >= WEIGHTS.filtered * most), key=lambda record: (-met[record], record))
    # As leads too, so that an order ("the first", "the largest") is looked for among them and not among all rows.
    return Boost(leads=rows, rows=rows, brief=frozenset(rows)) if most and len(rows) <= _MAX_ROWS else None


def _score(text: Text, ranking: Ranking, spots: list[tuple[int, int, int]], negative: frozenset[str]) -> float:
    """The worth of the terms that are values of fields, by the share of the value that they make up."""
    shares: dict[int, float] = {}
    values: dict[tuple[int, int], dict[int, int]] = {}
    for start, end, term in spots:
        if ranking.terms[term].role == "wording":
            continue
        if bytes(text[start:end]).replace(b".", b"").isdigit():
            is_negative = ranking.terms[term].key in negative
            shares[term] = max(shares.get(term, 0.0), _measure_number(text, start, end, ranking.asked, is_negative=is_negative))
        elif value := _find_value(text, start, end):
            values.setdefault(value, {})[term] = end - start
    for (start, end), terms in values.items():
        filled = min(1.0, sum(terms.values()) / (end - start))
        for term in terms:
            shares[term] = max(shares.get(term, 0.0), WEIGHTS.value_part + (1 - WEIGHTS.value_part) * filled)
    return sum(ranking.worth[term] * share for term, share in shares.items())


def _measure_number(text: Text, start: int, end: int, asked: frozenset[str], *, is_negative: bool) -> float:
    """Whether a number is all of a value, of a field that the question names. A question may say in words that it is negative."""
    key = _KEY_BEFORE.search(text[max(0, start - _MAX_VALUE_BYTES) : start])
    if not key or not _AFTER_NUMBER.match(text, end) or (is_negative and not key[2]):
        return 0.0
    names = {stem(part) for part in split_subwords(key[1].decode("utf-8", "replace"))}
    return 1.0 if names & asked else WEIGHTS.unnamed_number


def _find_value(text: Text, start: int, end: int) -> tuple[int, int] | None:
    """The string around a span, if it is short and not the name of a field."""
    opening, closing = text.rfind(b'"', max(0, start - _MAX_VALUE_BYTES), start), text.find(b'"', end, end + _MAX_VALUE_BYTES)
    if opening < 0 or closing < 0 or closing - opening > _MAX_VALUE_BYTES or _KEY_AFTER.match(text, closing):
        return None
    return opening + 1, closing
