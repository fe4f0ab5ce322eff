"""Rows in which several mentions of a question meet: each says what it has, and what the rows have that it refers to."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from itertools import combinations

from msgspec import Struct

from overspill.lexical.index import Index
from overspill.lexical.rank import Ranking
from overspill.lexical.rows.cells import read_rows
from overspill.lexical.rows.following import follow
from overspill.lexical.rows.mentions import Question, Words, find_sayings
from overspill.lexical.rows.relations import Relation, Step, last_parts
from overspill.lexical.words import read_lexicon, stem

_SPREAD = 3
"""How many references a row may be away from what the question names, to say it."""
_MAX_MEETING, _MAX_COMPARED = 60, 8
_NEARLY, _MORE = 0.99, 1.01
_MIN_SHARE = 0.5
"""Rows with less of what the best one says are not what others refer to."""


class Reach(Struct):
    """What of the question a row says, itself and by the rows that it refers to."""

    said: Words
    by: dict[tuple[int, int], Words] = {}
    """By column, and the row that it refers to."""

    @property
    def words(self) -> Words:
        return self.said.union(*self.by.values())


class Reaches:
    """What each row says, itself and by others."""

    def __init__(
        self, index: Index, question: Question, ranking: Ranking, relations: list[Relation], crosslinks: list[Step]
    ) -> None:
        self._index, self._question, self._ranking = index, question, ranking
        self._relations, self._crosslinks = relations, crosslinks
        self._numbers = {relation.table.first: number for number, relation in enumerate(relations)}
        self.sayings = find_sayings(index, question, ranking, relations)
        self.reached = {record: Reach(saying.said) for record, saying in self.sayings.items()}
        self._near: dict[int, Words] = {}

    def find_meeting(self) -> list[int]:
        """The rows that say most, more than any says alone."""
        measure = self._question.measure
        self._spread({record: saying.said for record, saying in self.sayings.items() if saying.is_naming})
        self._near = {record: reach.words for record, reach in self.reached.items()}
        for _ in range(1, _SPREAD):
            self._spread(self._list_best())
        worths = {record: measure(reach.words) for record, reach in self.reached.items() if reach.by}
        most = max(worths.values(), default=0.0)
        if most <= _MORE * max((measure(saying.said) for saying in self.sayings.values()), default=0.0):
            return []
        return self._order([record for record, worth in worths.items() if worth >= _NEARLY * most])[:_MAX_MEETING]

    def _list_best(self) -> dict[int, Words]:
        """What the rows say that refer to others, of those that say most."""
        words = {record: reach.words for record, reach in self.reached.items() if reach.by}
        worths = {record: self._question.measure(said) for record, said in words.items()}
        least = _MIN_SHARE * max(worths.values(), default=0.0)
        best = (record for record in worths if worths[record] >= least)
        return {record: words[record] for record in sorted(best, key=lambda record: (-worths[record], record))}

    def _spread(self, sources: dict[int, Words]) -> None:
        """Adds to each row what these say that it refers to."""
        by_table = self.group(sources)
        changed: set[int] = set()
        for step in self._crosslinks:
            if step.is_reference or step.source == step.target or step.source not in by_table:
                continue
            for target, record in follow(self._index, self._relations, step, by_table[step.source]):
                by = self.reached.setdefault(record, Reach(frozenset())).by
                by[step.other_column, target] = sources[target] | by.get((step.other_column, target), frozenset())
                changed.add(record)
        for record in changed:
            self.reached[record].said |= self._read_forms(record)

    def _read_forms(self, record: int) -> Words:
        """What a row says in other words than a name, which tells it from others that refer to the same."""
        relation = self._get_relation(record)
        cells = next(read_rows(self._index, relation.table, [record]))[1]
        return frozenset[int]().union(*map(self._question.find_forms, relation.columns, cells))

    def _order(self, rows: list[int]) -> list[int]:
        """Those first whose references have the direction of the question, and say most of it without others between."""
        direction = {record: self._measure_direction(record) for record in rows}
        kept = [record for record in rows if direction[record][0] >= 0] or rows
        near = {record: self._question.measure(self._near.get(record, frozenset())) for record in kept}
        scores = self._ranking.scores
        return sorted(kept, key=lambda row: (-direction[row][0], -near[row], -direction[row][1], -scores.get(row, 0.0), row))

    def _measure_direction(self, record: int) -> tuple[int, int]:
        """How many references of a row have the end that the question says, less those that have the other; and how many pairs of
        them are in its order."""
        columns = self._get_relation(record).columns
        by = self.reached[record].by.items()
        signs = sum(self.measure_sign(columns[column], said) for (column, _), said in by)
        ordered = sorted((column, min(said)) for (column, _), said in by if said)
        pairs = combinations(ordered[:_MAX_COMPARED], 2)
        return signs, sum(one[1] < two[1] for one, two in pairs if one[0] != two[0])

    def measure_sign(self, column: str, said: Words) -> int:
        """1 if a column is for the end that the question has before these words, as in "to A"; -1 if it is for the other."""
        before = stem(self._question.words[min(said) - 1]) if said and min(said) > 0 else ""
        parts, (first, last) = set(last_parts(column)), _read_ends()
        if before not in first and before not in last:
            return 0
        same, other = (first, last) if before in first else (last, first)
        return bool(parts & same) - bool(parts & other)

    def is_only(self, record: int) -> bool:
        """Whether the question says which row of its table it means. What several rows have describes what is asked for."""
        table, saying = self._index.outline.table_of(record), self.sayings.get(record)
        others = (other for other in self.sayings if other != record and table and table.first <= other < table.last)
        return saying is not None and all(self.sayings[other].said != saying.said for other in others)

    def group(self, rows: Iterable[int]) -> dict[int, list[int]]:
        groups: dict[int, list[int]] = {}
        for row in rows:
            table = self._index.outline.table_of(row)
            if table and (number := self._numbers.get(table.first)) is not None:
                groups.setdefault(number, []).append(row)
        return groups

    def _get_relation(self, record: int) -> Relation:
        table = self._index.outline.table_of(record)
        assert table
        return self._relations[self._numbers[table.first]]


@cache
def _read_ends() -> tuple[frozenset[str], frozenset[str]]:
    """The words for the end that something comes from, and for the one that it leads to."""
    return frozenset(map(stem, read_lexicon("from"))), frozenset(map(stem, read_lexicon("to")))
