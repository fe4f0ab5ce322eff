"""Conditions that name a field and its value next to each other: "the country IN", "2 implementations", "stage 2".

Words alone do not tell that a row meets them: "in" is anywhere, and 2 may be the value of any field.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice

from msgspec import Struct

from overspill.lexical.index import Index
from overspill.lexical.rows.cells import find_column, read_columns, read_rows
from overspill.lexical.rows.siblings import RowList
from overspill.lexical.words import read_lexicon
from overspill.text.patterns import compile_pattern

_TOKEN = re.compile(r"\"[^\"]{1,80}\"|“[^”]{1,80}”|\S+")
_QUOTES = "\"“”'`()"
_CLAUSE_ENDS = (",", ";", "?", "!", ":", ".")
_CLAUSE_WORDS = frozenset({"and", "or", "but", "und", "oder", "et", "ou", "y", "o"})
_MAX_TOKENS = 60
_MAX_FIELDS, _MAX_NAMED_FIELDS = 200, 12
_MAX_VALUE_TOKENS = 6
_MAX_GAP_TOKENS = 3
"""Little words between a field and its value: "has AES as its encryption"."""
_MAX_CONDITIONS = 6
_MAX_READ_ROWS = 400

Run = tuple[int, int]
"""The first of some tokens of a question, and the one after the last."""


class _Equality(Struct, frozen=True):
    field: str
    value: str
    run: Run
    distance: int


class _Said:
    """The tokens of a question, without the marks around them."""

    def __init__(self, question: str) -> None:
        found = _TOKEN.findall(question)[:_MAX_TOKENS]
        self.tokens = [token.rstrip("".join(_CLAUSE_ENDS)).strip(_QUOTES) for token in found]
        self.is_quoted = [token[0] in '"“' for token in found]
        self.is_last = [token.endswith(_CLAUSE_ENDS) for token in found]

    def find(self, field: str) -> set[int]:
        """The tokens that name a field."""
        return {number for number, token in enumerate(self.tokens) if find_column([field], [token.lower()]) is not None}

    def is_silent(self, number: int) -> bool:
        """Whether a token is a little word. In capitals or quotes it is a value: IN, NO, "other"."""
        token = self.tokens[number]
        return not self.is_quoted[number] and not (token.isupper() and len(token) > 1) and token.lower() in read_lexicon("stop")

    def list_after(self, number: int, naming: set[int]) -> Iterator[tuple[Run, int]]:
        """The runs of tokens after a name, and how far each is from it."""
        for start in range(number + 1, min(number + 2 + _MAX_GAP_TOKENS, len(self.tokens))):
            if self.is_last[start - 1]:
                return
            for end in range(start + 1, min(start + _MAX_VALUE_TOKENS, len(self.tokens)) + 1):
                if end > start + 1 and self.is_last[end - 2]:
                    break
                yield (start, end), start - number
            if not self._is_between(start, naming):
                return

    def list_before(self, number: int, naming: set[int]) -> Iterator[tuple[Run, int]]:
        for end in range(number, max(number - 1 - _MAX_GAP_TOKENS, 0), -1):
            if self.is_last[end - 1]:
                return
            for start in range(end - 1, max(end - _MAX_VALUE_TOKENS, 0) - 1, -1):
                if start < end - 1 and self.is_last[start]:
                    break
                yield (start, end), number - end + 1
            if not self._is_between(end - 1, naming):
                return

    def _is_between(self, number: int, naming: set[int]) -> bool:
        return number in naming or (self.is_silent(number) and self.tokens[number].lower() not in _CLAUSE_WORDS)

    def write(self, run: Run) -> str:
        """What the question says there, unless it is only little words."""
        return "" if all(map(self.is_silent, range(*run))) else " ".join(self.tokens[run[0] : run[1]])


def find_equal_rows(index: Index, rows: RowList, question: str) -> tuple[list[int], int]:
    """The rows that meet all such conditions, and how many conditions there are."""
    columns = read_columns(index, rows.table)
    held = _find_held(index, rows, _list_possible(columns, question))
    if not held:
        return [], 0
    equal = rows.keep(sorted(set[int].intersection(*held.values())))
    if not 0 < len(equal) <= _MAX_READ_ROWS:
        return [], 0
    values = {(equality.field, equality.value.lower()) for equality in held}
    fields = {field for field, _ in values}
    chosen = [number for number, name in enumerate(columns) if _get_own_name(name) in fields]

    def count_met(cells: list[str]) -> int:
        return len(values & {(_get_own_name(columns[number]), cells[number].strip().lower()) for number in chosen})

    # What an object inside a row has in a field of that name counts only if no row itself has it.
    met = {record: count_met(cells) for record, cells in read_rows(index, rows.table, equal)}
    most = max(met.values())
    return [record for record, count in met.items() if count == most], len(held)


def _get_own_name(column: str) -> str:
    """Without the objects that it is in."""
    return column.rpartition(".")[2]


def _list_possible(columns: list[str], question: str) -> list[_Equality]:
    """What the question may say about fields, likeliest first: longer values, and those nearer to the name of a field."""
    said = _Said(question)
    found: list[_Equality] = []
    named = ((field, said.find(field)) for field in list(dict.fromkeys(map(_get_own_name, columns)))[:_MAX_FIELDS])
    for field, naming in islice(((field, naming) for field, naming in named if naming), _MAX_NAMED_FIELDS):
        for number in naming:
            for run, distance in (*said.list_before(number, naming), *said.list_after(number, naming)):
                if naming.isdisjoint(range(*run)) and (value := said.write(run)):
                    found.append(_Equality(field, value, run, distance))
    return sorted(found, key=lambda each: (each.run[0] - each.run[1], each.distance, -each.run[0]))


def _find_held(index: Index, rows: RowList, possible: list[_Equality]) -> dict[_Equality, set[int]]:
    """The equalities that some row has, with these rows. Each word of a question is in one value."""
    records: dict[tuple[str, str], set[int]] = {}
    by_field: dict[str, set[str]] = {}
    for equality in possible:
        by_field.setdefault(equality.field, set()).add(equality.value)
    for field, values in by_field.items():
        for value, position in _find_values(index, rows, field, values):
            records.setdefault((field, value), set()).add(index.outline.record_at(position))
    held: dict[_Equality, set[int]] = {}
    taken: set[int] = set()
    fields: set[str] = set()
    for equality in possible:
        holding = records.get((equality.field, equality.value.lower()))
        if holding and taken.isdisjoint(range(*equality.run)) and equality.field not in fields and len(held) < _MAX_CONDITIONS:
            held[equality] = holding
            taken.update(range(*equality.run))
            fields.add(equality.field)
    return held


def _find_values(index: Index, rows: RowList, field: str, values: set[str]) -> Iterator[tuple[str, int]]:
    either = b"|".join(re.escape(value.encode()) for value in sorted(values, key=len, reverse=True))
    name = re.escape(field.encode())
    spelling = rb'"%b"\s{0,9}:\s{0,9}(?i:"\s{0,2}(%b)\s{0,2}"|(%b)[\s,}\]])' % (name, either, either)
    start, end = index.outline.starts[rows.records[0]], index.outline.ends[rows.records[-1]]
    for found in compile_pattern(spelling).finditer(index.text, start, end):
        yield (found.group(1) or found.group(2) or b"").decode("utf-8", "replace").lower(), found.start()
