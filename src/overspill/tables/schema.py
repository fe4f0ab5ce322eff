"""Finds columns that refer to rows of other tables. Each reference has a score from names and values, and a reason."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain, islice
from typing import TypeAlias

from msgspec import Struct

from overspill.text.regex import regex

SURE, POSSIBLE = 0.5, 0.3
"""Below `SURE`, a reference is used only if the question names the column or the table; below `POSSIBLE`, only the column."""
MIN_VALUES = 3
"""How many different values a column must have to refer to a table without being named after it."""
_MIN_NAMED_SHARE, _MIN_SHARE, _MIN_POSSIBLE_SHARE = 0.5, 0.9, 0.7
"""The share of a column's values that must be in the other column: if it is named after that table, if not, and at the least."""
_MIN_KEY_SHARE = 0.2
"""The share of a table's keys that a column of numbers must contain, because any small number may be a key."""
_MIN_UNIQUE_SHARE, _MIN_DISTINCT_SHARE = 0.9, 0.3
"""For a column that names rows: the share of its cells that must differ, and how many distinct values its sample must have
relative to the column with the most. Some rows may have no value."""
MAX_KEYS, _MAX_ROWS = 10_000, 30_000
"""How many rows of one table, and of all tables, to compare by value. Larger tables are referred to by name only."""
_MAX_NAMING = 20
"""How many columns of a table to consider as keys."""
_MAX_REFERENCES, _MAX_ALIKE, _MAX_TARGETS = 400, 60, 2
"""How many references to keep in total, from one table to another, and for a column of numbers that fits several tables."""
_MIN_NAME_CHARS, _MAX_ENDING_CHARS = 3, 2
"""The shortest name of a table, and how much longer its plural may be."""
_MEMBERS = regex(r"[^\s\[\]{},'\"]+")
_WORD = regex(r"[^\W_]+")
NEVER_KEYS = ("", "None", "True", "False")
_MAX_KEY_CHARS = 100

ReadColumns: TypeAlias = Callable[[int, list[int]], Iterable[list[str]]]
"""Reads the cells of all rows of a table, but only of these columns."""
Words: TypeAlias = tuple[str, ...]
Place: TypeAlias = tuple[int, int]
"""The number of a table and the number of one of its columns."""


class Sketch(Struct, frozen=True):
    """A summary of a table, from a sample of its rows."""

    name: Words
    columns: list[str]
    words: list[Words]
    """The words of each column's name, without its path."""
    cores: list[Words]
    """The words of each column's name without those common in keys: `customer_id`, `fk_customer`, `customer2`."""
    values: list[frozenset[str]]
    lists: frozenset[int]
    """The columns whose cells are lists."""
    naming: frozenset[int]
    """The columns whose values are unique."""
    keyed: frozenset[int]
    """The columns named like keys."""
    gaps: frozenset[int]
    """The columns that are empty in some rows."""
    key: int
    rows: int


class Reference(Struct, frozen=True):
    """Cells of `column` equal cells of `other_column`, after `prefix`, as in `urn:uuid:…` and `Patient/…`. Works both ways."""

    source: int
    column: int
    target: int
    other_column: int
    confidence: float = 1.0
    reason: str = ""
    prefix: str = ""
    is_forward: bool = True

    @property
    def reverse(self) -> Reference:
        there, back = (self.source, self.column), (self.target, self.other_column)
        return Reference(*back, *there, self.confidence, self.reason, self.prefix, not self.is_forward)


def find_references(tables: Sequence[Sketch], read: ReadColumns) -> list[Reference]:
    """All references, the likeliest first."""
    holders = _Holders(tables, read)
    scored = (
        _score(tables, holders, number, column) for number, table in enumerate(tables) for column in range(len(table.columns))
    )
    times, kept = Counter[Place](), list[Reference]()
    for each in sorted(chain.from_iterable(scored), key=lambda each: -each.confidence):
        times[each.source, each.target] += 1
        if times[each.source, each.target] <= _MAX_ALIKE:
            kept.append(each)
    return kept[:_MAX_REFERENCES]


def split_cell(cell: str) -> list[str]:
    """A cell, or the members of the list in it."""
    members = _MEMBERS.findall(cell) if cell[:1] == "[" else [cell]
    return [member for member in members if member not in NEVER_KEYS and len(member) <= _MAX_KEY_CHARS]


class _Holders:
    """Maps values that may be references to the key columns that contain them."""

    def __init__(self, tables: Sequence[Sketch], read: ReadColumns) -> None:
        self.by_value: dict[str, list[Place]] = {}
        self.sizes: dict[Place, int] = {}
        wanted = {part for table in tables for values in table.values for value in values for part in _list_parts(value)}
        shapes = [[frozenset(map(_find_shape, values)) for values in table.values] for table in tables]
        referring = [
            (number, column, frozenset(map(_find_shape, chain.from_iterable(map(_list_parts, table.values[column])))))
            for number, table in enumerate(tables)
            for column in range(len(table.columns))
            if not _names_itself(table, column)
        ]
        left = _MAX_ROWS
        for number in sorted(range(len(tables)), key=lambda number: tables[number].rows):
            table = tables[number]
            left -= table.rows
            if table.rows > MAX_KEYS or left < 0:
                continue
            most = max(map(len, table.values), default=0)
            likely = [
                column for column, values in enumerate(table.values) if len(values) >= max(MIN_VALUES, _MIN_DISTINCT_SHARE * most)
            ]
            naming = dict.fromkeys(column for column in (table.key, *likely) if column >= 0 and column not in table.lists)
            columns = [
                column
                for column in islice(naming, _MAX_NAMING)
                if any(place[:2] != (number, column) and place[2] & shapes[number][column] for place in referring)
            ]
            self.sizes.update(dict.fromkeys(((number, column) for column in naming), 0))
            rows = read(number, columns) if columns else ()
            for column, held in zip(columns, zip(*rows, strict=True), strict=False):
                counts = Counter(held)
                for missing in NEVER_KEYS:
                    del counts[missing]
                del self.sizes[number, column]
                if len(counts) >= _MIN_UNIQUE_SHARE * counts.total() > 0:
                    self.sizes[number, column] = len(counts)
                    for value in counts.keys() & wanted:
                        self.by_value.setdefault(value, []).append((number, column))

    def count(self, values: Iterable[str], *, apart_from: Place) -> Counter[Place]:
        """How many of these values each column has."""
        return Counter(place for value in values for place in self.by_value.get(value, ()) if place != apart_from)


def _find_shape(value: str) -> tuple[bool, frozenset[str]]:
    """What a value has in common with others like it: whether it is a number, and the signs in it."""
    return value.isdigit(), frozenset(_WORD.sub("", value))


def _names_itself(table: Sketch, column: int) -> bool:
    """Whether it is its own table's key, which refers to nothing, or empty."""
    return not table.values[column] or (column == table.key and table.cores[column] in ((), table.name))


def _list_parts(value: str) -> Iterator[str]:
    yield value
    if (at := max(map(value.rfind, ":/#"))) >= 0:
        yield value[at + 1 :]


def _score(tables: Sequence[Sketch], holders: _Holders, source: int, column: int) -> list[Reference]:
    """The references of a column. More than one only if it may mean any of them."""
    table, values = tables[source], tables[source].values[column]
    if _names_itself(table, column):
        return []
    times = holders.count(values, apart_from=(source, column))

    def make(places: Iterable[Place], confidence: float, reason: str, prefix: str = "") -> list[Reference]:
        return [Reference(source, column, *place, confidence, reason, prefix) for place in places]

    if named := list(_find_named(tables, holders, source, column, times)):
        confidence, share, place = max(named, key=lambda each: (each[0], each[1], -each[2][0]))
        return make([place], confidence, f"it is named after it, and {share:.0%} of its values are there") if confidence else []
    if len(values) < MIN_VALUES:
        return []
    if all(map(str.isdigit, values)):
        found = _find_keys(tables, holders, source, column, times)
        return [each for place, confidence in found for each in make([place], confidence, "all of its numbers are there")]
    # The prefix of nearly all values, up to the last sign that may end the name of a table or of a scheme.
    begins = Counter(value[: max(map(value.rfind, ":/#")) + 1] for value in values)
    prefix, many = max(begins.items(), key=lambda pair: (pair[1], pair[0]))
    prefix = prefix if many >= _MIN_SHARE * len(values) else ""
    bare = holders.count((value.removeprefix(prefix) for value in values), apart_from=(source, column))
    place, share = _find_most(times, len(values))
    if share >= _MIN_SHARE:
        return make([place], 0.8, f"{share:.0%} of its words are there")
    if prefix and (most := _find_most(bare, len(values)))[1] >= _MIN_SHARE:
        return make(most[:1], 0.8, f"its words are there, without {prefix}", prefix)
    if several := _find_several(holders, source, values):
        return make(several, 0.6, "each of its words is there, or in a table like it")
    return make([place], 0.4, f"{share:.0%} of its words are there") if share >= _MIN_POSSIBLE_SHARE else []


def _find_named(
    tables: Sequence[Sketch], holders: _Holders, source: int, column: int, times: Counter[Place]
) -> Iterator[tuple[float, float, Place]]:
    """The tables that a column may be named after, with a confidence, the share of its values there, and the place."""
    table, values = tables[source], tables[source].values[column]
    for number, other in enumerate(tables):
        fit = _measure_name(table.words[column], table.cores[column], other)
        if not fit or other.key < 0 or (number, other.key) == (source, column):
            continue
        key = (number, other.key)
        best = max((place for place in times if place[0] == number), key=lambda place: (times[place], place == key), default=key)
        share = times[best] / len(values) if key in holders.sizes else _MIN_NAMED_SHARE
        least = _MIN_SHARE if fit < 2 or column == table.key else _MIN_NAMED_SHARE if fit < 3 else 0.0
        if share >= least and share:
            yield 0.5 + 0.1 * fit + 0.1 * (share >= _MIN_NAMED_SHARE), share, best
        elif fit >= 2:
            yield 0.0, share, best


def _measure_name(words: Words, core: Words, table: Sketch) -> int:
    """How well a column's name fits a table: `country_code` fits `code` of countries, and `born_city_id` fits cities."""
    name = table.name
    if not words or table.key < 0:
        return 0
    if name and (words == name or are_same_name(core, name)):
        return 4
    if words == table.words[table.key] and table.cores[table.key]:
        return 3
    if not core or not name or not are_same_name(core[-1:], name[-1:]):
        return 0
    return 2 if len(core) < len(words) else 1


def are_same_name(one: Words, other: Words) -> bool:
    """Whether these are the same words, with the last one in singular or plural in any language: Kunde, Kunden."""
    if one == other or not one or one[:-1] != other[:-1]:
        return one == other
    shorter, longer = sorted((one[-1], other[-1]), key=len)
    return len(shorter) >= _MIN_NAME_CHARS and longer.startswith(shorter) and len(longer) - len(shorter) <= _MAX_ENDING_CHARS


def _find_keys(
    tables: Sequence[Sketch], holders: _Holders, source: int, column: int, times: Counter[Place]
) -> list[tuple[Place, float]]:
    """The key columns that have all of a column's numbers, which may be several. The one with the fewest other keys is first."""
    table, many = tables[source], len(tables[source].values[column])
    is_called = column in table.keyed or column in table.lists
    if column == table.key or many < MIN_VALUES:
        return []
    own = (source, table.key)
    full = [place for place, held in times.items() if held == many and place[1] == tables[place[0]].key and place != own]
    likely = full if is_called else [place for place in full if many >= _MIN_KEY_SHARE * holders.sizes[place]]
    confidence = 0.6 if is_called and len(full) == 1 else POSSIBLE if likely else 0.2
    found = [(place, confidence) for place in sorted(likely or full, key=holders.sizes.__getitem__)[:_MAX_TARGETS]]
    return [*found, (own, POSSIBLE)] if times[own] == many else found


def _find_most(times: Counter[Place], total: int) -> tuple[Place, float]:
    """The column with the most of these values, and their share."""
    place, most = max(times.items(), key=lambda pair: (pair[1], -pair[0][0], -pair[0][1]), default=((-1, -1), 0))
    return place, most / total


def _find_several(holders: _Holders, source: int, values: frozenset[str]) -> list[Place]:
    """The columns of other tables that together have these values, each value only once: an owner is a person or a firm."""
    places = [[place for place in holders.by_value.get(value, ()) if place[0] != source] for value in values]
    sure = [held[0] for held in places if len(held) == 1]
    return sorted(set(sure)) if len(sure) >= _MIN_SHARE * len(values) else []
