"""The rows that a question names: those with a cell that is said in it, whole. "Mill Lane" is not "Old Mill Lane"."""

from __future__ import annotations

from heapq import nlargest

from msgspec import Struct

from overspill.lexical.cells import read_columns, read_rows
from overspill.lexical.index import Index
from overspill.lexical.mentions import LIST_MEMBER, MAX_NAME_WORDS, STOP_WORTH, Place, Question
from overspill.lexical.outline import Table
from overspill.lexical.query import Query
from overspill.lexical.rank import Ranking
from overspill.lexical.relations import Relation, read_relations
from overspill.lexical.siblings import find_list
from overspill.lexical.words import stem

_MAX_LIST_CHARS = 2_000
_MAX_CANDIDATES = 400
_MAX_NAMED = 6
"""What more rows have is not a name, but a property."""
_MAX_GROUPS = 3
"""How many things a question may name."""
_MIN_SHARE = 0.4
"""A name with less of what the question has in words is only mentioned."""
_NEARLY = 0.99


class Row(Struct, frozen=True):
    record: int
    table: Table


class _NamedRow:
    """A row, and the words of the question that are cells of it."""

    def __init__(self, row: Row, places: dict[Place, bool], question: Question) -> None:
        self.row = row
        self.words: set[int] = set()
        self.names = 0
        self.is_naming = False
        """Whether it is the only row with one of these cells."""
        for (start, end), is_naming in sorted(places.items(), key=lambda pair: pair[0][0] - pair[0][1]):
            if self.words.isdisjoint(range(start, end)):
                self.words.update(range(start, end))
                self.names += 1
                self.is_naming |= is_naming
        self._worth = question.worth

    def measure(self, taken: set[int]) -> float:
        return sum(self._worth[word] for word in self.words - taken)


def find_named_rows(index: Index, query: Query, ranking: Ranking) -> list[list[Row]]:
    """The rows of each thing that a question names, the most telling first."""
    question = Question(query, ranking)
    rows = list(_read_candidates(index, ranking, question))
    groups: list[list[Row]] = []
    taken: set[int] = set()
    least = _MIN_SHARE * max(question.worth, default=0.0)
    for _ in range(_MAX_GROUPS):
        most = max((row.measure(taken) for row in rows), default=0.0)
        if most <= max(least, STOP_WORTH * MAX_NAME_WORDS):
            break
        likely = [row for row in rows if row.measure(taken) >= _NEARLY * most]
        best = [row for row in likely if not row.words.isdisjoint(likely[0].words)]
        few = best if len(best) <= _MAX_NAMED else [row for row in best if row.is_naming]
        if 0 < len(few) <= _MAX_NAMED:
            groups.append([named.row for named in few])
        taken.update(*(row.words for row in best))
    return groups


def count_said_cells(index: Index, query: Query, ranking: Ranking, records: list[int]) -> dict[int, int]:
    """For each of these rows, how many values the question says that are all of one of its cells, or of a member of a list."""
    question = Question(query, ranking)
    rows = find_list(index, records[0])
    if not rows:
        return {}
    columns = read_columns(index, rows.table)
    counts: dict[int, int] = {}
    for record, cells in read_rows(index, rows.table, rows.keep(records)):
        places: dict[Place, bool] = {}
        for column, cell in zip(columns, cells, strict=True):
            members = [cell] if cell[:1] != "[" else LIST_MEMBER.findall(cell[:_MAX_LIST_CHARS])
            if not cell.isdigit() or question.is_asked(column):
                places.update((place, False) for member in members for place in question.find(member))
        counts[record] = _NamedRow(Row(record, rows.table), places, question).names
    return counts


def _read_candidates(index: Index, ranking: Ranking, question: Question) -> list[_NamedRow]:
    relations = {relation.table.first: relation for relation in index.remember(read_relations)}
    kinds = {name[0] for relation in relations.values() for name in (relation.name, *relation.words) if len(name) == 1}
    held = {record: sum({term: ranking.worth[term] for *_, term in spots}.values()) for record, spots in ranking.hits.items()}
    by_table: dict[int, tuple[Table, list[int]]] = {}
    for record in nlargest(_MAX_CANDIDATES, held, key=held.__getitem__):
        table = index.outline.table_of(record)
        if table and table.first in relations:
            by_table.setdefault(table.first, (table, []))[1].append(record)
    found: list[_NamedRow] = []
    for first, (table, records) in by_table.items():
        for record, cells in read_rows(index, table, records):
            if places := _find_places(relations[first], cells, question, kinds):
                found.append(_NamedRow(Row(record, table), places, question))
    return found


def _find_places(relation: Relation, cells: list[str], question: Question, kinds: set[str]) -> dict[Place, bool]:
    """Where the question says a cell, and whether no other row has the same there.

    The name of a table or column alone says what is asked for, and a number may be anything unless its column is named.
    """
    places: dict[Place, bool] = {}
    for column, cell in enumerate(cells):
        if cell.isdigit() and not question.is_asked(relation.columns[column]):
            continue
        for start, end in question.find(cell):
            if end - start > 1 or stem(question.words[start]) not in kinds:
                places[start, end] = places.get((start, end), False) or column in relation.naming
    return places
