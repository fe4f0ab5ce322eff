"""References: which columns of the tables of a JSON document refer to other tables, by their names and by what they hold.

Nothing here depends on the question, so an index reads it once.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import islice

from msgspec import Struct

from overspill.lexical.edges import find_linked_columns
from overspill.lexical.index import Index
from overspill.lexical.relations import MIN_VALUES, Relation, Step, list_names, read_relations
from overspill.lexical.words import read_lexicon, read_related

_LETTER = re.compile(r"[^\W\d_]")
_MAX_NAMES = 20
"""Columns beside the key that rows may be referred to by."""
_MIN_SHARE = 0.5
"""A column named after a table has at least this share of its values there, or else another table of that name is meant."""
_NAMES = (("name",), ("titl",))
_FIT_BY_LAST_WORD = 1
"""`home_team` may refer to a team, and `employer_id` to a company, if they have keys of those."""
_MIN_NAME_CHARS, _MAX_ENDING_CHARS = 3, 2
"""How long the name of a table must be, and how much longer its plural may be."""
_MIN_UNNAMED_SHARE = 0.9
"""The same for a column that is not named after the table that it refers to."""
_MAX_REFERENCES, _MAX_ALIKE = 400, 60
"""How many references a document may have, and how many columns of one table may refer to the same other one. Each is followed
from several rows of a question."""


class References(Struct, frozen=True):
    """The relations of a document, and the steps between them that names and values tell."""

    relations: list[Relation]
    steps: list[Step]


class _Fit(Struct, frozen=True, order=True):
    """How well a column fits a relation: by its values, by its name, and which column of the relation it is compared with."""

    is_held: bool
    name: int
    share: float
    nearness: int
    """Of equal ones, the relation that comes first."""
    column: int


def read_references(index: Index) -> References:
    relations = index.remember(read_relations)
    steps = limit_references(_find_steps(index, relations))
    return References(relations, [each for step in steps for each in (step, _reverse(step))])


def limit_references(steps: Iterable[Step]) -> list[Step]:
    """The first of them, as many as a question can follow."""
    return list(islice(_limit_alike(steps), _MAX_REFERENCES))


def _limit_alike(steps: Iterable[Step]) -> Iterator[Step]:
    times: Counter[tuple[int, int]] = Counter()
    for step in steps:
        times[step.source, step.target] += 1
        if times[step.source, step.target] <= _MAX_ALIKE:
            yield step


def _reverse(step: Step) -> Step:
    return Step(step.target, step.other_column, step.source, step.column, is_reference=False, prefix=step.prefix)


def _find_steps(index: Index, relations: list[Relation]) -> Iterator[Step]:
    linked = find_linked_columns(index, relations)
    for source, relation in enumerate(relations):
        for column in range(len(relation.columns)):
            if (source, column) in linked:
                yield from (Step(source, column, *place, is_reference=True) for place in linked[source, column])
                continue
            target, other = _find_target(index, relations, source, column)
            if target >= 0 and (target, other) != (source, column):
                yield Step(source, column, target, other, is_reference=True)
            elif target < 0 and (prefix := _find_prefix(relation.values[column])):
                bare = frozenset(value.removeprefix(prefix) for value in relation.values[column])
                target, other = _find_holder(index, relations, source, bare)
                if target >= 0:
                    yield Step(source, column, target, other, is_reference=True, prefix=prefix)
            elif target < 0:
                for place in _find_several_holders(index, relations, source, relation.values[column]):
                    yield Step(source, column, *place, is_reference=True)


def _find_target(index: Index, relations: list[Relation], source: int, column: int) -> tuple[int, int]:
    """The relation that a column refers to, and which of its columns; -1 for none."""
    words, values = relations[source].words[column], relations[source].values[column]
    core = _strip_key_words(words)
    if column == relations[source].key and (core in _NAMES or core == relations[source].name != ()):
        return -1, -1  # it is the key of its own table
    fits: list[_Fit] = []
    for number, relation in enumerate(relations):
        name = _measure_fit(words, core, relation) if relation.key >= 0 else 0
        if name and (number, relation.key) != (source, column):
            other, share = _find_referred_column(index, relation, values)
            if name > _FIT_BY_LAST_WORD or share >= _MIN_UNNAMED_SHARE:
                fits.append(_Fit(share >= _MIN_SHARE, name, share, -number, other))
    if fits:
        best = max(fits)
        # Its own key has the name of another table's key: only if all of its rows are there too.
        if best.share and (column != relations[source].key or best.share >= _MIN_UNNAMED_SHARE):
            return -best.nearness, best.column
        return -1, -1
    if (found := _find_holder(index, relations, source, values))[0] >= 0:
        return found
    # Another name, but there is nothing else that it could mean.
    others = [number for number, relation in enumerate(relations) if relation.key >= 0 and number != source]
    is_reference = column in relations[source].lists or (
        words and words[-1] in read_lexicon("keys") and column != relations[source].key
    )
    if len(others) != 1 or not is_reference:
        return -1, -1
    other, share = _find_referred_column(index, relations[others[0]], values)
    return (others[0], other) if share else (-1, -1)


def _find_referred_column(index: Index, relation: Relation, values: frozenset[str]) -> tuple[int, float]:
    """The column of a relation that has most of these values, and their share. The key, if no other has more."""
    key = relation.key
    if not relation.has_few_keys or not values:
        return key, _MIN_SHARE
    names = index.remember(list_names, relation.table, (key, *sorted(relation.naming - {key})[:_MAX_NAMES]))
    held = {column: len(values & those) for column, those in names.items()}
    best = max(held, key=lambda column: (held[column], column == key))
    return best, held[best] / len(values)


def _find_holder(index: Index, relations: list[Relation], source: int, values: frozenset[str]) -> tuple[int, int]:
    """The column of another relation that names its rows and has these words. Numbers may be the keys of anything."""
    if len(values) < MIN_VALUES or not all(map(_LETTER.search, values)):
        return -1, -1
    named = index.remember(_index_names)
    times = Counter(place for value in values for place in named.get(value, ()) if place[0] != source)
    place, most = max(times.items(), key=lambda pair: (pair[1], -pair[0][0], -pair[0][1]), default=((-1, -1), 0))
    return place if most >= _MIN_UNNAMED_SHARE * len(values) else (-1, -1)


def _find_several_holders(index: Index, relations: list[Relation], source: int, values: frozenset[str]) -> list[tuple[int, int]]:
    """The keys of other relations that have these words together, each of them in one alone: an owner is a person or a firm."""
    if len(values) < MIN_VALUES or not all(map(_LETTER.search, values)):
        return []
    named = index.remember(_index_names)
    keys = {(number, relation.key) for number, relation in enumerate(relations) if number != source}
    places = [keys.intersection(named.get(value, ())) for value in values]
    sure = [place for held in places if len(held) == 1 for place in held]
    return sorted(set(sure)) if len(sure) >= _MIN_UNNAMED_SHARE * len(values) else []


def _find_prefix(values: frozenset[str]) -> str:
    """What nearly all of these begin with, up to the last sign that may end the name of a table or of a scheme."""
    begins = Counter(value[: max(map(value.rfind, ":/#")) + 1] for value in values)
    prefix, many = max(begins.items(), key=lambda pair: (pair[1], pair[0]), default=("", 0))
    return prefix if len(values) >= MIN_VALUES and many >= _MIN_UNNAMED_SHARE * len(values) else ""


def _index_names(index: Index) -> dict[str, list[tuple[int, int]]]:
    """For each word that names a row: the numbers of its relation and column."""
    places: dict[str, list[tuple[int, int]]] = {}
    for number, relation in enumerate(index.remember(read_relations)):
        columns = tuple(sorted(relation.naming)[:_MAX_NAMES]) if relation.has_few_rows else ()
        for column, names in index.remember(list_names, relation.table, columns).items() if columns else ():
            for name in filter(_LETTER.search, names):
                places.setdefault(name, []).append((number, column))
    return places


def _measure_fit(words: tuple[str, ...], core: tuple[str, ...], relation: Relation) -> int:
    """`country_code` refers to the `code` of a country, `author` and `fk_author` to an author, `born_city_id` to a city."""
    key, name = relation.words[relation.key], relation.name
    if not words or not key:
        return 0
    if name and (words == name or _are_same_name(core, name)):
        return 4
    if words == key and any(word not in read_lexicon("keys") for word in key):
        return 3
    if not core or not name:
        return 0
    if not _are_same_name(core[-1:], name[-1:]):
        return _FIT_BY_LAST_WORD if name[-1] in read_related().get(core[-1], ()) else 0
    return 2 if len(core) < len(words) else _FIT_BY_LAST_WORD


def _strip_key_words(words: tuple[str, ...]) -> tuple[str, ...]:
    """What a key is the key of, whichever comes first: `customer_id`, `fk_customer`, `codigoCliente`, `customer2`."""
    named = [place for place, word in enumerate(words) if word not in read_lexicon("keys") and not word.isdigit()]
    return words[named[0] : named[-1] + 1] if named else ()


def _are_same_name(one: tuple[str, ...], other: tuple[str, ...]) -> bool:
    """Whether these are the same words, the last one in the singular or plural of any language: Kunde, Kunden."""
    if one == other or not one or one[:-1] != other[:-1]:
        return one == other
    shorter, longer = sorted((one[-1], other[-1]), key=len)
    return len(shorter) >= _MIN_NAME_CHARS and longer.startswith(shorter) and len(longer) - len(shorter) <= _MAX_ENDING_CHARS
