"""Edges: columns that link rows of other tables by numbers, in pairs such as `source` and `target`.

A number may be the key of anything. So the rows of a table without its own key must be nothing but links, and each value must
name a row of one table alone; or the two columns are called like the ends of a way, and only one table has all of their values.
"""

from __future__ import annotations

from functools import cache
from itertools import chain

from overspill.lexical.cells import read_rows
from overspill.lexical.index import Index
from overspill.lexical.relations import MAX_LINK_COLUMNS, Relation, is_named_as_key, last_parts, list_codes, list_keys
from overspill.lexical.words import read_lexicon, stem

_MIN_ENDS = 2
_MAX_ENDS = 8
_SEVERAL = (-1, -1)

Place = tuple[int, int]
"""The number of a relation, and of one of its columns."""
_Ends = dict[int, dict[int, frozenset[str]]]
"""By relation and column, the values in a sample of rows."""


def find_linked_columns(index: Index, relations: list[Relation]) -> dict[Place, list[Place]]:
    """The columns that are ends, and the columns whose values they have."""
    return {**_find_ends_of_ways(index, relations), **_find_ends_of_links(index, relations)}


@cache
def read_ends() -> tuple[frozenset[str], frozenset[str]]:
    """The words for the end that something comes from, and for the one that it leads to."""
    return frozenset(map(stem, read_lexicon("from"))), frozenset(map(stem, read_lexicon("to")))


def _find_ends_of_ways(index: Index, relations: list[Relation]) -> dict[Place, list[Place]]:
    """The `from` and the `to` of a transfer, if there is just one table that both may refer to."""
    found: dict[Place, list[Place]] = {}
    keyed = [number for number, relation in enumerate(relations) if relation.has_few_keys]
    for number, relation in enumerate(relations):
        codes = list_codes(relation)
        sides = [
            [column for column in codes if not side.isdisjoint(last_parts(relation.columns[column]))] for side in read_ends()
        ]
        both = list(chain.from_iterable(sides)) if all(sides) else []
        for column in both[:_MAX_ENDS]:
            goals = [goal for goal in keyed if goal != number and codes[column] <= _list_keys(index, relations[goal])]
            if len(goals) == 1:
                found[number, column] = [(goals[0], relations[goals[0]].key)]
    return found


def _list_keys(index: Index, relation: Relation) -> frozenset[str]:
    return index.remember(list_keys, relation.table, relation.key)


def _find_ends_of_links(index: Index, relations: list[Relation]) -> dict[Place, list[Place]]:
    """Both ends of each link: it may lead from things of several sorts."""
    ends: _Ends = {number: columns for number, relation in enumerate(relations) if (columns := _list_ends(relation))}
    owners = _index_owners(index, relations, ends) if ends else {}
    found: dict[Place, list[Place]] = {}
    for number, columns in ends.items():
        owned = {column: {owners.get(value, _SEVERAL) for value in values} for column, values in columns.items()}
        sure = {column: sorted(places) for column, places in owned.items() if _SEVERAL not in places}
        if len(sure) >= _MIN_ENDS:
            found.update(((number, column), places) for column, places in sure.items())
    return found


def _list_ends(relation: Relation) -> dict[int, frozenset[str]]:
    """The columns of a narrow table that may be the ends of links. None if the table has its own key, or only one such column."""
    has_key = relation.key >= 0 and is_named_as_key(relation.columns[relation.key])
    columns = list_codes(relation) if len(relation.columns) <= MAX_LINK_COLUMNS and not has_key else {}
    return columns if len(columns) >= _MIN_ENDS else {}


def _index_owners(index: Index, relations: list[Relation], ends: _Ends) -> dict[str, Place]:
    """For each value that may be linked, the one column that names rows and has it."""
    wanted = frozenset(chain.from_iterable(values for columns in ends.values() for values in columns.values()))
    owners: dict[str, Place] = {}
    for number, relation in enumerate(relations):
        columns = list_codes(relation).keys() & relation.naming if number not in ends and relation.has_few_rows else ()
        for _, cells in read_rows(index, relation.table) if columns else ():
            for column in columns:
                if (value := cells[column]) in wanted:
                    owners[value] = _SEVERAL if value in owners else (number, column)
    return owners
