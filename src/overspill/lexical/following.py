"""Follows references from rows of one table to those of another."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice

from overspill.lexical.cells import read_rows
from overspill.lexical.index import Index
from overspill.lexical.relations import Relation, Step
from overspill.tables.json_rows import KEY
from overspill.tables.schema import split_cell
from overspill.text.patterns import compile_pattern, escape

MAX_ROWS = 60
"""How many rows one step leads to at most, and from how many it starts."""
_MAX_VALUES = 200
"""How many values are looked for at once. A list may have any number of members."""
_MAX_SPOTS = 4_000
"""Places where a value is found, for each column."""


def follow_references(
    index: Index, relations: list[Relation], steps: list[Step], start: int, rows: list[int], depth: int
) -> list[int]:
    """What rows refer to, and what those refer to. Lists are followed from these rows alone: they lead to many."""
    found: list[int] = []
    current = {start: rows}
    for number in range(depth):
        following: dict[int, list[int]] = {}
        for step in steps:
            if step.is_reference and step.source in current and (number == 0 or step.column not in relations[step.source].lists):
                following.setdefault(step.target, []).extend(follow(index, relations, step, current[step.source]))
        found += [record for records in following.values() for record in records]
        current = following
    return found


def follow(index: Index, relations: list[Relation], step: Step, rows: list[int], most: int = MAX_ROWS) -> list[int]:
    source, target = relations[step.source], relations[step.target]
    values = {
        step.read_there(value)
        for _, cells in read_rows(index, source.table, rows[:MAX_ROWS] or [source.table.first])
        for value in split_cell(cells[step.column])
    }
    if not rows or not values or len(values) > MAX_ROWS:
        return []
    held = find_holding(index, target, step.other_column, values)
    found = [
        record
        for record, cells in (read_rows(index, target.table, held) if held else ())
        if not values.isdisjoint(split_cell(cells[step.other_column]))
    ]
    return [record for record in found[:most] if record not in rows]


def find_holding(index: Index, relation: Relation, column: int, values: Iterable[str], *, with_codes: bool = False) -> list[int]:
    """The rows that seem to have one of these values in a column, found without reading the others.

    `with_codes`: also those that have it among several codes in one cell, such as `"DH1 DH2"`.
    """
    name = escape(relation.columns[column].rsplit(".", 1)[-1].encode("utf-8", "replace"))
    spelt = b"|".join(escape(value.encode("utf-8", "replace")) for value in sorted(values)[:_MAX_VALUES])
    alone = rb'"?(?:[^"{}]{0,40}?[\s,;|/])??' if with_codes else rb'"?'
    opening = rb'(?:\[(?:[^{}\[\]]*?\W)??|"?)' if column in relation.lists else alone
    is_member = relation.columns[column] == KEY
    spelling = rb'"(?:%b)"\s*:\s*\{' % spelt if is_member else rb'[".]%b"\s*:\s*%b(?:%b)(?:\W|$)' % (name, opening, spelt)
    outline, table = index.outline, relation.table
    spots = compile_pattern(spelling).finditer(index.text, outline.starts[table.first], outline.ends[table.last - 1])
    found = dict.fromkeys(outline.record_at(spot.start()) for spot in islice(spots, _MAX_SPOTS))
    return [record for record in found if table.first <= record < table.last]
