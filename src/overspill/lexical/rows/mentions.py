"""What of a question each row says: the words that are all of one of its cells, and so name it or something that it has."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from heapq import nlargest

from msgspec import Struct

from overspill.lexical.index import Index
from overspill.lexical.query import Query
from overspill.lexical.rank import Ranking
from overspill.lexical.rows.cells import find_column, is_same_word, read_rows
from overspill.lexical.rows.ordinals import find_ordinals, is_rank
from overspill.lexical.rows.relations import Relation, is_named_as_key
from overspill.lexical.weights import WEIGHTS
from overspill.lexical.words import read_lexicon, stem

_WORD = re.compile(r"[^\W_]+")
_LIST_MEMBER = re.compile(r"'([^']*)'")
_DAY = re.compile(r"(\d{4}-\d\d-\d\d)[T ]\d")
_KEY = re.compile(rb"[^\"\\]{0,60}\"\s*:")
_MAX_ANCHORS, _ANCHOR_SHARES = 6, (0.8, 0.95)
"""A question may start from the rows that contain about as much of it as the best one, unless there are too many."""
_MAX_WORDS, _MAX_NAME_WORDS = 200, 40
_MAX_CELL_CHARS = 200
_MAX_CANDIDATES = 400
"""Rows of a table that are read, those with most words of the question."""
_MAX_NAMED = 6
"""What more rows have is not a name, but a property: it tells nothing about what refers to them."""
_UNKNOWN_WORTH, _STOP_WORTH = 0.4, 0.01
_MIN_TELLING_DIGITS = 4
"""A longer number means one thing only, such as a year, whatever its column is called."""
_MAX_FORM_CHARS, _MIN_FORM_CHARS = 40, 4
_MAX_FORM_WORDS = 3

Place = tuple[int, int]
Words = frozenset[int]
"""Places of words in the question."""


class Saying(Struct, frozen=True):
    """The words of the question that a row says."""

    said: Words
    told: Words
    """Without numbers in columns that the question does not name."""
    is_naming: bool
    """Whether few rows of its table say one of these, so that it is a name and not a property."""
    is_only: bool
    """Whether one of them is in a column that has something else in each row."""


class Question:
    """The words of a question, what each is worth, and where each run of them is."""

    def __init__(self, query: Query, ranking: Ranking) -> None:
        self.words = [word.casefold() for word in _WORD.findall(query.text)[:_MAX_WORDS]]
        by_key = {term.key: ranking.worth[number] for number, term in enumerate(ranking.terms) if term.role != "wording"}
        most, stop = max(by_key.values(), default=0.0), read_lexicon("stop")
        self.worth = [
            by_key.get(word, by_key.get(stem(word), _STOP_WORTH if word in stop else _UNKNOWN_WORTH * most))
            for word in self.words
        ]
        self._stems = list(map(stem, self.words))
        self._ordinals = find_ordinals(self.words)
        for place in (place for places in self._ordinals.values() for place in places):
            self.worth[place] = max(self.worth[place], _UNKNOWN_WORTH * most)
        self._asked: dict[str, bool] = {}
        self._forms: dict[str, Words] = {}
        self._places: dict[str, list[Place]] = {}
        for start in range(len(self.words)):
            for end in range(start + 1, min(len(self.words), start + _MAX_NAME_WORDS) + 1):
                self._places.setdefault(" ".join(self.words[start:end]), []).append((start, end))

    def find(self, cell: str) -> list[Place]:
        """Where the question says a cell, a member of its list, the day of a time, or a name the other way round."""
        if not 0 < len(cell) <= _MAX_CELL_CHARS:
            return []
        if cell[0] == "[":
            return [place for member in _LIST_MEMBER.findall(cell) for place in self._find_words(member)]
        return self._find_words(cell) or self._find_words(_turn(cell))

    def _find_words(self, text: str) -> list[Place]:
        return self._places.get(" ".join(_WORD.findall(text.casefold())), [])

    def find_forms(self, column: str, cell: str) -> Words:
        """The words that say all of a short cell in other forms or another order: "who chairs" for `Chairman`.

        Many cells have some word of a question by chance, so this is only for rows that refer to what it names.
        """
        if cell.isdigit():
            return self._ordinals.get(cell, frozenset()) if self._ordinals and is_rank(column) else frozenset()
        if cell not in self._forms:
            self._forms[cell] = self._find_forms(cell) if len(cell) <= _MAX_FORM_CHARS else frozenset()
        return self._forms[cell]

    def _find_forms(self, cell: str) -> Words:
        found: set[int] = set()
        words = _WORD.findall(cell.casefold())
        for word in words[: _MAX_FORM_WORDS + 1]:
            same = [place for place, each in enumerate(self._stems) if self._is_form(stem(word), each)]
            if not same:
                return frozenset()
            found.update(same)
        return frozenset(found) if len(words) <= _MAX_FORM_WORDS else frozenset()

    def _is_form(self, one: str, other: str) -> bool:
        return min(len(one), len(other)) >= _MIN_FORM_CHARS and is_same_word(one, other)

    def means(self, number: str, column: str) -> bool:
        """Whether a number of the question may be what a row has in a column."""
        return self.is_asked(column) or (len(number) >= _MIN_TELLING_DIGITS and not is_named_as_key(column))

    def is_told(self, place: Place, column: str) -> bool:
        """Whether this is no number, or the question names its column."""
        return place[1] - place[0] > 1 or not self.words[place[0]].isdigit() or self.is_asked(column)

    def is_asked(self, column: str) -> bool:
        if column not in self._asked:
            self._asked[column] = find_column([column.rpartition(".")[2]], self.words) is not None
        return self._asked[column]

    def measure(self, words: Words) -> float:
        return sum(self.worth[word] for word in words)

    def list_others(self, words: Words) -> list[str]:
        """The words that are not among these."""
        return [word for place, word in enumerate(self.words) if place not in words]


def _turn(cell: str) -> str:
    """Other words for a cell: its day if it is a time, and Ada Lovelace for "Lovelace, Ada"."""
    last, comma, first = cell.partition(", ")
    return day[1] if (day := _DAY.match(cell)) else f"{first} {last}" if comma else ""


def find_sayings(index: Index, question: Question, ranking: Ranking, relations: list[Relation]) -> dict[int, Saying]:
    """By row. A name inside a longer one is none: "Mill Lane" in "Old Mill Lane"."""
    kinds = {name[0] for relation in relations for name in (relation.name, *relation.words) if len(name) == 1}
    found: dict[int, dict[Place, int]] = {}
    for relation, records in _list_candidates(index, ranking, relations):
        for record, cells in read_rows(index, relation.table, records):
            if places := _find_places(relation, cells, question, kinds):
                found[record] = places
    longest = _keep_longest({place for places in found.values() for place in places})
    tables = {record: index.outline.table_of(record) for record in found}
    times = Counter(
        (table.first, column, place)
        for record, places in found.items()
        if (table := tables[record])
        for place, column in places.items()
    )
    by_table = {relation.table.first: relation for relation in relations}
    sayings: dict[int, Saying] = {}
    for record, places in found.items():
        table, whole = tables[record], _unite(places)
        kept = [place for place in places if place in longest or _has_around(place, longest, whole)]
        if table and kept:
            relation = by_table[table.first]
            told = [place for place in kept if question.is_told(place, relation.columns[places[place]])]
            is_naming = any(times[table.first, places[place], place] <= _MAX_NAMED for place in kept)
            is_only = any(places[place] in relation.naming for place in kept)
            sayings[record] = Saying(_unite(kept), _unite(told), is_naming, is_only)
    return sayings


def _list_candidates(index: Index, ranking: Ranking, relations: list[Relation]) -> Iterator[tuple[Relation, list[int]]]:
    held: dict[int, dict[int, float]] = {relation.table.first: {} for relation in relations}
    for record, spots in ranking.hits.items():
        table = index.outline.table_of(record)
        if table and table.first in held:
            held[table.first][record] = sum({term: ranking.worth[term] for *_, term in spots}.values())
    for relation in relations:
        worths = held[relation.table.first]
        if worths:
            yield relation, nlargest(_MAX_CANDIDATES, worths, key=worths.__getitem__)


def _find_places(relation: Relation, cells: list[str], question: Question, kinds: set[str]) -> dict[Place, int]:
    """Where the question says a cell, and the number of its column.

    The name of a table or column alone says what is asked for, and a short number may be anything unless its column is named.
    """
    places: dict[Place, int] = {}
    for column, cell in enumerate(cells):
        for start, end in question.find(cell):
            if cell.isdigit() and not question.means(cell, relation.columns[column]):
                continue
            if (start, end) not in places and (end - start > 1 or stem(question.words[start]) not in kinds):
                places[start, end] = column
    return places


def _keep_longest(places: set[Place]) -> set[Place]:
    longest: set[Place] = set()
    furthest = -1
    for start, end in sorted(places, key=lambda place: (place[0], -place[1])):
        if end > furthest:
            longest.add((start, end))
            furthest = end
    return longest


def _has_around(place: Place, longest: set[Place], words: Words) -> bool:
    """Whether a row says all of the name around this place, if in several cells: a given name and a family name."""
    around = (long for long in longest if long[0] <= place[0] and place[1] <= long[1])
    return all(words.issuperset(range(*long)) for long in around)


def _unite(places: list[Place] | dict[Place, int]) -> Words:
    return frozenset(word for place in places for word in range(*place))


def find_anchors(index: Index, ranking: Ranking, keys: set[str] | None = None) -> list[int]:
    """The rows that contain most of the question, or of these terms of it, not counting the names of columns."""
    counted = {number for number, term in enumerate(ranking.terms) if keys is None or term.key in keys}
    held: dict[int, float] = {}
    for record, spots in ranking.hits.items():
        shares: dict[int, float] = {}
        for start, end, term in spots:
            if term in counted and not _KEY.match(index.text, end):
                is_cell = index.text[start - 1 : start] == b'"' == index.text[end : end + 1]
                shares[term] = max(shares.get(term, 0.0), WEIGHTS.anchor_cell if is_cell else 1.0)
        if shares:
            held[record] = sum(ranking.worth[term] * share for term, share in shares.items())
    most = max(held.values(), default=0.0)
    for share in _ANCHOR_SHARES:
        best = [record for record in held if held[record] >= share * most]
        if len(best) <= _MAX_ANCHORS:
            ordered = sorted(best, key=lambda record: (-held[record], record))
            return [record for record in ordered if index.outline.table_of(record)]
    return []
