"""References that neither names nor values tell, but a question: `homeworld` has nothing but keys of planets."""

from __future__ import annotations

from collections.abc import Iterator

from overspill.lexical.cells import find_column
from overspill.lexical.index import Index
from overspill.lexical.relations import MAX_LINK_COLUMNS, Relation, Step, last_parts, list_codes, list_keys
from overspill.lexical.words import stem

_MIN_KEY_SHARE = 0.2
"""Which share of the keys of a table a column must have to refer to it without being named after it."""


def guess_steps(index: Index, relations: list[Relation], known: list[Step], words: list[str]) -> Iterator[Step]:
    """Any small number may be a key, so the question must name the column or the table that it leads to."""
    asked = {stem(word) for word in words}
    named = {number for number, each in enumerate(relations) if find_column([" ".join(each.name)], words) is not None}
    small = {number for number, each in enumerate(relations) if each.has_few_keys}
    taken = {(step.source, step.column) for step in known}
    linked = {(step.source, step.target) for step in known}
    linked.update(_list_linked(relations, known))
    referring = {(step.source, step.target) for step in known if step.is_reference}
    for source, relation in enumerate(relations):
        # A town refers to its country, and yet the capital of a country may be a town.
        near, referred = ({source, *(goal for start, goal in pairs if start == source)} for pairs in (linked, referring))
        for column, values in list_codes(relation).items():
            is_asked = asked.issuperset(last_parts(relation.columns[column]))
            goals = small if is_asked else small & named
            targets = sorted(goals - (referred if is_asked else near))
            if column == relation.key or (source, column) in taken or not targets:
                continue
            keys = {goal: index.remember(list_keys, relations[goal].table, relations[goal].key) for goal in targets}
            target = max(targets, key=lambda goal: (values <= keys[goal]) * len(values) / len(keys[goal]))
            if values <= keys[target] and (is_asked or len(values) >= _MIN_KEY_SHARE * len(keys[target])):
                yield Step(source, column, target, relations[target].key, is_reference=True)
                yield Step(target, relations[target].key, source, column, is_reference=False)


def _list_linked(relations: list[Relation], known: list[Step]) -> Iterator[tuple[int, int]]:
    """The relations that a table of little more than their keys links to each other."""
    references = [step for step in known if step.is_reference]
    for one in references:
        between = relations[one.source]
        if len(between.columns) <= MAX_LINK_COLUMNS and not between.lists:
            yield from ((one.target, other.target) for other in references if other.source == one.source)
