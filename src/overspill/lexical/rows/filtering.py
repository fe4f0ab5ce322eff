"""Filters: the rows of a list that meet most conditions of a question, each shown by the fields that it asks about."""

from __future__ import annotations

import re

from msgspec.structs import replace

from overspill.lexical.index import Index
from overspill.lexical.query import Query
from overspill.lexical.rank import Ranking
from overspill.lexical.rows.cells import read_columns, read_rows
from overspill.lexical.rows.conditions import blank_comparisons, find_meeting_rows, list_bounds
from overspill.lexical.rows.equalities import find_equal_rows
from overspill.lexical.rows.mentions import Question
from overspill.lexical.rows.siblings import find_list, find_longest_list
from overspill.lexical.weights import WEIGHTS
from overspill.lexical.words import split_subwords, stem
from overspill.tables.table import Text

_MAX_VALUE_BYTES = 80
"""A longer value is a description, which mentions much that is not so."""
_MAX_ROWS = 60
_MIN_CONDITIONS = 2
"""With fewer, a question that does not ask for a list is about one thing."""
_ROW = re.compile(rb"\{")
_WHICH = re.compile(r"\b(?:which|what|welche|quel|cuál|qué)", re.IGNORECASE)
_KEY_BEFORE = re.compile(rb"\"([^\"\\]{1,60})\"\s{0,4}:\s{0,4}\"?(-?)\Z")
_AFTER_NUMBER = re.compile(rb"\s{0,40}[,}\]\"]| ")
_NEGATIVE = re.compile(r"(?<![^\s(\"'=<>])[-\u2212](\d[\d.]*)")
_KEY_AFTER = re.compile(rb"\"\s{0,4}:")


def find_filtered_rows(index: Index, query: Query, ranking: Ranking) -> list[int]:
    """Likeliest first; empty if the question asks for no list, or its conditions tell nothing."""
    bounds = list_bounds(query.text)
    if not index.traits.has_members:
        return _find_compared(index, query, ranking) if bounds else []
    equal, conditions = _find_equal(index, query) if query.listing or _WHICH.search(query.text) else ([], 0)
    if not (query.listing or bounds or conditions >= _MIN_CONDITIONS):
        return []
    met: dict[int, float] = {}
    negative = frozenset(_NEGATIVE.findall(query.text))
    ignored = {number for number, term in enumerate(ranking.terms) if term.role == "wording" or term.key in bounds}
    for record, spots in ranking.hits.items():
        if _ROW.match(index.text, index.outline.starts[record]):
            met[record] = _score(index.text, ranking, [spot for spot in spots if spot[2] not in ignored], negative)
    if (only := _find_meeting(index, query, met)) is not None:
        met = {record: met.get(record, 0.0) for record in only}
    rows = _list_best(met)
    if equal := _list_best({record: met.get(record, 0.0) for record in equal}):
        rows = list(dict.fromkeys((*equal, *rows)))
    if not rows or not (only or equal or any(met.values())):
        return []
    said = _count_said_cells(index, query, ranking, rows)
    return sorted(rows, key=lambda record: (record not in equal, -said.get(record, 0), -met.get(record, 0.0), record))


def _find_compared(index: Index, query: Query, ranking: Ranking) -> list[int]:
    """Of a table in lines, the rows within the bounds: those of which the question says most."""
    rows = find_longest_list(index)
    meeting = find_meeting_rows(index, rows, query.text) if rows else []
    said = _count_said_cells(index, replace(query, text=blank_comparisons(query.text)), ranking, meeting) if meeting else {}
    most = max(said.values(), default=0)
    return [record for record in meeting if said.get(record, 0) == most]


def _count_said_cells(index: Index, query: Query, ranking: Ranking, records: list[int]) -> dict[int, int]:
    """For each of these rows, how many values the question says that are all of one of its cells, or of a member of a list."""
    question, rows = Question(query, ranking), find_list(index, records[0])
    columns = read_columns(index, rows.table) if rows else []
    counts: dict[int, int] = {}
    for record, cells in read_rows(index, rows.table, rows.keep(records)) if rows else ():
        told = (
            (column, cell)
            for column, cell in zip(columns, cells, strict=False)
            if not cell.isdigit() or question.is_asked(column)
        )
        places = {place for _, cell in told for place in question.find(cell)}
        taken: set[int] = set()
        for start, end in sorted(places, key=lambda place: (place[0] - place[1], place)):
            if taken.isdisjoint(range(start, end)):
                taken.update(range(start, end))
                counts[record] = counts.get(record, 0) + 1
    return counts


def _list_best(met: dict[int, float]) -> list[int]:
    """The rows that meet about as much as any other, unless they are too many to be asked for."""
    most = max(met.values(), default=0.0)
    rows = [record for record in met if met[record] >= WEIGHTS.filtered * most]
    return rows if len(rows) <= _MAX_ROWS else []


def _find_meeting(index: Index, query: Query, met: dict[int, float]) -> list[int] | None:
    """The rows that meet the conditions that words alone do not tell; None if there are no such conditions, or no such rows."""
    best = max(met, key=met.__getitem__, default=-1)
    rows = find_list(index, best) if best >= 0 else find_longest_list(index)
    return find_meeting_rows(index, rows, query.text) or None if rows else None


def _find_equal(index: Index, query: Query) -> tuple[list[int], int]:
    """The rows whose fields have what the question says next to their names, and how many it says."""
    rows = find_longest_list(index)
    return find_equal_rows(index, rows, query.text) if rows else ([], 0)


def _score(text: Text, ranking: Ranking, spots: list[tuple[int, int, int]], negative: frozenset[str]) -> float:
    """The worth of the terms that are values of fields, by the share of the value that they make up."""
    shares: dict[int, float] = {}
    values: dict[tuple[int, int], dict[int, int]] = {}
    for start, end, term in spots:
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
