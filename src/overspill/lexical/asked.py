"""What a question asks for, among the rows that some rows refer to; and which of two ends it calls the first."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cache
from itertools import combinations

from overspill.lexical.cells import find_column, read_rows
from overspill.lexical.following import find_holding
from overspill.lexical.index import Index
from overspill.lexical.relations import Relation, Step, last_parts
from overspill.lexical.words import read_lexicon, stem
from overspill.tables.schema import split_codes

_MAX_SHOWN = 40
_MAX_BETWEEN = 8
"""How many of the rows that lead to what is asked are shown."""
_MAX_FOLLOWED = 60
_STEPS = 2
_ANY = frozenset(map(stem, ("name", "title", "type", "number", "date")))
"""Parts of the names of columns that every table has."""
_NAMED, _REFERRED, _COLUMN = 4, 4, 1


def find_asked_rows(
    index: Index, relations: list[Relation], steps: list[Step], rows: list[int], known: set[int], words: list[str]
) -> list[int]:
    """What these rows refer to, as far as the question asks for it with these words, and they themselves."""
    worths = [_measure(relation, words) for relation in relations]
    found: dict[int, list[int]] = {}
    current = _group(index, relations, rows)
    leading: dict[int, set[int]] = {}
    for depth in range(_STEPS):
        nearer = max(found, default=0)
        following: dict[int, list[int]] = {}
        for step in steps:
            held = current.get(step.source, [])[:_MAX_FOLLOWED]
            if not held:
                continue
            is_referred = find_column([relations[step.source].columns[step.column]], words) is not None
            worth = max(worths[step.target], _REFERRED * is_referred)
            for start, record in _follow(index, relations, step, held):
                if record in known or record in rows:
                    continue
                if depth == 0 or worth > nearer:
                    found.setdefault(worth, []).append(record)
                    leading.setdefault(worth, set()).add(start)
                following.setdefault(step.target, []).append(record)
        current = following
    most = max(found, default=0)
    if most == 0:
        return list(dict.fromkeys([*rows[:_MAX_BETWEEN], *found.get(0, ())]))[:_MAX_SHOWN]
    order = sorted(rows, key=lambda record: record not in leading[most])
    asked = [record for worth in sorted(found, reverse=True) if worth for record in found[worth]]
    return list(dict.fromkeys([*asked, *order[:_MAX_BETWEEN]]))[:_MAX_SHOWN]


def _measure(relation: Relation, words: list[str]) -> int:
    """How much a question asks for a table: it names it, or its columns."""
    stems = set(map(stem, words))
    is_named = find_column([" ".join(relation.name)], words) is not None
    columns = sum(
        not _ANY.issuperset(parts) and stems.issuperset(parts) for name in relation.columns if (parts := _list_parts(name))
    )
    return _NAMED * is_named + _COLUMN * min(columns, _NAMED - 1)


def _list_parts(column: str) -> set[str]:
    return {part for part in last_parts(column) if part not in read_lexicon("keys")}


def _group(index: Index, relations: list[Relation], rows: Iterable[int]) -> dict[int, list[int]]:
    numbers = {relation.table.first: number for number, relation in enumerate(relations)}
    groups: dict[int, list[int]] = {}
    for row in rows:
        if table := index.outline.table_of(row):
            groups.setdefault(numbers[table.first], []).append(row)
    return groups


def _follow(index: Index, relations: list[Relation], step: Step, rows: list[int]) -> Iterator[tuple[int, int]]:
    """Each of these rows with what it refers to."""
    target = relations[step.target]
    values = {
        record: [step.read_there(code) for code in split_codes(cells[step.column])]
        for record, cells in read_rows(index, relations[step.source].table, rows)
    }
    wanted = {value for codes in values.values() for value in codes}
    held = find_holding(index, target, step.other_column, wanted, with_codes=True) if wanted else []
    named: dict[str, list[int]] = {}
    for record, cells in read_rows(index, target.table, held) if held else ():
        named.setdefault(cells[step.other_column], []).append(record)
    return ((row, record) for row in rows for value in values[row] for record in named.get(value, ()))


@cache
def _read_ends() -> tuple[frozenset[str], frozenset[str]]:
    """The words for the end that something comes from, and for the one that it leads to."""
    return frozenset(map(stem, read_lexicon("from"))), frozenset(map(stem, read_lexicon("to")))


def measure_direction(words: list[str], references: list[tuple[str, int, frozenset[int]]]) -> tuple[int, int]:
    """How many of these references have the end that the question says, less those that have the other; and how many pairs
    of them are in its order."""
    signs = 0
    for column, _, said in references:
        before = stem(words[min(said) - 1]) if said and min(said) > 0 else ""
        parts = set(last_parts(column))
        first, last = _read_ends()
        if before in first or before in last:
            same, other = (first, last) if before in first else (last, first)
            signs += bool(parts & same) - bool(parts & other)
    ordered = sorted((column, min(said)) for _, column, said in references if said)
    return signs, sum(one[1] < two[1] for one, two in combinations(ordered[:_MAX_BETWEEN], 2) if one[0] != two[0])
