"""Connects the rows that a question mentions: finds the smallest trees of rows that join them, and the answer around these.

"Which airline flies from A to B?" names two airports. A row of the routes refers to both, and to the airline.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from heapq import nlargest
from itertools import islice

from msgspec import Struct

from overspill.lexical.index import Index
from overspill.lexical.query import Query
from overspill.lexical.rank import Ranking
from overspill.lexical.rows.cells import find_column, read_rows
from overspill.lexical.rows.mentions import Question, Words, find_anchors, find_sayings
from overspill.lexical.rows.relations import follow, list_tables, read_references
from overspill.lexical.words import read_related, split_words, stem
from overspill.tables.schema import POSSIBLE, SURE, Reference

_MAX_STEPS = 4
"""How many references the answer may be away. A reference that is less than sure counts as two."""
_MAX_SHOWN, _MAX_MEETING, _MAX_FOUND = 8, 40, 60
_MAX_NAMED, _MAX_GROUPS = 6, 3
"""How many rows a name may refer to, and how many things a question may name."""
_MAX_BESIDE = 5
"""How many rows to show along each way that the question does not ask for."""
_SPREAD = 3
"""How many references away a row may still mention what the question names."""
_NEARLY, _MORE = 0.99, 1.01
_MIN_SHARE = 0.5
"""Rows that mention less than this share of the best one do not pass it on to others."""
_MIN_WORTH = 0.4
"""The least worth of a name, as a share of the rarest word. A name worth less is only a mention."""

_Way = tuple[int, list[Reference]]
"""How strongly the question asks for the table at its end, and the steps that lead there."""


class _Reach(Struct):
    """The words of the question in a row and in the rows that it refers to."""

    said: Words
    by: dict[tuple[int, int], Words] = {}
    """The words by column and row referred to."""

    @property
    def words(self) -> Words:
        return self.said.union(*self.by.values())


def connect(index: Index, query: Query, ranking: Ranking) -> tuple[list[int], list[int]]:
    """Two lists of rows, likeliest first: those where several mentions meet, with the answer there; and these with all around."""
    if not list_tables(index) or not index.remember(read_references)[1]:
        return [], []
    connector = _Connector(index, query, ranking)
    meeting = connector.find_meeting()
    rows = list(islice(dict.fromkeys(connector.walk(meeting, are_meeting=True)), _MAX_MEETING)) if meeting else []
    groups = list(connector.list_named()) or [find_anchors(index, ranking)]
    around = [row for group in groups for row in islice(dict.fromkeys(connector.walk(group)), _MAX_FOUND)]
    if not rows and {row for group in groups for row in group}.issuperset(around):
        return [], []
    return rows, list(dict.fromkeys([*rows, *around]))


class _Connector:
    def __init__(self, index: Index, query: Query, ranking: Ranking) -> None:
        self._index, self._ranking = index, ranking
        self._relations, steps = index.remember(read_references)
        self._question, self._other = Question(query, ranking), split_words(query.other)
        self._stems = set(map(stem, self._question.words))
        self._sure = {(step.source, step.target) for step in steps if step.is_forward and step.confidence >= SURE}
        self._steps = [step for step in steps if self._is_usable(step)]
        # References guessed from values alone may be wrong. They only serve to find rows where several mentions meet.
        self._crosslinks = [step for step in steps if step.confidence >= POSSIBLE or step in self._steps]
        self._numbers = {relation.table.first: number for number, relation in enumerate(self._relations)}
        self._sayings = find_sayings(index, self._question, ranking, self._relations)
        self._reached = {record: _Reach(saying.said) for record, saying in self._sayings.items()}

    def _is_usable(self, step: Reference) -> bool:
        """Whether a way may use a step: it is sure, or the question names the referring column or the table it refers to.

        A second column of numbers also needs a name like a key, or gaps: a head has no manager.
        """
        there = step if step.is_forward else step.reverse
        relation, column = self._relations[there.source], there.column
        if step.confidence >= SURE:
            return True
        if there.source == there.target or (there.source, there.target) in self._sure:
            is_number = all(map(str.isdigit, relation.values[column]))
            return (not is_number or column in relation.keyed or column in relation.gaps) and self._is_named(there)
        name = " ".join(self._relations[there.target].name)
        is_target_named = find_column([name], self._question.words) is not None
        return self._stems.issuperset(relation.words[column]) or (step.confidence >= POSSIBLE and is_target_named)

    def _is_named(self, step: Reference) -> bool:
        """Whether the question has the name of the referring column, or near synonyms."""
        relation = self._relations[step.source]
        column, core = relation.columns[step.column].rpartition(".")[2], relation.cores[step.column]
        alike = {other for word in self._stems for other in read_related().get(word, ())}
        return find_column([column], self._question.words) is not None or bool(core and alike.issuperset(core))

    def find_meeting(self) -> list[int]:
        """The rows that, with the rows they refer to, mention more of the question than any single row."""
        measure = self._question.measure
        self._spread({record: saying.said for record, saying in self._sayings.items() if saying.is_naming})
        for _ in range(1, _SPREAD):
            self._spread(self._list_best())
        worths = {record: measure(reach.words) for record, reach in self._reached.items() if reach.by}
        most = max(worths.values(), default=0.0)
        if most <= _MORE * max((measure(saying.said) for saying in self._sayings.values()), default=0.0):
            return []
        scores = self._ranking.scores
        best = [record for record, worth in worths.items() if worth >= _NEARLY * most]
        return sorted(best, key=lambda record: (-scores.get(record, 0.0), record))[:_MAX_FOUND]

    def _list_best(self) -> dict[int, Words]:
        """The words of the best rows that refer to others."""
        words = {record: reach.words for record, reach in self._reached.items() if reach.by}
        worths = {record: self._question.measure(said) for record, said in words.items()}
        least = _MIN_SHARE * max(worths.values(), default=0.0)
        best = (record for record in worths if worths[record] >= least)
        return {record: words[record] for record in sorted(best, key=lambda record: (-worths[record], record))}

    def _spread(self, sources: dict[int, Words]) -> None:
        """Adds to each row the words of the `sources` it refers to, and its own words that match the question in other forms."""
        by_table = self._group(sources)
        changed: set[int] = set()
        for step in self._crosslinks:
            if step.is_forward or step.source == step.target or step.source not in by_table:
                continue
            for target, record in follow(self._index, self._relations, step, by_table[step.source]):
                by = self._reached.setdefault(record, _Reach(frozenset())).by
                by[step.other_column, target] = sources[target] | by.get((step.other_column, target), frozenset())
                changed.add(record)
        for number, records in self._group(changed).items():
            relation = self._relations[number]
            for record, cells in read_rows(self._index, relation.table, records):
                self._reached[record].said |= frozenset[int]().union(*map(self._question.find_forms, relation.columns, cells))

    def list_named(self) -> Iterator[list[int]]:
        """The rows of each thing that the question names, the most distinctive first."""
        taken: set[int] = set()
        named = {record: saying.said for record, saying in self._sayings.items()}
        for _ in range(_MAX_GROUPS):
            worths = {record: self._question.measure(words - taken) for record, words in named.items()}
            most = max(worths.values(), default=0.0)
            likely = [record for record, worth in worths.items() if worth >= _NEARLY * most]
            if not likely or most <= _MIN_WORTH * max(self._question.worth):
                return
            best = [record for record in likely if not named[record].isdisjoint(named[likely[0]])]
            few = best if len(best) <= _MAX_NAMED else [record for record in best if self._sayings[record].is_only]
            if 0 < len(few) <= _MAX_NAMED:
                yield few
            taken.update(*(named[record] for record in best))

    def walk(self, centers: list[int], *, are_meeting: bool = False) -> Iterator[int]:
        """The rows around these that the question asks for, then these rows themselves, then the rows on the way.

        From rows where mentions meet, it follows references only forwards. Backwards, it would reach rows that match less.
        """
        reached = [self._reached[row] for row in centers if row in self._reached]
        said = frozenset[int]().union(*(reach.words for reach in reached))
        known = {*centers, *(target for reach in reached for _, target in reach.by if self._is_only(target))}
        groups = self._group(centers)
        ways = [
            (start, way)
            for start in groups
            for way in (self._list_ways_on(start, said) if are_meeting else self._list_ways(start))
        ]
        ways.sort(key=lambda pair: (-pair[1][0], len(pair[1][1])))
        passed: list[int] = []
        rest: list[int] = []
        for start, (_, steps) in ways:
            rows = groups[start]
            for step in steps:
                rows = self._follow_alike(step, rows)
                passed += rows
            order = rows if are_meeting else sorted(rows, key=lambda row: -self._ranking.scores.get(row, 0.0))
            asked = [row for row in order if row not in known]
            yield from asked[:_MAX_SHOWN]
            rest += asked[_MAX_SHOWN:]
            passed += self._refer(rows)
        yield from rest
        yield from centers[:_MAX_SHOWN]
        if are_meeting:
            others = [step for step in self._crosslinks if step.source != step.target]
            yield from () if ways else (row for row in self._refer(centers, others) if row not in known)
            return
        yield from passed
        yield from self._refer(centers)
        own = [step for step in self._steps if step.source == step.target and not step.is_forward]
        yield from self._list_referring(groups, own if ways else self._steps)

    def _is_only(self, record: int) -> bool:
        """Whether the question singles out this row of its table. A value that several rows share only describes them."""
        table, saying = self._index.outline.table_of(record), self._sayings.get(record)
        others = (other for other in self._sayings if other != record and table and table.first <= other < table.last)
        return saying is not None and all(self._sayings[other].said != saying.said for other in others)

    def _group(self, rows: Iterable[int]) -> dict[int, list[int]]:
        """Groups rows by relation."""
        groups: dict[int, list[int]] = {}
        for row in rows:
            table = self._index.outline.table_of(row)
            if table and (number := self._numbers.get(table.first)) is not None:
                groups.setdefault(number, []).append(row)
        return groups

    def _refer(self, rows: Iterable[int], steps: Sequence[Reference] = ()) -> Iterator[int]:
        """The rows that these refer to."""
        groups = self._group(rows)
        for step in steps or self._steps:
            if step.is_forward and step.source in groups:
                yield from (record for _, record in follow(self._index, self._relations, step, groups[step.source]))

    def _list_referring(self, groups: dict[int, list[int]], steps: list[Reference]) -> Iterator[int]:
        """Some rows of each table that refer to these, and what else they refer to: a question may name them by that."""
        found: list[int] = []
        for step in steps:
            if step.source in groups and not step.is_forward:
                rows = [record for _, record in follow(self._index, self._relations, step, groups[step.source])]
                found += nlargest(_MAX_BESIDE, rows, key=lambda record: self._ranking.scores.get(record, 0.0))
        yield from found
        yield from self._refer(found)

    def _follow_alike(self, step: Reference, rows: list[int]) -> list[int]:
        """The rows at the end of a step, and of other steps between the same tables."""
        alike = [each for each in self._crosslinks if (each.source, each.target) == (step.source, step.target)]
        return list(dict.fromkeys(record for each in alike for _, record in follow(self._index, self._relations, each, rows)))

    def _list_ways(self, start: int) -> list[_Way]:
        """The ways to the tables that the question asks for, in its own words or else in alternative words."""
        name = " ".join(self._relations[start].name)
        own = [*self._relations[start].columns, name]
        shortest = [steps for steps in _find_shortest(self._steps, start, _MAX_STEPS).values() if steps]
        for words in (self._question.words, self._other):
            foreign = [word for word in words if find_column(own, [word]) is None]
            ways = [(self._measure(steps, foreign), steps) for steps in shortest]
            most = max((worth for worth, _ in ways), default=0)
            if most:
                return [way for way in ways if way[0] >= most]
        return []

    def _list_ways_on(self, start: int, said: Words) -> list[_Way]:
        words = [word for place, word in enumerate(self._question.words) if place not in said]
        steps = [step for step in self._crosslinks if step.is_forward and step.source != step.target]
        ways = [(self._measure(each, words), each) for each in _find_shortest(steps, start, 2).values() if each]
        return [way for way in ways if way[0]]

    def _measure(self, steps: list[Reference], words: list[str]) -> int:
        """How strongly these words ask for the table at the end of a way: most if they name it, less if only a column of it."""
        relation = self._relations[steps[-1].target]
        if find_column([" ".join(relation.name)], words) is not None:
            return 2
        return int(find_column(relation.columns, words) is not None)


def _find_shortest(steps: list[Reference], start: int, most: int) -> dict[int, list[Reference]]:
    """The shortest way to each reachable relation. A step that is less than sure counts as two."""
    paths: dict[int, list[Reference]] = {start: []}
    lengths = {start: 0}
    reached = [start]
    for relation in reached:
        for step in steps if lengths[relation] < most else ():
            length = lengths[relation] + (1 if step.confidence >= SURE else 2)
            if step.source == relation and length < lengths.get(step.target, most + 1):
                paths[step.target], lengths[step.target] = [*paths[relation], step], length
                reached.append(step.target)
    return paths
