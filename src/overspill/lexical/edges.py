"""Edges: the tables of an exported graph whose rows are nothing but links between rows of other tables, `source` and `target`.

A number may be the key of anything, so both columns must tell by their values what they link: each names a row of one table,
and of no other.
"""

from __future__ import annotations

from itertools import chain

from overspill.lexical.cells import read_rows
from overspill.lexical.index import Index
from overspill.lexical.relations import MAX_LINK_COLUMNS, Relation, is_named_as_key, list_codes

_MIN_ENDS = 2
_SEVERAL = (-1, -1)

Place = tuple[int, int]
"""The number of a relation, and of one of its columns."""
_Ends = dict[int, dict[int, frozenset[str]]]
"""By relation and column, the values in a sample of rows."""


def find_linked_columns(index: Index, relations: list[Relation]) -> dict[Place, list[Place]]:
    """The columns of such tables, and the columns whose values they have: a link may lead from things of several sorts."""
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
