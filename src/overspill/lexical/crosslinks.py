"""Cross-links: the references of a JSON document to look for rows by, also those that only the values of a column tell.

Nothing here depends on the question, so an index reads it once. What is told by values alone may be wrong: numbers are keys of
many tables. So it serves only to find rows in which several references meet.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator

from overspill.lexical.cells import read_rows
from overspill.lexical.index import Index
from overspill.lexical.references import limit_references, read_references
from overspill.lexical.relations import MIN_VALUES, Relation, Step, is_named_as_key, split_cell

_SEPARATOR = re.compile(r"[\s,;|/]+")
_MAX_CODES = 12
"""Of a cell with several, such as `"DH1 DH2"`."""
_MAX_CODE_CHARS = 40
_MAX_ROWS = 12_000
"""Rows of all tables together whose names are kept."""
_MAX_NAMES = 12
"""Columns of a table that rows may be referred to by."""
_MIN_SHARE = 0.7
"""Which share of the values of a column another one must have."""
_MIN_SAMPLED_SHARE = 0.3
"""The same in a sample of rows, of all of them: some may have nothing there."""
_MIN_UNIQUE_SHARE = 0.9
"""Which share of the cells of a column must differ from each other for it to name rows."""
_MIN_HELD_SHARE = 0.5
"""The same for a column that is named after what it refers to."""
_MIN_KEY_SHARE = 0.2
"""Which share of the keys of a table a column of numbers must have that is not named as a key."""
_MAX_TARGETS = 2
"""What a column of numbers may refer to at most, if nothing tells which."""

Place = tuple[int, int]
"""The number of a relation, and of one of its columns."""


def read_crosslinks(index: Index) -> list[Step]:
    """References only, not their reverses."""
    found = index.remember(read_references)
    steps = [step for step in found.steps if step.is_reference]
    names = _index_names(index, found.relations)
    told = {(step.source, step.column) for step in steps if _is_held(names, found.relations, step)}
    for source, relation in enumerate(found.relations):
        for column in range(len(relation.columns)):
            targets = _find_targets(names, found.relations, source, column) if (source, column) not in told else []
            steps += [Step(source, column, target, other, is_reference=True) for target, other in targets]
    return limit_references(steps)


def _is_held(names: _Names, relations: list[Relation], step: Step) -> bool:
    """Whether what a column is named after has its values. `airline` may be a code of airlines beside their key."""
    place, values = (step.target, step.other_column), relations[step.source].values[step.column]
    return place not in names.sizes or sum(place in names.get(value, ()) for value in values) >= _MIN_HELD_SHARE * len(values)


def split_codes(cell: str) -> list[str]:
    """A cell, or the members of its list; and the codes that it has one after the other."""
    codes = [code for code in _SEPARATOR.split(cell) if code] if len(cell) <= _MAX_CODE_CHARS else []
    return [*split_cell(cell), *(codes if 1 < len(codes) <= _MAX_CODES else ())]


class _Names(dict[str, list[Place]]):
    """For each word or number that only one row of a table has: its places."""

    def __init__(self) -> None:
        self.sizes: dict[Place, int] = {}


def _index_names(index: Index, relations: list[Relation]) -> _Names:
    names = _Names()
    left = _MAX_ROWS
    for number in sorted(range(len(relations)), key=lambda each: relations[each].table.last - relations[each].table.first):
        relation = relations[number]
        most = max(map(len, relation.values), default=0)
        columns = [
            column for column, values in enumerate(relation.values) if len(values) >= max(MIN_VALUES, _MIN_SAMPLED_SHARE * most)
        ]
        left -= relation.table.last - relation.table.first
        if left < 0:
            break
        for column, cells in _list_unique(index, relation, columns):
            names.sizes[number, column] = len(cells)
            for cell in cells:
                names.setdefault(cell, []).append((number, column))
    return names


def _list_unique(index: Index, relation: Relation, columns: list[int]) -> Iterator[tuple[int, set[str]]]:
    """Those of these columns whose cells differ from row to row, but for gaps."""
    held: dict[int, Counter[str]] = {column: Counter() for column in columns if column not in relation.lists}
    for _, cells in read_rows(index, relation.table):
        for column, counts in held.items():
            counts.update(value for value in split_cell(cells[column]) if len(value) <= _MAX_CODE_CHARS)
    unique = [column for column, counts in held.items() if len(counts) >= max(MIN_VALUES, _MIN_UNIQUE_SHARE * counts.total())]
    # Numbers that are not the key of their rows measure something.
    named = [column for column in unique if column == relation.key or not all(map(str.isdigit, held[column]))]
    return ((column, set(held[column])) for column in named[:_MAX_NAMES])


def _find_targets(names: _Names, relations: list[Relation], source: int, column: int) -> list[Place]:
    relation = relations[source]
    values = [value for value in relation.values[column] if len(value) <= _MAX_CODE_CHARS]
    if column == relation.key or len(values) < MIN_VALUES:
        return []
    if all(map(str.isdigit, values)):
        return _find_keys(names, relations, source, column, values)
    whole = _count_places(names, source, values)
    best = _choose(whole, len(values))
    if not best:
        codes = [code for value in values for code in split_codes(value)[-_MAX_CODES:]]
        parted = [code for code in codes if not _SEPARATOR.search(code)]
        best = _choose(_count_places(names, source, parted), len(parted))
    return best


def _choose(times: Counter[Place], total: int) -> list[Place]:
    place, most = max(times.items(), key=lambda pair: (pair[1], -pair[0][0], -pair[0][1]), default=((-1, -1), 0))
    return [place] if total and most >= _MIN_SHARE * total else []


def _count_places(names: _Names, source: int, values: list[str]) -> Counter[Place]:
    return Counter(place for value in values for place in names.get(value, ()) if place[0] != source)


def _find_keys(names: _Names, relations: list[Relation], source: int, column: int, values: list[str]) -> list[Place]:
    """Numbers may be keys of several tables, so those that have all of them, the one with the fewest other keys first."""
    times = _count_places(names, source, values)
    is_key = is_named_as_key(relations[source].columns[column])
    full = [place for place, many in times.items() if many == len(values) and place[1] == relations[place[0]].key]
    if not is_key:
        full = [place for place in full if len(values) >= _MIN_KEY_SHARE * names.sizes[place]]
    elif not full:
        full = _choose(times, len(values))
    return sorted(full, key=names.sizes.__getitem__)[:_MAX_TARGETS]
