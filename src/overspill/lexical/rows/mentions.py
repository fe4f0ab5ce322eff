"""Mentions: the cells that occur in a question, which name their row or something that the row has."""

from __future__ import annotations

from collections import Counter
from heapq import nlargest

from msgspec import Struct

from overspill.lexical.index import Index
from overspill.lexical.query import Query
from overspill.lexical.rank import Ranking
from overspill.lexical.rows.cells import find_column, is_same_word, read_rows
from overspill.lexical.rows.relations import Relation, is_named_as_key, last_parts
from overspill.lexical.words import read_lexicon, read_list, read_stems, stem
from overspill.text.regex import regex

_WORD = regex(r"(?<![\w.-])-?\d+(?:\.\d+)?(?!\w|\.\w)|[^\W_]+")
"""A number is one word, with its sign and fraction, unless it is in a range, a date or a version."""
_LIST_MEMBER = regex(r"'([^']*)'")
_DAY = regex(r"(\d{4}-\d\d-\d\d)[T ]\d")
_KEY = regex(rb"[^\"\\]{0,60}\"\s*:")
_MAX_ANCHORS, _ANCHOR_SHARES = 6, (0.8, 0.95)
"""A search may start from the rows that contain about as much of the question as the best one, unless there are too many."""
_MAX_WORDS, _MAX_NAME_WORDS = 200, 40
_MAX_CELL_CHARS = 200
_MAX_CANDIDATES = 400
"""How many rows of a table to read, those with the most words of the question first."""
_MAX_NAMED = 6
"""A value in more rows than this is a property, not a name, and says nothing about the rows that refer to them."""
_UNKNOWN_WORTH, _STOP_WORTH = 0.4, 0.01
_MIN_TELLING_DIGITS = 4
_MAX_FORM_CHARS, _MAX_FORM_WORDS = 40, 3

Place = tuple[int, int]
Words = frozenset[int]
"""Places of words in the question."""


class Saying(Struct, frozen=True):
    """The words of the question in a row."""

    said: Words
    is_naming: bool
    """Whether one of these is in few rows of the table, and is therefore a name and not a property."""
    is_only: bool
    """Whether one of them is in a column whose values are unique."""


class Question:
    """The words of a question, the worth of each, and the places of each run of them."""

    def __init__(self, query: Query, ranking: Ranking) -> None:
        self.words = [word.casefold() for word in _WORD.findall(query.text.replace("\u2212", "-"))[:_MAX_WORDS]]
        by_key = {term.key: ranking.worth[number] for number, term in enumerate(ranking.terms) if term.role != "wording"}
        most, stop = max(by_key.values(), default=0.0), read_lexicon("stop")
        self.worth = [
            by_key.get(word, by_key.get(stem(word), _STOP_WORTH if word in stop else _UNKNOWN_WORTH * most))
            for word in self.words
        ]
        self._stems = list(map(stem, self.words))
        # "Second and third" asks for two rows, each of which answers the question as well.
        ordinals = {word: str(number) for number, word in enumerate(read_list("ordinals"), 1)}
        ordinals |= dict.fromkeys(read_list("won"), "1")
        ranks = {ordinals[word]: place for place, word in enumerate(self.words) if word in ordinals}
        self._ordinals = dict.fromkeys(ranks, frozenset(ranks.values()))
        for place in frozenset[int]().union(*self._ordinals.values()):
            self.worth[place] = max(self.worth[place], _UNKNOWN_WORTH * most)
        self._asked: dict[str, bool] = {}
        self._forms: dict[str, Words] = {}
        self._places: dict[str, list[Place]] = {}
        for start in range(len(self.words)):
            for end in range(start + 1, min(len(self.words), start + _MAX_NAME_WORDS) + 1):
                self._places.setdefault(" ".join(self.words[start:end]), []).append((start, end))

    def find(self, column: str, cell: str) -> list[Place]:
        """Where the question mentions a cell, a member of its list, the day of a time, or a name in reverse order.

        A short number may mean anything, unless the question names its column. A longer one, such as a year, is unambiguous.
        """
        if not 0 < len(cell) <= _MAX_CELL_CHARS:
            return []
        is_key = len(cell) < _MIN_TELLING_DIGITS or is_named_as_key(column)
        if cell.isdigit() and is_key and not self.is_asked(column):
            return []
        members = _LIST_MEMBER.findall(cell) if cell[0] == "[" else [cell]
        found = [place for member in members for place in self._find_words(member)]
        last, comma, first = cell.partition(", ")
        return found or self._find_words(day[1] if (day := _DAY.match(cell)) else f"{first} {last}" if comma else "")

    def _find_words(self, text: str) -> list[Place]:
        return self._places.get(" ".join(_WORD.findall(text.casefold())), [])

    def find_forms(self, column: str, cell: str) -> Words:
        """The words for all of a short cell in other forms or another order: "who chairs" for `Chairman`, "won" for 1.

        Many cells match some word of a question by chance, so this is only for rows that refer to something it names.
        """
        if cell.isdigit():
            is_rank = cell in self._ordinals and read_stems("ranks").issuperset(last_parts(column))
            return self._ordinals[cell] if is_rank else frozenset()
        if cell not in self._forms:
            stems = list(map(stem, _WORD.findall(cell.casefold()))) if len(cell) <= _MAX_FORM_CHARS else []
            same = [
                {place for place, word in enumerate(self._stems) if min(len(word), len(each)) > 3 and is_same_word(word, each)}
                for each in stems
            ]
            is_said = len(stems) <= _MAX_FORM_WORDS and all(same)
            self._forms[cell] = frozenset[int]().union(*same) if is_said else frozenset()
        return self._forms[cell]

    def is_asked(self, column: str) -> bool:
        if column not in self._asked:
            self._asked[column] = find_column([column.rpartition(".")[2]], self.words) is not None
        return self._asked[column]

    def measure(self, words: Words) -> float:
        return sum(self.worth[word] for word in words)


def find_sayings(index: Index, question: Question, ranking: Ranking, relations: list[Relation]) -> dict[int, Saying]:
    """The words of the question in each row."""
    held: dict[int, dict[int, float]] = {relation.table.first: {} for relation in relations}
    for record, spots in ranking.hits.items():
        table = index.outline.table_of(record)
        if table and table.first in held:
            held[table.first][record] = sum({term: ranking.worth[term] for *_, term in spots}.values())
    sayings: dict[int, Saying] = {}
    for relation in relations:
        worths = held[relation.table.first]
        records = nlargest(_MAX_CANDIDATES, worths, key=worths.__getitem__)
        found: dict[int, dict[Place, int]] = {}
        for record, cells in read_rows(index, relation.table, records) if records else ():
            for number, (column, cell) in enumerate(zip(relation.columns, cells, strict=True)):
                for start, end in question.find(column, cell):
                    found.setdefault(record, {}).setdefault((start, end), number)
        times = Counter((column, place) for places in found.values() for place, column in places.items())
        for record, places in found.items():
            said = frozenset(word for place in places for word in range(*place))
            is_naming = any(times[column, place] <= _MAX_NAMED for place, column in places.items())
            sayings[record] = Saying(said, is_naming, not relation.naming.isdisjoint(places.values()))
    return sayings


def find_anchors(index: Index, ranking: Ranking) -> list[int]:
    """The rows that contain most of the question, not counting the names of columns."""
    held: dict[int, float] = {}
    for record, spots in ranking.hits.items():
        if terms := {term for _, end, term in spots if not _KEY.match(index.text, end)}:
            held[record] = sum(ranking.worth[term] for term in terms)
    most = max(held.values(), default=0.0)
    for share in _ANCHOR_SHARES:
        best = [record for record in held if held[record] >= share * most]
        if len(best) <= _MAX_ANCHORS:
            ordered = sorted(best, key=lambda record: (-held[record], record))
            return [record for record in ordered if index.outline.table_of(record)]
    return []
