"""Joins: rows of other tables that belong to the row a question names, through one or several references."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from heapq import nlargest
from itertools import islice

from msgspec.structs import replace

from overspill.lexical.boost import Boost
from overspill.lexical.cells import find_column, read_rows
from overspill.lexical.following import MAX_ROWS, find_holding, follow, follow_references
from overspill.lexical.index import Index
from overspill.lexical.named import Row, find_named_rows
from overspill.lexical.query import Query
from overspill.lexical.rank import Ranking
from overspill.lexical.relations import (
    MIN_VALUES,
    References,
    Relation,
    Step,
    has_gaps,
    is_named_as_key,
    last_parts,
    list_keys,
    list_tables,
    read_references,
    read_relations,
)
from overspill.lexical.signals.link import find_anchors
from overspill.lexical.words import read_lexicon, read_related, stem
from overspill.tables.schema import MAX_LINK_COLUMNS, POSSIBLE, SURE

_WORD = re.compile(r"[^\W_]+")
_MAX_STEPS = 4
"""How many references apart the rows of a question may be."""
_MAX_COMMON_ROWS = 2_000
"""The same, if only those that another row leads to as well are kept."""
_MAX_CHAIN_WORDS = 60
"""Words of a question that are read for a relative of a relative."""
_MAX_NUMBERS = 8
"""Of a question, that may be keys. Each is looked for in the tables that the word before it names."""
_MAX_GUESSED = 120
"""References and their reverses that only a question tells."""
_MAX_REFERRING = 5
"""Rows of each table that refer to such a row."""
_FAR_REFERENCES = 3
"""How far to follow references from a row if the question names nothing but that row."""


def boost_joined_rows(index: Index, query: Query, ranking: Ranking) -> Boost | None:
    rows = [] if ranking.leads else find_joined_rows(index, query, ranking)
    return Boost(leads=rows) if rows else None


def find_joined_rows(index: Index, query: Query, ranking: Ranking) -> list[int]:
    """Likeliest first; empty if the question names no row, or nothing refers to it."""
    if not list_tables(index):
        return []
    words, other = (_WORD.findall(text.lower()) for text in (query.text, query.other))
    by_key = list(_find_rows_by_key(index, words))
    groups = [[row] for row in find_anchors(index, ranking, preferred=by_key)] if by_key else []
    groups = groups or find_named_rows(index, query, ranking) or [find_anchors(index, ranking)]
    found = index.remember(read_references)
    steps = [*found.steps, *islice(_list_asked(found, words), _MAX_GUESSED)]
    joins = _Joins(index, ranking, found, steps, words, other)
    for group in groups:
        for anchor in group:
            joins.start_from(anchor)
    together = _find_rows_of_both(index, joins, groups) if len(groups) > 1 else []
    return list(dict.fromkeys([*together, *joins.wanted, *(row for row in by_key if row in joins.anchors), *joins.passed]))


class _Joins:
    """The rows that belong to those that a question names: what it asks for, and what is on the way."""

    def __init__(
        self,
        index: Index,
        ranking: Ranking,
        found: References,
        steps: list[Step],
        words: list[str],
        other: list[str],
    ) -> None:
        self.index, self.ranking, self.found, self.relations = index, ranking, found, found.relations
        self.steps, self.known, self.words, self.other = steps, found.steps, words, other
        self.numbers = {relation.table.first: number for number, relation in enumerate(found.relations)}
        self.own: dict[int, list[tuple[Step, bool]]] = {}
        self.anchors: list[int] = []
        self.wanted: list[int] = []
        self.passed: list[int] = []

    def start_from(self, anchor: Row) -> None:
        index, relations, steps, words = self.index, self.relations, self.steps, self.words
        start = self.numbers.get(anchor.table.first, -1)
        if start < 0:
            return
        self.anchors.append(anchor.record)
        if start not in self.own:
            self.own[start] = list(_find_own_references(index, self.found, start, words))
        related: list[int] = []
        self.wanted += self._follow_chain(start, anchor)
        for step, is_asked in self.own[start]:
            rows = follow(index, relations, step, [anchor.record])
            if is_asked:
                self.wanted += rows
            else:
                related += rows
        for there, back in _find_roles(index, relations, self.known, start, words):
            between = follow(index, relations, there, [anchor.record])
            self.wanted += follow(index, relations, back, between)
            self.passed += between
        paths = _find_paths(steps, start)
        goals = _find_goals(relations, start, words, self.other, paths, steps)
        for goal in goals:
            rows = [anchor.record]
            for step in paths[goal]:
                alike = _list_alike(relations, steps, step, words)
                rows = list(dict.fromkeys(row for each in alike for row in follow(index, relations, each, rows)))
                self.passed += rows
            self.wanted += sorted(rows, key=lambda record: -self.ranking.scores.get(record, 0.0))
            self.passed += follow_references(index, relations, steps, goal, rows, 1)
        if len(relations) > 1:
            self.passed += related
        self.passed += follow_references(index, relations, steps, start, [anchor.record], 1 if goals else _FAR_REFERENCES)
        if not goals:
            self.passed += self._find_referring(start, anchor)

    def _find_referring(self, start: int, anchor: Row) -> list[int]:
        """Some of the rows of each table that refer to this one, and what else they refer to: the question may call them by
        other names."""
        found, others = list[int](), list[int]()
        for step in self.known:
            if step.source == start and not step.is_reference:
                rows = follow(self.index, self.relations, step, [anchor.record])
                best = nlargest(_MAX_REFERRING, rows, key=lambda record: self.ranking.scores.get(record, 0.0))
                found += best
                others += follow_references(self.index, self.relations, self.known, step.target, best, 1)
        return [*found, *(record for record in others if record != anchor.record)]

    def _follow_chain(self, start: int, anchor: Row) -> list[int]:
        """ "The mother of the father of X": what the last of these columns refers to, and so on to the first."""
        own = [step for step, _ in self.own[start] if step.is_reference]
        names = [self.relations[start].columns[step.column] for step in own]
        asked = [place for word in self.words[:_MAX_CHAIN_WORDS] if (place := find_column(names, [word])) is not None]
        rows, passed = [anchor.record], list[list[int]]()
        for place in reversed(asked) if 1 < len(asked) <= _MAX_STEPS else ():
            rows = follow(self.index, self.relations, own[place], rows)
            passed.append(rows)
        return [row for reached in reversed(passed) for row in reached] if rows else []


def _list_alike(relations: list[Relation], steps: list[Step], step: Step, words: list[str]) -> list[Step]:
    """The steps between the same two relations; only those by a column that the question names, if there are some."""
    alike = [each for each in steps if (each.source, each.target) == (step.source, step.target)]
    columns = relations[step.source].columns
    named = [each for each in alike if each.is_reference and find_column([columns[each.column]], words) is not None]
    return named or alike


def _find_rows_of_both(index: Index, joins: _Joins, groups: list[list[Row]]) -> list[int]:
    """The rows that refer to two of the things that a question names: the price of a product in a shop."""
    times: Counter[int] = Counter()
    for group in groups:
        reached: set[int] = set()
        for anchor in group:
            start = joins.numbers.get(anchor.table.first, -1)
            for step in joins.steps:
                if step.source == start and not step.is_reference:
                    reached.update(follow(index, joins.relations, step, [anchor.record], _MAX_COMMON_ROWS))
        times.update(reached)
    return [record for record, many in times.most_common(MAX_ROWS) if many > 1]


def _find_rows_by_key(index: Index, words: list[str]) -> Iterator[int]:
    """ "Order 132" and "order no. 132": the row of the orders with this key, whatever else has the number."""
    numbers = [place for place, word in enumerate(words) if place and word.isdigit()]
    for place in numbers[:_MAX_NUMBERS]:
        before = [word for word in words[max(0, place - 2) : place] if word not in read_lexicon("keys")]
        kind = tuple(map(stem, before[-1:]))
        for relation in index.remember(read_relations) if kind else ():
            if relation.key >= 0 and kind in (relation.name, last_parts(relation.columns[relation.key])[:-1]):
                held = find_holding(index, relation, relation.key, [words[place]])
                rows = read_rows(index, relation.table, held) if held else ()
                yield from (record for record, cells in rows if cells[relation.key] == words[place])


def _list_asked(found: References, words: list[str]) -> Iterator[Step]:
    """The references that only a question tells, and their reverse: it names the column, or the table that it leads to, to which
    no other reference leads."""
    asked = {stem(word) for word in words}
    named = {number for number, each in enumerate(found.relations) if find_column([" ".join(each.name)], words) is not None}
    referred = {(step.source, step.target) for step in found.steps if step.is_reference}
    narrow = {number for number, each in enumerate(found.relations) if len(each.columns) <= MAX_LINK_COLUMNS and not each.lists}
    linked = {
        (one, other)
        for between in narrow
        for start, one in referred
        if start == between
        for begin, other in referred
        if begin == between
    }
    linked.update(referred, ((target, source) for source, target in referred))
    for step in found.possible:
        there = step if step.is_reference else step.reverse
        ends = (there.source, there.target)
        is_asked = asked.issuperset(found.relations[there.source].words[there.column]) and ends not in referred
        is_named = there.target in named and there.confidence >= POSSIBLE and ends not in linked
        if (is_asked or is_named) and there.source != there.target:
            yield replace(step, confidence=SURE) if is_asked else step


def _find_own_references(index: Index, found: References, own: int, words: list[str]) -> Iterator[tuple[Step, bool]]:
    """References to rows of the same table and their reverse, and whether they are asked for.

    The question names the column or, for words, the table. Numbers need a key's name, or an end: a head has no manager.
    """
    relation = found.relations[own]
    is_named = find_column([" ".join(relation.name)], words) is not None
    for step in (*found.steps, *found.possible):
        if not step.is_reference or step.source != own or step.target != own:
            continue
        is_asked = find_column([relation.columns[step.column]], words) is not None
        is_number = all(map(str.isdigit, relation.values[step.column]))
        if not is_number or (
            is_asked and (step.column in relation.keyed or index.remember(has_gaps, relation.table, step.column))
        ):
            yield step, is_named or is_asked
            yield step.reverse, False


def _find_roles(
    index: Index, relations: list[Relation], steps: list[Step], start: int, words: list[str]
) -> Iterator[tuple[Step, Step]]:
    """Ways from a table through another one and back: `relationships` has a `house_id`, and the house that is its `overlord`.

    The question names the column, or has a word that means nearly the same. Numbers need a key's name, or an end.
    """
    own = relations[start]
    asked = {stem(word) for word in words}
    asked.update(word for key in tuple(asked) for word in read_related().get(key, ()))
    taken = {(step.source, step.column): step for step in steps if step.is_reference}
    for there in steps if own.has_few_keys else ():
        if there.source != start or there.target == start or there.is_reference:
            continue
        between = relations[there.target]
        for column, name in enumerate(between.columns):
            parts = {part for part in last_parts(name) if part not in read_lexicon("keys")}
            values = between.values[column]
            if not parts or not asked.issuperset(parts) or len(values) < MIN_VALUES or column == there.other_column:
                continue
            if back := taken.get((there.target, column)):
                if back.target == start:
                    yield there, back
                continue
            is_key = column in between.gaps or is_named_as_key(name) or not all(map(str.isdigit, values))
            if is_key and values <= index.remember(list_keys, own.table, there.column):
                yield there, Step(there.target, column, start, there.column, is_reference=True)


def _find_paths(steps: list[Step], start: int) -> dict[int, list[Step]]:
    """The shortest way to each relation that can be reached. One that is less than sure is as long as two."""
    paths: dict[int, list[Step]] = {start: []}
    lengths = {start: 0}
    reached = [start]
    for relation in reached:
        for step in steps if lengths[relation] < _MAX_STEPS else ():
            length = lengths[relation] + (1 if step.confidence >= SURE else 2)
            if step.source == relation and length < lengths.get(step.target, _MAX_STEPS + 1):
                paths[step.target], lengths[step.target] = [*paths[relation], step], length
                reached.append(step.target)
    return paths


def _find_goals(
    relations: list[Relation], start: int, words: list[str], other: list[str], paths: dict[int, list[Step]], steps: list[Step]
) -> list[int]:
    """The relations that the question names, itself or in other words, or a column that refers to them, or else one of their
    columns; the nearest first."""
    own = [*relations[start].columns, " ".join(relations[start].name)]
    others = [number for number in paths if number != start]
    for foreign in ([word for word in each if find_column(own, [word]) is None] for each in (words, other)):
        named = [number for number in others if find_column([" ".join(relations[number].name)], foreign) is not None]
        exact = [number for number in named if len(relations[number].name) == 1]
        if named:
            return [*exact, *(number for number in named if number not in exact)]
        alike = {each for word in foreign for each in read_related().get(stem(word), ())}
        if meant := [number for number in others if relations[number].name and alike.issuperset(relations[number].name)]:
            return meant
    columns = relations[start].columns
    referring = [step for step in steps if step.source == start and step.is_reference]
    if referred := [step.target for step in referring if find_column([columns[step.column]], words) is not None]:
        return list(dict.fromkeys(referred))
    foreign = [word for word in words if find_column(own, [word]) is None]
    return [number for number in others if find_column(relations[number].columns, foreign) is not None]
