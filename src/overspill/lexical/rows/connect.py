"""Connects what a question names: the smallest trees of rows that join its mentions, and what it asks for around them.

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
from overspill.lexical.rows.cells import find_column
from overspill.lexical.rows.following import follow
from overspill.lexical.rows.mentions import Question, Words, find_anchors
from overspill.lexical.rows.reaches import Reaches
from overspill.lexical.rows.relations import Step, list_tables, read_references
from overspill.lexical.words import read_related, split_words, stem
from overspill.tables.schema import POSSIBLE, SURE

_MAX_STEPS = 4
"""How far what is asked for may be from there. A reference that is less than sure is as long as two."""
_MAX_SHOWN, _MAX_MEETING, _MAX_FOUND = 8, 40, 60
_FAR = 3
"""How far to follow references if the question asks for nothing that is known."""
_MAX_NAMED, _MAX_GROUPS = 6, 3
"""How many rows a name may mean, and how many things a question may name."""
_MAX_BESIDE = 5
"""Rows of each way that the question does not ask for."""
_NEARLY = 0.99
_MIN_WORTH = 0.4
"""Of the rarest word: a name that is worth less is only mentioned."""
_NAMED, _MEANT = 4, 3
"""What the name of a table or of a column that refers to it is worth, and the most that its other columns are."""
_ANY = frozenset(map(stem, ("name", "title", "type", "number", "date")))
"""Parts of the names of columns that every table has."""


class Connection(Struct, frozen=True):
    """Rows, likeliest first: those in which several mentions meet with what is asked for there, and what else is around."""

    meeting: list[int] = []
    around: list[int] = []


class _Way(Struct, frozen=True):
    steps: list[Step]
    worth: int
    """How much the question asks for what is at its end."""


def connect(index: Index, query: Query, ranking: Ranking) -> Connection:
    if not list_tables(index):
        return Connection()
    connector = _Connector(index, query, ranking)
    meeting = connector.reaches.find_meeting()
    rows = list(islice(dict.fromkeys(connector.walk(meeting, are_meeting=True)), _MAX_MEETING)) if meeting else []
    groups = list(connector.list_named()) or [find_anchors(index, ranking)]
    around = [row for group in groups for row in islice(dict.fromkeys(connector.walk(group)), _MAX_FOUND)]
    if not rows and {row for group in groups for row in group}.issuperset(around):
        return Connection()
    return Connection(rows, list(dict.fromkeys([*rows, *around])))


class _Connector:
    def __init__(self, index: Index, query: Query, ranking: Ranking) -> None:
        found = index.remember(read_references)
        self._index, self._ranking, self._relations = index, ranking, found.relations
        self._question, self._other = Question(query, ranking), split_words(query.other)
        self._stems = set(map(stem, self._question.words))
        self._alike = {other for word in self._stems for other in read_related().get(word, ())}
        self._named = {number for number, each in enumerate(found.relations) if self._names(" ".join(each.name))}
        self._sure = {(step.source, step.target) for step in found.steps if step.is_reference and step.confidence >= SURE}
        self._steps = [step for step in found.steps if self._is_usable(step)]
        self._crosslinks = [step for step in found.steps if step.confidence >= POSSIBLE or step in self._steps]
        self.reaches = Reaches(index, self._question, ranking, found.relations, self._crosslinks)

    def _is_usable(self, step: Step) -> bool:
        """Whether a way may lead by a step: it is sure, or the question names the column that refers, or what it refers to.

        What values alone tell may be wrong, and serves to find rows in which several mentions meet. Numbers need a key's name, or
        an end: a head has no manager.
        """
        there = step if step.is_reference else step.reverse
        relation = self._relations[there.source]
        if step.confidence >= SURE:
            return True
        if there.source == there.target or (there.source, there.target) in self._sure:
            is_number = all(map(str.isdigit, relation.values[there.column]))
            is_key = not is_number or there.column in relation.keyed or there.column in relation.gaps
            return is_key and self._is_named(there)
        is_asked = self._stems.issuperset(relation.words[there.column])
        return is_asked or (step.confidence >= POSSIBLE and there.target in self._named)

    def _is_named(self, step: Step) -> bool:
        """Whether the question has the name of the column that refers, or words that mean nearly the same."""
        there = step if step.is_reference else step.reverse
        relation = self._relations[there.source]
        core = relation.cores[there.column]
        return self._names(relation.columns[there.column].rpartition(".")[2]) or bool(core and self._alike.issuperset(core))

    def _names(self, name: str) -> bool:
        return find_column([name], self._question.words) is not None

    def list_named(self) -> Iterator[list[int]]:
        """The rows of each thing that the question names, the most telling first."""
        taken: set[int] = set()
        named = {record: saying.told for record, saying in self.reaches.sayings.items() if saying.told}
        for _ in range(_MAX_GROUPS):
            worths = {record: self._question.measure(words - taken) for record, words in named.items()}
            most = max(worths.values(), default=0.0)
            likely = [record for record, worth in worths.items() if worth >= _NEARLY * most]
            if not likely or most <= _MIN_WORTH * max(self._question.worth):
                return
            best = [record for record in likely if not named[record].isdisjoint(named[likely[0]])]
            few = best if len(best) <= _MAX_NAMED else [record for record in best if self.reaches.sayings[record].is_only]
            if 0 < len(few) <= _MAX_NAMED:
                yield few
            taken.update(*(named[record] for record in best))

    def walk(self, centers: list[int], *, are_meeting: bool = False) -> Iterator[int]:
        """What the question asks for around these rows, themselves, and what is on the way.

        Rows in which mentions meet are not left against a reference: that would lead to others of which less is said.
        """
        reached = [self.reaches.reached[row] for row in centers if row in self.reaches.reached]
        said = frozenset[int]().union(*(reach.words for reach in reached))
        known = {*centers, *(target for reach in reached for _, target in reach.by if self.reaches.is_only(target))}
        groups = self.reaches.group(centers)
        list_ways = self._list_ways_on if are_meeting else self._list_ways
        ways = [(start, way) for start in groups for way in list_ways(start, said)]
        ways.sort(key=lambda pair: (-pair[1].worth, len(pair[1].steps)))
        passed: list[int] = []
        rest: list[int] = []
        used: set[int] = set()
        for start, way in ways:
            rows: dict[int, int] = {row: row for row in groups[start]}
            for step in way.steps:
                rows = self._follow_alike(step, rows)
                passed += rows
            used.update(rows.values())
            order = rows if are_meeting else sorted(rows, key=lambda row: -self._ranking.scores.get(row, 0.0))
            asked = [row for row in order if row not in known]
            yield from asked[:_MAX_SHOWN]
            rest += asked[_MAX_SHOWN:]
            passed += self._refer(rows, 1)
        yield from rest
        yield from sorted(centers, key=lambda row: row not in used)[:_MAX_SHOWN]
        if are_meeting:
            others = [step for step in self._crosslinks if step.source != step.target]
            yield from () if ways else (row for row in self._refer(centers, 1, others) if row not in known)
            return
        yield from passed
        yield from self._refer(centers, 1 if ways else _FAR)
        own = [step for step in self._steps if step.source == step.target and not step.is_reference]
        yield from self._list_referring(groups, own if ways else self._steps)

    def _refer(self, rows: Iterable[int], depth: int, steps: Sequence[Step] = ()) -> Iterator[int]:
        """What rows refer to, and so on. Lists are followed from these rows alone: they lead to many."""
        groups = self.reaches.group(rows)
        for number in range(depth):
            found: list[int] = []
            for step in steps or self._steps:
                relation = self._relations[step.source]
                if step.is_reference and step.source in groups and (number == 0 or step.column not in relation.lists):
                    found += (record for _, record in follow(self._index, self._relations, step, groups[step.source]))
            yield from found
            groups = self.reaches.group(found)

    def _list_referring(self, groups: dict[int, list[int]], steps: list[Step]) -> Iterator[int]:
        """Some of the rows of each table that refer to these, and what else they refer to: the question may call them by other
        names."""
        found: list[int] = []
        for step in steps:
            if step.source in groups and not step.is_reference:
                rows = [record for _, record in follow(self._index, self._relations, step, groups[step.source])]
                found += nlargest(_MAX_BESIDE, rows, key=lambda record: self._ranking.scores.get(record, 0.0))
        yield from found
        yield from self._refer(found, 1)

    def _follow_alike(self, step: Step, rows: dict[int, int]) -> dict[int, int]:
        """By row that a step leads to, the center that it came from. Other steps between the same two relations count as much;
        only those by a column that the question names, if there are some."""
        alike = [each for each in self._crosslinks if (each.source, each.target) == (step.source, step.target)]
        alike = [each for each in alike if each.is_reference and self._is_named(each)] or alike
        found: dict[int, int] = {}
        for each in alike:
            for start, record in follow(self._index, self._relations, each, list(rows)):
                found.setdefault(record, rows[start])
        return found

    def _list_ways(self, start: int, said: Words) -> list[_Way]:
        """The ways to what the question asks for, in its own words or else in others."""
        name = " ".join(self._relations[start].name)
        own = [*self._relations[start].columns, name]
        words = self._question.words
        found = list(self._list_ways_back(start, words, said))
        shortest = {number: steps for number, steps in _find_shortest(self._steps, start, _MAX_STEPS).items() if steps}
        for each in (words, self._other):
            foreign = [word for word in each if find_column(own, [word]) is None]
            others = [word for word in each if find_column([name], [word]) is None]
            ways = [_Way(steps, self._measure(steps, others, foreign)) for steps in shortest.values()]
            least = min(_NAMED, max((way.worth for way in ways), default=0))
            if ways := [way for way in ways if way.worth >= max(1, least)]:
                return [*found, *ways]
        return found

    def _list_ways_on(self, start: int, said: Words) -> list[_Way]:
        words = self._question.list_others(said)
        steps = [step for step in self._crosslinks if step.is_reference and step.source != step.target]
        shortest = _find_shortest(steps, start, 2)
        return [way for way in (_Way(each, self._measure(each, words, words)) for each in shortest.values() if each) if way.worth]

    def _list_ways_back(self, start: int, words: list[str], said: Words) -> Iterator[_Way]:
        """To other rows of the same relation by a column that the question names, of this one or of another: its `overlord`."""
        relation = self._relations[start]
        is_named = find_column([" ".join(relation.name)], words) is not None
        for there in (step for step in self._steps if step.source == start):
            if there.target == start:
                is_number = all(map(str.isdigit, relation.values[there.column]))
                if there.is_reference and (self._is_named(there) or (is_named and not is_number)):
                    yield _Way([there], _NAMED)
                continue
            for back in self._steps if not there.is_reference else ():
                if (
                    back.source == there.target
                    and back.target == start
                    and back.is_reference
                    and back.column != there.other_column
                ):
                    columns = self._relations[back.source].columns
                    if self._is_named(back) or (is_named and self.reaches.measure_sign(columns[there.other_column], said) > 0):
                        yield _Way([there, back], _NAMED)

    def _measure(self, steps: list[Step], words: list[str], foreign: list[str]) -> int:
        """How much a question asks for the table at the end of a way: it names it, or its columns, or one that refers to it."""
        relation, last = self._relations[steps[-1].target], steps[-1]
        stems = set(map(stem, foreign))
        is_named = find_column([" ".join(relation.name)], foreign) is not None
        is_whole = bool(relation.name) and stems.issuperset(relation.name)
        alike = {other for each in stems for other in read_related().get(each, ())}
        is_meant = bool(relation.name) and alike.issuperset(relation.name)
        columns = sum(not _ANY.issuperset(parts) and stems.issuperset(parts) for parts in map(set, relation.cores) if parts)
        is_referred = last.is_reference and find_column([self._relations[last.source].columns[last.column]], words) is not None
        columns = columns or find_column(relation.columns, foreign) is not None
        return max(_NAMED * (is_named or is_meant) + is_whole + min(columns, _MEANT), _NAMED * is_referred)


def _find_shortest(steps: list[Step], start: int, most: int) -> dict[int, list[Step]]:
    """The shortest way to each relation that can be reached. One that is less than sure is as long as two."""
    paths: dict[int, list[Step]] = {start: []}
    lengths = {start: 0}
    reached = [start]
    for relation in reached:
        for step in steps if lengths[relation] < most else ():
            length = lengths[relation] + (1 if step.confidence >= SURE else 2)
            if step.source == relation and length < lengths.get(step.target, most + 1):
                paths[step.target], lengths[step.target] = [*paths[relation], step], length
                reached.append(step.target)
    return paths
