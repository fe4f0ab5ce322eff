"""Joins: rows of other tables that belong to the row a question names, through one or several references."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import islice

from overspill.lexical.boost import Boost
from overspill.lexical.cells import find_column, read_rows
from overspill.lexical.index import Index
from overspill.lexical.query import Query
from overspill.lexical.rank import Ranking
from overspill.lexical.relations import (
    MIN_VALUES,
    Relation,
    Step,
    is_named_as_key,
    last_parts,
    list_codes,
    list_keys,
    list_own_references,
    list_tables,
    read_relations,
    split_cell,
)
from overspill.lexical.signals.link import find_anchors
from overspill.lexical.words import read_lexicon, read_related, stem
from overspill.text.patterns import compile_pattern, escape

_WORD = re.compile(r"[^\W_]+")
_MAX_STEPS = 4
"""How many references apart the rows of a question may be."""
_MAX_ROWS = 60
"""How many rows one step leads to at most, and from how many it starts."""
_MIN_KEY_SHARE = 0.2
"""Which share of the keys of a table a column must have to refer to it without being named after it."""
_MAX_NUMBERS = 8
"""Of a question, that may be keys. Each is looked for in the tables that the word before it names."""
_FAR_REFERENCES = 3
"""How far to follow references from a row if the question names nothing but that row."""


def boost_joined_rows(index: Index, query: Query, ranking: Ranking) -> Boost | None:
    rows = [] if ranking.leads else find_joined_rows(index, query, ranking)
    return Boost(leads=rows) if rows else None


def find_joined_rows(index: Index, query: Query, ranking: Ranking) -> list[int]:
    """Likeliest first; empty if the question names no row, or nothing refers to it."""
    if not list_tables(index):
        return []
    words = _WORD.findall(query.text.lower())
    named = list(_find_rows_by_key(index, words))
    anchors = find_anchors(index, ranking, preferred=named)
    if not anchors:
        return []
    found = index.remember(read_relations)
    relations = found.all
    steps = [*found.steps, *_guess_steps(index, relations, found.steps, words)]
    own: dict[int, list[Step]] = {}
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
        for there, back in _find_roles(index, relations, found.steps, start, words):
            between = _follow(index, relations, there, [anchor.record])
            wanted += _follow(index, relations, back, between)
            passed += between
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
    return list(dict.fromkeys([*wanted, *(row.record for row in anchors if row.record in named), *passed]))


def _find_rows_by_key(index: Index, words: list[str]) -> Iterator[int]:
    """ "Order 132" and "order no. 132": the row of the orders with this key, whatever else has the number."""
    numbers = [place for place, word in enumerate(words) if place and word.isdigit()]
    for place in numbers[:_MAX_NUMBERS]:
        before = [word for word in words[max(0, place - 2) : place] if word not in read_lexicon("keys")]
        kind = tuple(map(stem, before[-1:]))
        for relation in index.remember(read_relations).all if kind else ():
            if relation.key >= 0 and kind in (relation.name, last_parts(relation.columns[relation.key])[:-1]):
                held = _find_holding(index, relation, relation.key, [words[place]])
                yield from (
                    record for record, cells in read_rows(index, relation.table, held) if cells[relation.key] == words[place]
                )


def _find_own_references(index: Index, relations: list[Relation], own: int, words: list[str]) -> Iterator[Step]:
    """References to rows of the same table.

    The question names the column or, for words, the table. Numbers need a key's name, or an end: a head has no manager.
    """
    relation = relations[own]
    is_named = find_column([" ".join(relation.name)], words) is not None
    asked = {column for column, name in enumerate(relation.columns) if find_column([name], words) is not None}
    if not relation.has_few_keys or not (is_named or asked - {relation.key}):
        return
    for each in index.remember(list_own_references, relation.table, relation.key):
        is_asked = each.column in asked
        if (is_named or is_asked) and (not each.is_number or (is_asked and each.has_end)):
            yield Step(own, each.column, own, relation.key, is_reference=True)


def _find_roles(
    index: Index, relations: list[Relation], steps: list[Step], start: int, words: list[str]
) -> Iterator[tuple[Step, Step]]:
    """Ways from a table through another one and back: `relationships` has a `house_id`, and the house that is its `overlord`.

    The question names the column, or has a word that means nearly the same. Numbers need a key's name, or an end.
    """
    own = relations[start]
    asked = {stem(word) for word in words}
    asked.update(word for key in tuple(asked) for word in read_related().get(key, ()))
    taken = {(step.source, step.column) for step in steps if step.is_reference}
    for there in steps if own.has_few_keys else ():
        if there.source != start or there.target == start or there.is_reference:
            continue
        between = relations[there.target]
        for column, name in enumerate(between.columns):
            parts = {part for part in last_parts(name) if part not in read_lexicon("keys")}
            values = between.values[column]
            if (there.target, column) in taken or not parts or not asked.issuperset(parts) or len(values) < MIN_VALUES:
                continue
            is_key = column in between.gaps or is_named_as_key(name) or not all(map(str.isdigit, values))
            if is_key and values <= index.remember(list_keys, own.table, there.column):
                yield there, Step(there.target, column, start, there.column, is_reference=True)


def _guess_steps(index: Index, relations: list[Relation], known: list[Step], words: list[str]) -> Iterator[Step]:
    """References that names do not tell: `homeworld` has nothing but keys of planets.

    Any small number may be a key, so the question must name the column or the table that it leads to.
    """
    asked = {stem(word) for word in words}
    named = {number for number, each in enumerate(relations) if find_column([" ".join(each.name)], words) is not None}
    small = {number for number, each in enumerate(relations) if each.has_few_keys}
    taken = {(step.source, step.column) for step in known}
    linked = {(step.source, step.target) for step in known}
    referring = {(step.source, step.target) for step in known if step.is_reference}
    for source, relation in enumerate(relations):
        for column, values in list_codes(relation).items():
            is_asked = asked.issuperset(last_parts(relation.columns[column]))
            goals = small if is_asked else small & named
            # A town refers to its country, and yet the capital of a country may be a town.
            taken_goals = {source, *(goal for start, goal in (referring if is_asked else linked) if start == source)}
            targets = sorted(goals - taken_goals)
            if column == relation.key or (source, column) in taken or not targets:
                continue
            keys = {goal: index.remember(list_keys, relations[goal].table, relations[goal].key) for goal in targets}
            target = max(targets, key=lambda goal: (values <= keys[goal]) * len(values) / len(keys[goal]))
            if values <= keys[target] and (is_asked or len(values) >= _MIN_KEY_SHARE * len(keys[target])):
                yield Step(source, column, target, relations[target].key, is_reference=True)
                yield Step(target, relations[target].key, source, column, is_reference=False)


def _find_paths(steps: list[Step], start: int) -> dict[int, list[Step]]:
    """The shortest way to each relation that can be reached."""
    paths: dict[int, list[Step]] = {start: []}
    reached = [start]
    for relation in reached:
        if len(paths[relation]) < _MAX_STEPS:
            for step in steps:
                if step.source == relation and step.target not in paths:
                    paths[step.target] = [*paths[relation], step]
                    reached.append(step.target)
    return paths


def _find_goals(
    relations: list[Relation], start: int, words: list[str], paths: dict[int, list[Step]], steps: list[Step]
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
    index: Index, relations: list[Relation], steps: list[Step], start: int, rows: list[int], depth: int
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


def _follow(index: Index, relations: list[Relation], step: Step, rows: list[int]) -> list[int]:
    source, target = relations[step.source], relations[step.target]
    values = {
        value
        for _, cells in read_rows(index, source.table, rows[:_MAX_ROWS] or [source.table.first])
        for value in split_cell(cells[step.column])
    }
    if not rows or not values or len(values) > _MAX_ROWS:
        return []
    found = [
        record
        for record, cells in read_rows(index, target.table, _find_holding(index, target, step.other_column, values))
        if not values.isdisjoint(split_cell(cells[step.other_column]))
    ]
    return [record for record in found[:_MAX_ROWS] if record not in rows]


def _find_holding(index: Index, relation: Relation, column: int, values: Iterable[str]) -> list[int]:
    """The rows that seem to have one of these values in a column, found without reading the others."""
    name = escape(relation.columns[column].rsplit(".", 1)[-1].encode("utf-8", "replace"))
    spelt = b"|".join(escape(value.encode("utf-8", "replace")) for value in sorted(values))
    opening = rb"\[(?:[^{}:]*?\W)??" if column in relation.lists else rb'"?'
    outline = index.outline
    first, last = relation.table.first, relation.table.last
    pattern = compile_pattern(rb'[".]%b"\s*:\s*%b(?:%b)(?:\W|$)' % (name, opening, spelt))
    spots = pattern.finditer(index.text, outline.starts[first], outline.ends[last - 1])
    found = dict.fromkeys(outline.record_at(spot.start()) for spot in islice(spots, _MAX_ROWS * _MAX_ROWS))
    return [record for record in found if first <= record < last] or [first]
