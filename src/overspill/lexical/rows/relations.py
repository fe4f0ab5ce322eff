"""Relations: the tables of a JSON document with their names and keys, and the references between them.

Nothing here depends on the question, so an index reads it once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from functools import lru_cache
from itertools import islice

from msgspec.structs import replace

from overspill.lexical.index import Index
from overspill.lexical.outline import Table
from overspill.lexical.reply.render import render
from overspill.lexical.rows.cells import read_columns, read_rows
from overspill.lexical.words import read_lexicon, split_subwords, stem
from overspill.tables.json_rows import KEY
from overspill.tables.schema import NEVER_KEYS, Reference, Sketch, find_references, split_cell
from overspill.tables.table import JsonRows
from overspill.text.patterns import compile_pattern, escape

_MAX_TABLES = 40
_MAX_COLUMNS = 300
"""A table with more columns is not a relation: its rows have different fields, or its field names are data."""
_SAMPLED_ROWS = 60
_MIN_KEY_SHARE = 0.95
"""The share of distinct values that a column named like a key must have in the sample. A row may occur twice."""
_MAX_STARTS, _MAX_FOUND = 60, 2_000
"""How many rows one step may start from, and how many it may lead to."""
_MAX_VALUES = 200
"""How many values to search for in one pass. A longer list leads everywhere."""
_MAX_SPOTS = 4_000
"""How many places to look at for each column."""


class Relation(Sketch, frozen=True):
    table: Table


def read_references(index: Index) -> tuple[list[Relation], list[Reference]]:
    """The relations of a document, and the steps between them in both directions, the surest first."""
    relations = [_read_relation(index, table) for table in list_tables(index)]
    shared = Counter(words for relation in relations for words in set(relation.words))
    relations = [relation if relation.key >= 0 else _take_other_key(relation, shared) for relation in relations]

    def read(number: int, columns: list[int]) -> Iterator[list[str]]:
        return ([cells[column] for column in columns] for _, cells in read_rows(index, relations[number].table))

    return relations, [each for step in find_references(relations, read) for each in (step, step.reverse)]


def list_tables(index: Index) -> list[Table]:
    """The tables that may refer to each other; empty if there are too many."""
    tables = [table for table in index.outline.tables if isinstance(table.rows, JsonRows)]
    return [table for table in tables if len(read_columns(index, table)) <= _MAX_COLUMNS] if len(tables) <= _MAX_TABLES else []


def _take_other_key(relation: Relation, shared: Counter[tuple[str, ...]]) -> Relation:
    """Uses as its key the first column with unique values that is named like the table, or that other tables also have: the
    `isbn` of books and loans."""
    naming = sorted(relation.naming)
    key = next((number for number in naming if relation.words[number] == relation.name != ()), -1)
    if key < 0:
        key = next((number for number in naming if shared[relation.words[number]] > 1), -1)
    return replace(relation, key=key)


def _read_relation(index: Index, table: Table) -> Relation:
    outline, columns = index.outline, read_columns(index, table)
    label = outline.under[table.first]
    title = render(index, outline.label_starts[label], outline.label_ends[label]) if label >= 0 else ""
    words = [last_parts(column) for column in columns]
    # Sample the first rows, and others throughout the table, which may be sorted by a reference.
    first = range(table.first, min(table.last, table.first + _SAMPLED_ROWS))
    others = range(first.stop, table.last, max(1, (table.last - first.stop) // _SAMPLED_ROWS))
    rows = [cells for _, cells in read_rows(index, table, [*first, *others])]
    numbers = range(len(columns))
    lists = frozenset(number for number in numbers if any(cells[number][:1] == "[" for cells in rows))
    values = [frozenset(value for cells in rows for value in split_cell(cells[number])) for number in numbers]
    keyed = {number for number in numbers if is_named_as_key(columns[number])}
    least = [(_MIN_KEY_SHARE if number in keyed else 1) * len(rows) for number in numbers]
    naming = frozenset(number for number in numbers if number not in lists and len(values[number]) >= least[number])
    key = next((number for number in numbers if number in naming and number in keyed), -1)
    gaps = frozenset(number for number in numbers if any(cells[number] in NEVER_KEYS for cells in rows))
    rows_in_all = table.last - table.first
    cores = [_strip_key_words(each) for each in words]
    return Relation(
        stem_parts(title), columns, words, cores, values, lists, naming, frozenset(keyed), gaps, key, rows_in_all, table
    )


def _strip_key_words(words: tuple[str, ...]) -> tuple[str, ...]:
    """The words for the thing that a key identifies, without those for the key: `customer_id`, `fk_customer`, `codigoCliente`."""
    named = [place for place, word in enumerate(words) if word not in read_lexicon("keys") and not word.isdigit()]
    return words[named[0] : named[-1] + 1] if named else ()


def is_named_as_key(column: str) -> bool:
    parts = last_parts(column)
    return bool(parts) and (parts[-1] in read_lexicon("keys") or column.lower().endswith("id"))


def last_parts(column: str) -> tuple[str, ...]:
    """The words of a column's name without its path. Adds the name of its object if the column is only called `id`."""
    above, _, name = column.rpartition(".")
    return stem_parts(above.rpartition(".")[2] + "." + name if name.lower() in read_lexicon("keys") else name)


@lru_cache(maxsize=4_096)
def stem_parts(name: str) -> tuple[str, ...]:
    return tuple(map(stem, split_subwords(name)))


def follow(index: Index, relations: list[Relation], step: Reference, rows: list[int]) -> list[tuple[int, int]]:
    """Pairs of these rows and the rows that the step leads to. Does not read other rows."""
    source, target = relations[step.source], relations[step.target]
    starts: dict[str, list[int]] = {}
    for row, cells in read_rows(index, source.table, rows[:_MAX_STARTS]) if rows else ():
        for value in split_cell(cells[step.column]):
            other = value.removeprefix(step.prefix) if step.is_forward else step.prefix + value
            starts.setdefault(other, []).append(row)
    if not 0 < len(starts) <= _MAX_VALUES:
        return []
    held = _find_holding(index, target, step.other_column, starts)
    found = [
        (row, record)
        for record, cells in (read_rows(index, target.table, held) if held else ())
        for value in split_cell(cells[step.other_column])
        for row in starts.get(value, ())
        if row != record
    ]
    return list(dict.fromkeys(found))[:_MAX_FOUND]


def _find_holding(index: Index, relation: Relation, column: int, values: Iterable[str]) -> list[int]:
    """The rows that seem to have one of these values in this column."""
    name = escape(relation.columns[column].rsplit(".", 1)[-1].encode("utf-8", "replace"))
    spelt = b"|".join(escape(value.encode("utf-8", "replace")) for value in sorted(values))
    opening = rb'(?:\[(?:[^{}\[\]]*?\W)??|"?)' if column in relation.lists else rb'"?'
    is_member = relation.columns[column] == KEY
    spelling = rb'"(?:%b)"\s*:\s*\{' % spelt if is_member else rb'[".]%b"\s*:\s*%b(?:%b)(?:\W|$)' % (name, opening, spelt)
    outline, table = index.outline, relation.table
    spots = compile_pattern(spelling).finditer(index.text, outline.starts[table.first], outline.ends[table.last - 1])
    found = dict.fromkeys(outline.record_at(spot.start()) for spot in islice(spots, _MAX_SPOTS))
    return [record for record in found if table.first <= record < table.last]
