"""Crossings: rows in which references to several things that a question names meet, and what else those rows refer to.

"Which airline flies from A to B?" names two airports; a row of the routes refers to both, and to the airline.
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

from overspill.lexical.asked import find_asked_rows, measure_direction
from overspill.lexical.boost import Boost
from overspill.lexical.cells import find_column, read_rows
from overspill.lexical.following import find_holding
from overspill.lexical.index import Index
from overspill.lexical.mentions import Question, Saying, Words, find_sayings
from overspill.lexical.query import Query
from overspill.lexical.rank import Ranking
from overspill.lexical.relations import Relation, Step, list_tables, read_references
from overspill.lexical.signals.join import find_joined_rows
from overspill.tables.schema import split_codes

_MAX_FOLLOWED = 60
"""Rows that are referred to, of one table."""
_MAX_CROSSINGS = 60
_FURTHER = 2
"""How many references further to go, from the rows that refer to what is named."""
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


def boost_crossing_rows(index: Index, query: Query, ranking: Ranking) -> Boost | None:
    rows = [] if ranking.leads or not list_tables(index) else find_crossing_rows(index, query, ranking)
    if not rows:
        return None
    leads = list(dict.fromkeys([*rows, *find_joined_rows(index, query, ranking)]))
    return Boost(leads=leads, rows=rows, brief=frozenset(rows))


def find_crossing_rows(index: Index, query: Query, ranking: Ranking) -> list[int]:
    """What is asked for first, then the rows that lead to it; empty if nothing meets."""
    found = index.remember(read_references)
    relations = found.relations
    question = Question(query, ranking)
    sayings = find_sayings(index, question, ranking, relations) if len(relations) > 1 else {}
    if not any(saying.naming for saying in sayings.values()):
        return []
    steps = found.list_crosslinks()
    crossings = _Crossings(index, relations, steps, question, sayings)
    rows = crossings.choose()
    named = {target for row in rows for _, target in crossings.reached[row].by if crossings.is_named(target)}
    covered = frozenset[int]().union(*(crossings.reached[row].words for row in rows))
    return find_asked_rows(index, relations, steps, rows, named, question.list_others(covered)) if rows else []


class _Crossings:
    def __init__(
        self, index: Index, relations: list[Relation], steps: list[Step], question: Question, sayings: dict[int, Saying]
    ) -> None:
        self.index, self.relations, self.steps, self.question, self.sayings = index, relations, steps, question, sayings
        self.numbers = {relation.table.first: number for number, relation in enumerate(relations)}
        self.reached = {record: Reach(saying.said) for record, saying in sayings.items()}
        self._spread({record: saying.naming for record, saying in sayings.items() if saying.naming})
        self.near = {record: reach.words for record, reach in self.reached.items()}
        for _ in range(_FURTHER):
            self._spread(self._list_best())

    def _list_best(self) -> dict[int, Words]:
        """What the rows say that refer to others, of those that say most."""
        words = {record: reach.words for record, reach in self.reached.items() if reach.by}
        worths = {record: self.question.measure(said) for record, said in words.items()}
        least = _MIN_SHARE * max(worths.values(), default=0.0)
        best = (record for record in worths if worths[record] >= least)
        return {record: words[record] for record in sorted(best, key=lambda record: (-worths[record], record))}

    def is_named(self, record: int) -> bool:
        """Whether the question says which row of its table it means. What several rows have describes what is asked for."""
        table, saying = self.index.outline.table_of(record), self.sayings.get(record)
        others = (other for other in self.sayings if other != record and table and table.first <= other < table.last)
        return saying is not None and all(self.sayings[other].naming != saying.naming for other in others)

    def choose(self) -> list[int]:
        """The rows that say most, more than any says alone."""
        measure = self.question.measure
        worths = {record: measure(reach.words) for record, reach in self.reached.items() if reach.by}
        most = max(worths.values(), default=0.0)
        if most <= _MORE * max(measure(saying.said) for saying in self.sayings.values()):
            return self._choose_by_role()
        best = [record for record, worth in worths.items() if worth >= _NEARLY * most]
        return self._order(best)[:_MAX_CROSSINGS]

    def _choose_by_role(self) -> list[int]:
        """Rows that refer to what is named and to others like it, if the question asks for such: from which airports to A?"""
        named = {record: saying.naming for record, saying in self.sayings.items() if saying.naming}
        most = max(map(self.question.measure, named.values()), default=0.0)
        best = {record for record, words in named.items() if self.question.measure(words) >= _NEARLY * most}
        words = self.question.list_others(frozenset[int]().union(*(named[record] for record in best)))
        found: list[int] = []
        for (source, target), steps in self._list_ends().items():
            if len(steps) > 1 and find_column([" ".join(self.relations[target].name)], words) is not None:
                table = self.relations[source].table
                held = (record for record in self.reached if table.first <= record < table.last)
                found += [row for row in held if any(record in best for _, record in self.reached[row].by)]
        # Without a direction, the question may be about anything that the two have to do with each other.
        return self._order([row for row in found if self._measure_direction(row)[0] > 0])[:_MAX_CROSSINGS]

    def _list_ends(self) -> dict[tuple[int, int], set[int]]:
        """For two relations, the columns of the first that refer to the second."""
        ends: dict[tuple[int, int], set[int]] = {}
        for step in self.steps:
            if step.source != step.target:
                ends.setdefault((step.source, step.target), set()).add(step.column)
        return ends

    def _order(self, rows: list[int]) -> list[int]:
        """Those first whose references have the direction of the question, and say most of it without others between."""
        direction = {record: self._measure_direction(record) for record in rows}
        kept = [record for record in rows if direction[record][0] >= 0] or rows
        near = {record: self.question.measure(self.near.get(record, frozenset())) for record in kept}
        return sorted(kept, key=lambda record: (-direction[record][0], -near[record], -direction[record][1], record))

    def _measure_direction(self, record: int) -> tuple[int, int]:
        table = self.index.outline.table_of(record)
        if not table:
            return 0, 0
        columns = self.relations[self.numbers[table.first]].columns
        return measure_direction(
            self.question.words, [(columns[column], column, words) for (column, _), words in self.reached[record].by.items()]
        )

    def _spread(self, sources: dict[int, Words]) -> None:
        """Adds to each row what these say that it refers to."""
        found = list(self._find_referring(sources))
        for record, column, target, words in found:
            reach = self.reached.setdefault(record, Reach(frozenset()))
            reach.by[column, target] = words | reach.by.get((column, target), frozenset())
        for record in {record for record, *_ in found}:
            reach = self.reached[record]
            reach.said |= self._read_forms(record)

    def _read_forms(self, record: int) -> Words:
        """What a row says in other words than a name, which tells it from others that refer to the same."""
        table = self.index.outline.table_of(record)
        cells = next(read_rows(self.index, table, [record]))[1] if table else []
        columns = self.relations[self.numbers[table.first]].columns if table else []
        return frozenset[int]().union(*map(self.question.find_forms, columns, cells))

    def _find_referring(self, sources: dict[int, Words]) -> Iterator[tuple[int, int, int, Words]]:
        by_table: dict[int, list[int]] = {}
        for record in sources:
            if table := self.index.outline.table_of(record):
                by_table.setdefault(self.numbers[table.first], []).append(record)
        for step in self.steps:
            targets = by_table.get(step.target, [])[:_MAX_FOLLOWED]
            if not targets:
                continue
            named: dict[str, list[int]] = {}
            for target, cells in read_rows(self.index, self.relations[step.target].table, targets):
                if cells[step.other_column]:
                    named.setdefault(step.prefix + cells[step.other_column], []).append(target)
            source = self.relations[step.source]
            held = find_holding(self.index, source, step.column, named, with_codes=True) if named else []
            for record, cells in read_rows(self.index, source.table, held) if held else ():
                for target in (target for value in split_codes(cells[step.column]) for target in named.get(value, ())):
                    if target != record:
                        yield record, step.column, target, sources[target]
