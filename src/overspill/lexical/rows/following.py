"""Follows references from rows of one table to those of another, without reading the other rows."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice

from overspill.lexical.index import Index
from overspill.lexical.rows.cells import read_rows
from overspill.lexical.rows.relations import Relation, Step
from overspill.tables.json_rows import KEY
from overspill.tables.schema import split_codes
from overspill.text.patterns import compile_pattern, escape

_MAX_ROWS = 60
"""From how many rows one step starts."""
_MAX_FOUND = 2_000
_MAX_VALUES = 200
"""How many values are looked for at once. A list of more leads everywhere."""
_MAX_SPOTS = 4_000
"""Places where a value is found, for each column."""


def follow(index: Index, relations: list[Relation], step: Step, rows: list[int]) -> list[tuple[int, int]]:
    """Each of these rows with each row that the step leads to."""
    source, target = relations[step.source], relations[step.target]
    starts: dict[str, list[int]] = {}
    for row, cells in read_rows(index, source.table, rows[:_MAX_ROWS]) if rows else ():
        for value in _split(cells[step.column], is_reference=step.is_reference):
            starts.setdefault(step.read_there(value), []).append(row)
    if not 0 < len(starts) <= _MAX_VALUES:
        return []
    held = _find_holding(index, target, step.other_column, starts, has_codes=not step.is_reference)
    found = [
        (row, record)
        for record, cells in (read_rows(index, target.table, held) if held else ())
        for value in _split(cells[step.other_column], is_reference=not step.is_reference)
        for row in starts.get(value, ())
        if row != record
    ]
    return list(dict.fromkeys(found))[:_MAX_FOUND]


def _split(cell: str, *, is_reference: bool) -> list[str]:
    return split_codes(cell) if is_reference else [cell] if cell else []


def _find_holding(index: Index, relation: Relation, column: int, values: Iterable[str], *, has_codes: bool) -> list[int]:
    """The rows that seem to have one of these values in a column, alone or among several codes, such as `"DH1 DH2"`."""
    name = escape(relation.columns[column].rsplit(".", 1)[-1].encode("utf-8", "replace"))
    spelt = b"|".join(escape(value.encode("utf-8", "replace")) for value in sorted(values))
    alone = rb'"?(?:[^"{}]{0,40}?[\s,;|/])??' if has_codes else rb'"?'
    opening = rb'(?:\[(?:[^{}\[\]]*?\W)??|"?)' if column in relation.lists else alone
    is_member = relation.columns[column] == KEY
    spelling = rb'"(?:%b)"\s*:\s*\{' % spelt if is_member else rb'[".]%b"\s*:\s*%b(?:%b)(?:\W|$)' % (name, opening, spelt)
    outline, table = index.outline, relation.table
    spots = compile_pattern(spelling).finditer(index.text, outline.starts[table.first], outline.ends[table.last - 1])
    found = dict.fromkeys(outline.record_at(spot.start()) for spot in islice(spots, _MAX_SPOTS))
    return [record for record in found if table.first <= record < table.last]
