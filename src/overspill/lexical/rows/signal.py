"""Finds rows of tables that answer a question through other rows: by joining, filtering or ordering them."""

from __future__ import annotations

from msgspec.structs import replace

from overspill.lexical.boost import Boost
from overspill.lexical.index import Index
from overspill.lexical.query import Query
from overspill.lexical.rank import Ranking
from overspill.lexical.rows.cells import RowList, find_list, find_longest_list, read_columns, read_rows
from overspill.lexical.rows.conditions import blank_comparisons, compares_cells, find_meeting_rows, list_bounds
from overspill.lexical.rows.connect import connect
from overspill.lexical.rows.mentions import Question
from overspill.lexical.rows.ordering import find_ordered_rows
from overspill.lexical.weights import WEIGHTS
from overspill.lexical.words import split_subwords, stem
from overspill.tables.table import Span, Text
from overspill.text.regex import regex

_ROW = regex(rb"\{")
_KEY_BEFORE = regex(rb"\"([^\"\\]{1,60})\"\s{0,4}:\s{0,4}\"?(-?)\Z")
_AFTER_NUMBER = regex(rb"\s{0,40}[,}\]\"]| ")
_NEGATIVE = regex(r"(?<![^\s(\"'=<>])[-\u2212](\d[\d.]*)")
_KEY_AFTER = regex(rb"\"\s{0,4}:")
_MAX_ROWS = 60
_MAX_VALUE_BYTES = 80
"""A longer value is a description, which mentions many things that do not apply."""


def boost_rows(index: Index, query: Query, ranking: Ranking) -> Boost | None:
    """The rows that the question leads to and, if it asks for an order, the first of them, or of all rows."""
    led = _find_rows(index, query, ranking)
    if led.leads and index.traits.has_members:
        query = replace(query, text=blank_comparisons(query.text))
    ordered = find_ordered_rows(index, query, ranking, led.leads)
    if ordered.rows:
        return replace(ordered, leads=led.leads, matches=led.matches)
    return led if led.leads else None


def _find_rows(index: Index, query: Query, ranking: Ranking) -> Boost:
    meeting, around = connect(index, query, ranking)
    if around:
        return Boost(leads=around, rows=meeting, brief=frozenset(meeting))
    rows = find_filtered_rows(index, query, ranking)
    # If the question compares cells, these rows match even without its words.
    matches = frozenset(rows) if compares_cells(query.text) else frozenset[int]()
    return Boost(leads=rows, rows=rows, brief=frozenset(rows), matches=matches)


def find_filtered_rows(index: Index, query: Query, ranking: Ranking) -> list[int]:
    """The rows of a list that meet most of the conditions, likeliest first; empty if the question does not ask for a list."""
    if not index.traits.has_members:
        rows = index.remember(find_longest_list) if compares_cells(query.text) else None
        named = replace(query, text=blank_comparisons(query.text))
        said = _count_said(index, named, ranking, rows, find_meeting_rows(index, rows, query.text)) if rows else {}
        most = max(said.values(), default=0)
        return [record for record, count in said.items() if count == most]
    bounds = list_bounds(query.text)
    if not (query.listing or bounds):
        return []
    negative = frozenset(_NEGATIVE.findall(query.text))
    ignored = {number for number, term in enumerate(ranking.terms) if term.role == "wording" or term.key in bounds}
    met = {
        record: _score(index.text, ranking, [spot for spot in spots if spot[2] not in ignored], negative)
        for record, spots in ranking.hits.items()
        if _ROW.match(index.text, index.outline.starts[record])
    }
    best = max(met, key=met.__getitem__, default=-1)
    rows = find_list(index, best) if best >= 0 else index.remember(find_longest_list)
    if only := find_meeting_rows(index, rows, query.text) if rows else []:
        met = {record: met.get(record, 0.0) for record in only}
    top = max(met.values(), default=0.0)
    likely = [record for record in met if met[record] >= WEIGHTS.filtered * top] if only or top else []
    if not rows or len(likely) > _MAX_ROWS:
        return []
    said = _count_said(index, query, ranking, rows, rows.keep(likely))
    return sorted(likely, key=lambda record: (-said.get(record, 0), -met[record], record))


def _count_said(index: Index, query: Query, ranking: Ranking, rows: RowList, records: list[int]) -> dict[int, int]:
    """For each of these rows, how many of its whole cells the question mentions. Each word counts for one cell only."""
    question, columns = Question(query, ranking), read_columns(index, rows.table)
    said: dict[int, int] = {}
    for record, cells in read_rows(index, rows.table, records) if records else ():
        places = {place for column, cell in zip(columns, cells, strict=False) for place in question.find(column, cell)}
        taken: set[int] = set()
        said[record] = 0
        for start, end in sorted(places, key=lambda place: place[0] - place[1]):
            if taken.isdisjoint(range(start, end)):
                taken.update(range(start, end))
                said[record] += 1
    return said


def _score(text: Text, ranking: Ranking, spots: list[tuple[int, int, int]], negative: frozenset[str]) -> float:
    """The worth of the terms in values of fields. Terms count more, the more of a value they fill."""
    shares: dict[int, float] = {}
    values: dict[Span, dict[int, int]] = {}
    for start, end, term in spots:
        if bytes(text[start:end]).replace(b".", b"").isdigit():
            is_negative = ranking.terms[term].key in negative
            shares[term] = max(shares.get(term, 0.0), _measure_number(text, start, end, ranking.asked, is_negative=is_negative))
        elif value := _find_value(text, start, end):
            values.setdefault(value, {})[term] = end - start
    for (start, end), terms in values.items():
        filled = min(1.0, sum(terms.values()) / (end - start))
        for term in terms:
            shares[term] = max(shares.get(term, 0.0), (1 + filled) / 2)
    return sum(ranking.worth[term] * share for term, share in shares.items())


def _measure_number(text: Text, start: int, end: int, asked: frozenset[str], *, is_negative: bool) -> float:
    """Whether a number is the whole value of a field that the question names. A question may call it negative in words."""
    key = _KEY_BEFORE.search(text[max(0, start - _MAX_VALUE_BYTES) : start])
    if not key or not _AFTER_NUMBER.match(text, end) or (is_negative and not key[2]):
        return 0.0
    names = {stem(part) for part in split_subwords(key[1].decode("utf-8", "replace"))}
    return 1.0 if names & asked else WEIGHTS.unnamed_number


def _find_value(text: Text, start: int, end: int) -> Span | None:
    """The string around a span, if it is short and not the name of a field."""
    opening, closing = text.rfind(b'"', max(0, start - _MAX_VALUE_BYTES), start), text.find(b'"', end, end + _MAX_VALUE_BYTES)
    if opening < 0 or closing < 0 or closing - opening > _MAX_VALUE_BYTES or _KEY_AFTER.match(text, closing):
        return None
    return opening + 1, closing
