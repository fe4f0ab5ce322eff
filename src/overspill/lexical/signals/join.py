"""Joins: rows of other tables that belong to the row a question names, through one or several references."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from itertools import islice

from msgspec import Struct

from overspill.lexical.boost import Boost
from overspill.lexical.cells import find_column, read_columns, read_rows
from overspill.lexical.index import Index
from overspill.lexical.outline import Table
from overspill.lexical.query import Query
from overspill.lexical.rank import Ranking
from overspill.lexical.render import render
from overspill.lexical.signals.link import find_anchors
from overspill.lexical.words import read_lexicon, split_subwords, stem
from overspill.text.patterns import compile_pattern, escape

_WORD = re.compile(r"[^\W_]+")
_MEMBERS = re.compile(r"[^\s\[\]{},'\"]+")
_NEVER_KEYS = ("", "None", "True", "False")
_MAX_TABLES = 40
_MAX_STEPS = 4
"""How many references apart the rows of a question may be."""
_MAX_ROWS = 60
"""How many rows one step leads to at most, and from how many it starts."""
_MAX_KEY_CHARS = 100
_SAMPLED_ROWS = 60
_MIN_KEYS, _MIN_KEY_SHARE = 3, 0.2
"""How many keys of a table, and which share of them, a column must have to refer to it without being named after it."""
_MAX_KEYS = 2_000
"""A table with more keys is referred to by name only."""
_FAR_REFERENCES = 3
"""How far to follow references from a row if the question names nothing but that row."""


class _Relation(Struct, frozen=True):
    """A table with its name, its columns and the number of its key column, or -1."""

    table: Table
    name: tuple[str, ...]
    columns: list[str]
    key: int
    lists: frozenset[int]


class _Step(Struct, frozen=True):
    """From the rows of one relation to those of another: cells of `column` equal cells of `other_column`."""

    source: int
    column: int
    target: int
    other_column: int
    is_reference: bool


def boost_joined_rows(index: Index, query: Query, ranking: Ranking) -> Boost | None:
    rows = [] if ranking.leads else find_joined_rows(index, query, ranking)
    return Boost(leads=rows) if rows else None


def find_joined_rows(index: Index, query: Query, ranking: Ranking) -> list[int]:
    """Likeliest first; empty if the question names no row, or nothing refers to it."""
    tables = [table for table in index.outline.tables if table.cells == "json"]
    anchors = find_anchors(index, ranking) if 1 <= len(tables) <= _MAX_TABLES else []
    if not anchors:
        return []
    relations = [_read_relation(index, table) for table in tables]
    words = _WORD.findall(query.text.lower())
    steps = list(_find_steps(relations))
    steps += _guess_steps(index, relations, steps, words)
    own: dict[int, list[_Step]] = {}
    wanted: list[int] = []
    passed: list[int] = []
    for anchor in anchors:
        start = next((number for number, relation in enumerate(relations) if relation.table is anchor.table), -1)
        if start < 0:
            continue
        if start not in own:
            own[start] = list(_find_own_references(index, relations, start, words))
        for step in own[start]:
            wanted += _follow(index, relations, step, [anchor.record])
        paths = _find_paths(steps, start)
        goals = _find_goals(relations, start, words, paths, steps)
        for goal in goals:
            rows = [anchor.record]
            for step in paths[goal]:
                alike = [each for each in steps if (each.source, each.target) == (step.source, step.target)]
                rows = list(dict.fromkeys(row for each in alike for row in _follow(index, relations, each, rows)))
                passed += rows
            wanted += sorted(rows, key=lambda record: -ranking.scores.get(record, 0.0))
            passed += _follow_references(index, relations, steps, goal, rows, 1)
        passed += _follow_references(index, relations, steps, start, [anchor.record], 1 if goals else _FAR_REFERENCES)
    return list(dict.fromkeys([*wanted, *passed]))


def _read_relation(index: Index, table: Table) -> _Relation:
    outline = index.outline
    label = outline.under[table.first]
    name = stem_parts(render(index, outline.label_starts[label], outline.label_ends[label])) if label >= 0 else ()
    columns = read_columns(index, table)
    rows = [cells for _, cells in islice(read_rows(index, table), _SAMPLED_ROWS)]
    keys = [number for number, column in enumerate(columns) if _is_named_as_key(column)]
    unique = [number for number in keys if len({cells[number] for cells in rows} - set(_NEVER_KEYS)) == len(rows)]
    lists = frozenset(number for number in range(len(columns)) if any(cells[number][:1] == "[" for cells in rows))
    return _Relation(table, name, columns, unique[0] if unique else -1, lists)


def _is_named_as_key(column: str) -> bool:
    parts = _last_parts(column)
    return bool(parts) and (parts[-1] in read_lexicon("keys") or column.lower().endswith("id"))


def _find_own_references(index: Index, relations: list[_Relation], own: int, words: list[str]) -> Iterator[_Step]:
    """References to rows of the same table: the `manager_id` of an employee, the `components` of an item.

    The question names the column or, for words, the table. Numbers need a key's name, or an end: a head has no manager.
    """
    relation = relations[own]
    is_named = find_column([" ".join(relation.name)], words) is not None
    asked = {column for column, name in enumerate(relation.columns) if find_column([name], words) is not None}
    columns = [column for column in range(len(relation.columns)) if column != relation.key and (is_named or column in asked)]
    if relation.key < 0 or relation.table.last - relation.table.first > _MAX_KEYS or not columns:
        return
    rows = [cells for _, cells in read_rows(index, relation.table)]
    keys = {cells[relation.key] for cells in rows}
    for column in columns:
        values = {value for cells in rows for value in _split(cells[column])}
        if len(values) < _MIN_KEYS or not values <= keys:
            continue
        has_end = _is_named_as_key(relation.columns[column]) or any(cells[column] in _NEVER_KEYS for cells in rows)
        if not all(map(str.isdigit, values)) or (column in asked and has_end):
            yield _Step(own, column, own, relation.key, is_reference=True)


def _find_steps(relations: list[_Relation]) -> Iterator[_Step]:
    """Each reference, and its reverse."""
    for source, relation in enumerate(relations):
        for column in range(len(relation.columns)):
            target = _find_target(relations, source, column)
            if target >= 0 and (target, relations[target].key) != (source, column):
                yield _Step(source, column, target, relations[target].key, is_reference=True)
                yield _Step(target, relations[target].key, source, column, is_reference=False)


def _find_target(relations: list[_Relation], source: int, column: int) -> int:
    """The relation that a column refers to, by their names; -1 for none."""
    words = _last_parts(relations[source].columns[column])
    fits = [_measure_fit(words, relation) if relation.key >= 0 else 0 for relation in relations]
    best = max(range(len(relations)), key=fits.__getitem__)
    if fits[best]:
        return best
    # Another name, but there is nothing else that it could mean.
    others = [number for number, relation in enumerate(relations) if relation.key >= 0 and number != source]
    is_reference = column in relations[source].lists or (
        words and words[-1] in read_lexicon("keys") and column != relations[source].key
    )
    return others[0] if len(others) == 1 and is_reference else -1


def _measure_fit(words: tuple[str, ...], relation: _Relation) -> int:
    """`country_code` refers to the `code` of a country, `author` and `author_id` to an author, `born_city_id` to a city."""
    key, name = _last_parts(relation.columns[relation.key]), relation.name
    if not words or not key:
        return 0
    is_key = words[-1] in read_lexicon("keys")
    if name and (words == name or (is_key and words[:-1] == name)):
        return 3
    if words == key and any(word not in read_lexicon("keys") for word in key):
        return 2
    return int(is_key and len(words) > 1 and bool(name) and words[-2] == name[-1])


def _guess_steps(index: Index, relations: list[_Relation], known: list[_Step], words: list[str]) -> Iterator[_Step]:
    """References that names do not tell: `homeworld` has nothing but keys of planets.

    Any small number may be a key, so the question must name the column or the table that it leads to.
    """
    asked = {stem(word) for word in words}
    named = {number for number, each in enumerate(relations) if find_column([" ".join(each.name)], words) is not None}
    small = {number for number, each in enumerate(relations) if each.key >= 0 and each.table.last - each.table.first <= _MAX_KEYS}
    taken = {(step.source, step.column) for step in known}
    linked = {(step.source, step.target) for step in known}
    keys: dict[int, set[str]] = {}
    for source, relation in enumerate(relations):
        rows = [cells for _, cells in islice(read_rows(index, relation.table), _SAMPLED_ROWS)]
        for column, name in enumerate(relation.columns):
            goals = small if asked.issuperset(_last_parts(name)) else small & named
            targets = [goal for goal in sorted(goals) if goal != source and (source, goal) not in linked]
            if column == relation.key or (source, column) in taken or not targets:
                continue
            values = {value for cells in rows for value in _split(cells[column])}
            if len(values) < _MIN_KEYS or not all(map(str.isdigit, values)):
                continue
            for target in targets:
                if target not in keys:
                    key, table = relations[target].key, relations[target].table
                    keys[target] = {cells[key] for _, cells in read_rows(index, table)}
            target = max(targets, key=lambda target: (values <= keys[target]) * len(values) / len(keys[target]))
            if values <= keys[target] and len(values) >= _MIN_KEY_SHARE * len(keys[target]):
                yield _Step(source, column, target, relations[target].key, is_reference=True)
                yield _Step(target, relations[target].key, source, column, is_reference=False)


def _find_paths(steps: list[_Step], start: int) -> dict[int, list[_Step]]:
    """The shortest way to each relation that can be reached."""
    paths: dict[int, list[_Step]] = {start: []}
    reached = [start]
    for relation in reached:
        if len(paths[relation]) < _MAX_STEPS:
            for step in steps:
                if step.source == relation and step.target not in paths:
                    paths[step.target] = [*paths[relation], step]
                    reached.append(step.target)
    return paths


def _find_goals(
    relations: list[_Relation], start: int, words: list[str], paths: dict[int, list[_Step]], steps: list[_Step]
) -> list[int]:
    """The relations that the question names, or a column that refers to them, or else one of their columns; the nearest first."""
    own = [*relations[start].columns, " ".join(relations[start].name)]
    foreign = [word for word in words if find_column(own, [word]) is None]
    others = [number for number in paths if number != start]
    named = [number for number in others if find_column([" ".join(relations[number].name)], foreign) is not None]
    exact = [number for number in named if len(relations[number].name) == 1]
    if named:
        return [*exact, *(number for number in named if number not in exact)]
    columns = relations[start].columns
    referring = [step for step in steps if step.source == start and step.is_reference]
    if referred := [step.target for step in referring if find_column([columns[step.column]], words) is not None]:
        return list(dict.fromkeys(referred))
    return [number for number in others if find_column(relations[number].columns, foreign) is not None]


def _follow_references(
    index: Index, relations: list[_Relation], steps: list[_Step], start: int, rows: list[int], depth: int
) -> list[int]:
    """What rows refer to, and what those refer to."""
    found: list[int] = []
    current = {start: rows}
    for _ in range(depth):
        following: dict[int, list[int]] = {}
        for step in steps:
            if step.is_reference and step.source in current and (depth == 1 or step.column not in relations[step.source].lists):
                following.setdefault(step.target, []).extend(_follow(index, relations, step, current[step.source]))
        found += [record for records in following.values() for record in records]
        current = following
    return found


def _follow(index: Index, relations: list[_Relation], step: _Step, rows: list[int]) -> list[int]:
    source, target = relations[step.source], relations[step.target]
    values = {
        value
        for _, cells in read_rows(index, source.table, rows[:_MAX_ROWS] or [source.table.first])
        for value in _split(cells[step.column])
    }
    if not rows or not values or len(values) > _MAX_ROWS:
        return []
    found = [
        record
        for record, cells in read_rows(index, target.table, _find_holding(index, target, step.other_column, values))
        if not values.isdisjoint(_split(cells[step.other_column]))
    ]
    return [record for record in found[:_MAX_ROWS] if record not in rows]


def _find_holding(index: Index, relation: _Relation, column: int, values: Iterable[str]) -> list[int]:
    """The rows that seem to have one of these values in a column, found without reading the others."""
    name = escape(relation.columns[column].rsplit(".", 1)[-1].encode("utf-8", "replace"))
    spelt = b"|".join(escape(value.encode("utf-8", "replace")) for value in sorted(values))
    opening = rb"\[(?:[^{}:]*?\W)??" if column in relation.lists else rb'"?'
    outline = index.outline
    first, last = relation.table.first, relation.table.last
    pattern = compile_pattern(rb'"%b"\s*:\s*%b(?:%b)(?:\W|$)' % (name, opening, spelt))
    spots = pattern.finditer(index.text, outline.starts[first], outline.ends[last - 1])
    found = dict.fromkeys(outline.record_at(spot.start()) for spot in islice(spots, _MAX_ROWS * _MAX_ROWS))
    return [record for record in found if first <= record < last] or [first]


def _split(cell: str) -> list[str]:
    """A cell, or the members of the list that it holds."""
    members = _MEMBERS.findall(cell) if cell[:1] == "[" else [cell]
    return [member for member in members if member not in _NEVER_KEYS and len(member) <= _MAX_KEY_CHARS]


def _last_parts(column: str) -> tuple[str, ...]:
    """The words of a column's own name, and of the object that it is in if it is only called `id`."""
    above, _, name = column.rpartition(".")
    return stem_parts(above.rpartition(".")[2] + "." + name if name.lower() in read_lexicon("keys") else name)


@lru_cache(maxsize=4_096)
def stem_parts(name: str) -> tuple[str, ...]:
    return tuple(stem(part) for part in split_subwords(name))
