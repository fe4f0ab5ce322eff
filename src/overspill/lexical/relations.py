"""Relations: the tables of a JSON document with their names and keys, and the columns that refer to them.

Nothing here depends on the question, so an index reads it once.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from itertools import islice

from msgspec import Struct

from overspill.lexical.cells import read_columns, read_rows
from overspill.lexical.index import Index
from overspill.lexical.outline import Table
from overspill.lexical.render import render
from overspill.lexical.words import read_lexicon, split_subwords, stem

_MEMBERS = re.compile(r"[^\s\[\]{},'\"]+")
_NEVER_KEYS = ("", "None", "True", "False")
_MAX_TABLES = 40
_MAX_KEY_CHARS = 100
_SAMPLED_ROWS = 60
_MIN_RUN_CHARS = (3, 2)
"""How short the name of a table may be that a word begins with, and what is left of the word."""
_MAX_RUN_CHARS = 40
"""A longer word is not split: each of its beginnings would have to be tried."""
MIN_VALUES = 3
"""How many different values a column must have to refer to a table without being named after it."""
_MAX_NAMES = 20
"""Columns beside the key that rows may be referred to by."""
_MAX_KEYS = 10_000
"""A table with more keys is referred to by name only."""


class Relation(Struct, frozen=True):
    """A table with its name, its columns and the number of its key column, or -1."""

    table: Table
    name: tuple[str, ...]
    columns: list[str]
    words: list[tuple[str, ...]]
    """For each column, the words of its own name."""
    key: int
    lists: frozenset[int]
    values: list[frozenset[str]]
    """By column, what it has in a sample of rows."""
    naming: frozenset[int]
    """The columns that have something else in each of these rows."""
    gaps: frozenset[int]
    """The columns that have nothing in some of these rows."""

    @property
    def has_few_keys(self) -> bool:
        return self.key >= 0 and self.table.last - self.table.first <= _MAX_KEYS


class Step(Struct, frozen=True):
    """From the rows of one relation to those of another: cells of `column` equal cells of `other_column`."""

    source: int
    column: int
    target: int
    other_column: int
    is_reference: bool


class OwnReference(Struct, frozen=True):
    """A column whose values are keys of its own table."""

    column: int
    is_number: bool
    has_end: bool
    """Whether it is named as a key, or some row has none: a head has no manager."""


class Relations(Struct, frozen=True):
    """Those of a document, and the steps that the names of their columns tell."""

    all: list[Relation]
    steps: list[Step]


def list_tables(index: Index) -> list[Table]:
    """Those that may refer to each other; none if there are too many."""
    tables = [table for table in index.outline.tables if table.cells == "json"]
    return tables if len(tables) <= _MAX_TABLES else []


def read_relations(index: Index) -> Relations:
    tables = list_tables(index)
    names = [stem_parts(_read_name(index, table)) for table in tables]
    known = frozenset(name[0] for name in names if len(name) == 1)
    relations = [_read_relation(index, table, known) for table in tables]
    return Relations(relations, list(_find_steps(index, relations)))


def _read_name(index: Index, table: Table) -> str:
    outline = index.outline
    label = outline.under[table.first]
    return render(index, outline.label_starts[label], outline.label_ends[label]) if label >= 0 else ""


def _read_relation(index: Index, table: Table, known: frozenset[str]) -> Relation:
    name, columns = stem_parts(_read_name(index, table), known), read_columns(index, table)
    words = [last_parts(column, known) for column in columns]
    rows = [cells for _, cells in islice(read_rows(index, table), _SAMPLED_ROWS)]
    numbers = range(len(columns))
    lists = frozenset(number for number in numbers if any(cells[number][:1] == "[" for cells in rows))
    values = [frozenset(value for cells in rows for value in split_cell(cells[number])) for number in numbers]
    naming = frozenset(number for number in numbers if number not in lists and len(values[number]) == len(rows))
    key = next((number for number in numbers if number in naming and is_named_as_key(columns[number])), -1)
    gaps = frozenset(number for number in numbers if any(cells[number] in _NEVER_KEYS for cells in rows))
    return Relation(table, name, columns, words, key, lists, values, naming, gaps)


def is_named_as_key(column: str) -> bool:
    parts = last_parts(column)
    return bool(parts) and (parts[-1] in read_lexicon("keys") or column.lower().endswith("id"))


def _find_steps(index: Index, relations: list[Relation]) -> Iterator[Step]:
    """Each reference, and its reverse."""
    for source, relation in enumerate(relations):
        for column, values in enumerate(relation.values):
            target = _find_target(relations, source, column)
            if target >= 0 and (target, relations[target].key) != (source, column):
                other = _find_referred_column(index, relations[target], values)
                yield Step(source, column, target, other, is_reference=True)
                yield Step(target, other, source, column, is_reference=False)


def _find_referred_column(index: Index, relation: Relation, values: frozenset[str]) -> int:
    """The key of a relation, or another column that names its rows, if that has all of these values and the key has none."""
    key = relation.key
    if not relation.has_few_keys or not values or values & relation.values[key]:
        return key
    names = index.remember(_list_names, relation.table, (key, *sorted(relation.naming - {key})[:_MAX_NAMES]))
    return key if values & names[key] else next((column for column, held in names.items() if values <= held), key)


def _list_names(index: Index, table: Table, columns: tuple[int, ...]) -> dict[int, set[str]]:
    """What these columns have, in one reading."""
    names: dict[int, set[str]] = {column: set() for column in columns}
    for _, cells in read_rows(index, table):
        for column, held in names.items():
            held.add(cells[column])
    return names


def _find_target(relations: list[Relation], source: int, column: int) -> int:
    """The relation that a column refers to, by their names; -1 for none."""
    words = relations[source].words[column]
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


def _measure_fit(words: tuple[str, ...], relation: Relation) -> int:
    """`country_code` refers to the `code` of a country, `author` and `author_id` to an author, `born_city_id` to a city."""
    key, name = relation.words[relation.key], relation.name
    if not words or not key:
        return 0
    is_key = words[-1] in read_lexicon("keys")
    if name and (words == name or (is_key and words[:-1] == name)):
        return 3
    if words == key and any(word not in read_lexicon("keys") for word in key):
        return 2
    return int(is_key and len(words) > 1 and bool(name) and words[-2] == name[-1])


def list_keys(index: Index, table: Table, column: int) -> frozenset[str]:
    return frozenset(cells[column] for _, cells in read_rows(index, table))


def list_codes(relation: Relation) -> dict[int, frozenset[str]]:
    """The values of the columns that have numbers alone, in a sample of rows: each may be a key of another table."""
    found = enumerate(relation.values)
    return {column: values for column, values in found if len(values) >= MIN_VALUES and all(map(str.isdigit, values))}


def list_own_references(index: Index, table: Table, key: int) -> list[OwnReference]:
    """The columns that refer to rows of the same table: the `manager_id` of an employee, the `components` of an item."""
    rows = [cells for _, cells in read_rows(index, table)]
    keys = {cells[key] for cells in rows}
    found: list[OwnReference] = []
    for column, name in enumerate(read_columns(index, table)):
        values = {value for cells in rows for value in split_cell(cells[column])}
        if column != key and len(values) >= MIN_VALUES and values <= keys:
            has_end = is_named_as_key(name) or any(cells[column] in _NEVER_KEYS for cells in rows)
            found.append(OwnReference(column, all(map(str.isdigit, values)), has_end))
    return found


def split_cell(cell: str) -> list[str]:
    """A cell, or the members of the list that it holds."""
    members = _MEMBERS.findall(cell) if cell[:1] == "[" else [cell]
    return [member for member in members if member not in _NEVER_KEYS and len(member) <= _MAX_KEY_CHARS]


def last_parts(column: str, known: frozenset[str] = frozenset()) -> tuple[str, ...]:
    """The words of a column's own name, and of the object that it is in if it is only called `id`."""
    above, _, name = column.rpartition(".")
    return stem_parts(above.rpartition(".")[2] + "." + name if name.lower() in read_lexicon("keys") else name, known)


@lru_cache(maxsize=4_096)
def stem_parts(name: str, known: frozenset[str] = frozenset()) -> tuple[str, ...]:
    """The stems of its words. One that begins with the name of a table is two: `countrycode` is the code of a country."""
    return tuple(stem(part) for word in split_subwords(name) for part in _split_run(word, known))


def _split_run(word: str, known: frozenset[str]) -> tuple[str, ...]:
    least, rest = _MIN_RUN_CHARS
    if len(word) <= _MAX_RUN_CHARS and any(word.startswith(name[:least]) for name in known) and stem(word) not in known:
        for at in range(len(word) - rest, least - 1, -1):
            if stem(word[:at]) in known:
                return word[:at], word[at:]
    return (word,)
