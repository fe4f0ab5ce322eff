"""Connects what a question names: the smallest trees of rows that join its mentions, and what it asks for around them.

"Which airline flies from A to B?" names two airports. A row of the routes refers to both, and to the airline.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from heapq import nlargest
from itertools import combinations, islice

from msgspec import Struct

from overspill.lexical.cells import find_column, read_rows
from overspill.lexical.following import follow
from overspill.lexical.index import Index
from overspill.lexical.mentions import Question, Words, find_anchors, find_sayings
from overspill.lexical.query import Query
from overspill.lexical.rank import Ranking
from overspill.lexical.relations import Relation, Step, last_parts, list_tables, read_references
from overspill.lexical.words import read_lexicon, read_related, split_words, stem
from overspill.tables.schema import POSSIBLE, SURE

_SPREAD = 3
"""How many references a row may be away from what the question names, to say it."""
_MAX_STEPS = 4
"""How far what is asked for may be from there. A reference that is less than sure is as long as two."""
_MAX_CENTERS, _MAX_SHOWN, _MAX_MEETING, _MAX_FOUND = 60, 8, 40, 60
_FAR = 3
"""How far to follow references if the question asks for nothing that is known."""
_MAX_NAMED, _MAX_GROUPS = 6, 3
"""How many rows a name may mean, and how many things a question may name."""
_MAX_BESIDE = 5
"""Rows of each way that the question does not ask for."""
_NEARLY, _MORE = 0.99, 1.01
_MIN_SHARE = 0.5
"""Rows with less of what the best one says are not what others refer to."""
_NAMED, _MEANT = 4, 3
"""What the name of a table or of a column that refers to it is worth, and the most that its other columns are."""
_ANY = frozenset(map(stem, ("name", "title", "type", "number", "date")))
"""Parts of the names of columns that every table has."""


class Connection(Struct, frozen=True):
    """Rows, likeliest first: those in which several mentions meet with what is asked for there, and what else is around."""

    meeting: list[int] = []
    around: list[int] = []


class _Reach(Struct):
    """What of the question a row says, itself and by the rows that it refers to."""

    said: Words
    by: dict[tuple[int, int], Words] = {}
    """By column, and the row that it refers to."""

    @property
    def words(self) -> Words:
        return self.said.union(*self.by.values())


class _Way(Struct, frozen=True):
    steps: list[Step]
    worth: int
    """How much the question asks for what is at its end."""


def connect(index: Index, query: Query, ranking: Ranking) -> Connection:
    if not list_tables(index):
        return Connection()
    connector = _Connector(index, query, ranking)
    meeting = connector.find_meeting()
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
        self._numbers = {relation.table.first: number for number, relation in enumerate(found.relations)}
        self._named = {number for number, each in enumerate(found.relations) if self._names(" ".join(each.name))}
        self._sure = {(step.source, step.target) for step in found.steps if step.confidence >= SURE}
        self._steps = [step for step in found.steps if self._is_usable(step)]
        self._crosslinks = [step for step in found.steps if step.confidence >= POSSIBLE or step in self._steps]
        self._sayings = find_sayings(index, self._question, ranking, found.relations)
        self._reached = {record: _Reach(saying.said) for record, saying in self._sayings.items()}
        self._near: dict[int, Words] = {}

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

    # From the mentions to the rows in which they meet.

    def find_meeting(self) -> list[int]:
        """The rows that say most, more than any says alone."""
        measure = self._question.measure
        self._spread({record: saying.said for record, saying in self._sayings.items() if saying.is_naming})
        self._near = {record: reach.words for record, reach in self._reached.items()}
        for _ in range(1, _SPREAD):
            self._spread(self._list_best())
        worths = {record: measure(reach.words) for record, reach in self._reached.items() if reach.by}
        most = max(worths.values(), default=0.0)
        if most <= _MORE * max((measure(saying.said) for saying in self._sayings.values()), default=0.0):
            return []
        return self._order([record for record, worth in worths.items() if worth >= _NEARLY * most])[:_MAX_CENTERS]

    def _list_best(self) -> dict[int, Words]:
        """What the rows say that refer to others, of those that say most."""
        words = {record: reach.words for record, reach in self._reached.items() if reach.by}
        worths = {record: self._question.measure(said) for record, said in words.items()}
        least = _MIN_SHARE * max(worths.values(), default=0.0)
        best = (record for record in worths if worths[record] >= least)
        return {record: words[record] for record in sorted(best, key=lambda record: (-worths[record], record))}

    def _spread(self, sources: dict[int, Words]) -> None:
        """Adds to each row what these say that it refers to."""
        by_table = self._group(sources)
        changed: set[int] = set()
        for step in self._crosslinks:
            if step.is_reference or step.source == step.target or step.source not in by_table:
                continue
            for target, record in follow(self._index, self._relations, step, by_table[step.source]):
                by = self._reached.setdefault(record, _Reach(frozenset())).by
                by[step.other_column, target] = sources[target] | by.get((step.other_column, target), frozenset())
                changed.add(record)
        for record in changed:
            self._reached[record].said |= self._read_forms(record)

    def _read_forms(self, record: int) -> Words:
        """What a row says in other words than a name, which tells it from others that refer to the same."""
        relation = self._relation_of(record)
        cells = next(read_rows(self._index, relation.table, [record]))[1]
        return frozenset[int]().union(*map(self._question.find_forms, relation.columns, cells))

    def _order(self, rows: list[int]) -> list[int]:
        """Those first whose references have the direction of the question, and say most of it without others between."""
        direction = {record: self._measure_direction(record) for record in rows}
        kept = [record for record in rows if direction[record][0] >= 0] or rows
        near = {record: self._question.measure(self._near.get(record, frozenset())) for record in kept}
        scores = self._ranking.scores
        return sorted(
            kept, key=lambda row: (-direction[row][0], -near[row], -direction[row][1], -scores.get(row, 0.0), row)
        )

    def _measure_direction(self, record: int) -> tuple[int, int]:
        """How many references of a row have the end that the question says, less those that have the other; and how many pairs of
        them are in its order."""
        columns = self._relation_of(record).columns
        by = self._reached[record].by.items()
        signs = sum(self._measure_sign(columns[column], said) for (column, _), said in by)
        ordered = sorted((column, min(said)) for (column, _), said in by if said)
        pairs = combinations(ordered[:_MAX_SHOWN], 2)
        return signs, sum(one[1] < two[1] for one, two in pairs if one[0] != two[0])

    def _measure_sign(self, column: str, said: Words) -> int:
        """1 if a column is for the end that the question has before these words, as in "to A"; -1 if it is for the other."""
        before = stem(self._question.words[min(said) - 1]) if said and min(said) > 0 else ""
        parts, (first, last) = set(last_parts(column)), _read_ends()
        if before not in first and before not in last:
            return 0
        same, other = (first, last) if before in first else (last, first)
        return bool(parts & same) - bool(parts & other)

    # From there to what is asked for.

    def list_named(self) -> Iterator[list[int]]:
        """The rows of each thing that the question names, the most telling first."""
        taken: set[int] = set()
        named = {record: saying.told for record, saying in self._sayings.items() if saying.told}
        for _ in range(_MAX_GROUPS):
            worths = {record: self._question.measure(words - taken) for record, words in named.items()}
            most = max(worths.values(), default=0.0)
            likely = [record for record, worth in worths.items() if worth >= _NEARLY * most]
            if not likely or most <= 0.4 * max(self._question.worth):
                return
            best = [record for record in likely if not named[record].isdisjoint(named[likely[0]])]
            few = best if len(best) <= _MAX_NAMED else [record for record in best if self._sayings[record].is_only]
            if 0 < len(few) <= _MAX_NAMED:
                yield few
            taken.update(*(named[record] for record in best))

    def _is_only(self, record: int) -> bool:
        """Whether the question says which row of its table it means. What several rows have describes what is asked for."""
        table, saying = self._index.outline.table_of(record), self._sayings.get(record)
        others = (other for other in self._sayings if other != record and table and table.first <= other < table.last)
        return saying is not None and all(self._sayings[other].said != saying.said for other in others)

    def walk(self, centers: list[int], *, are_meeting: bool = False) -> Iterator[int]:
        """What the question asks for around these rows, themselves, and what is on the way.

        Rows in which mentions meet are not left against a reference: that would lead to others of which less is said.
        """
        reached = [self._reached[row] for row in centers if row in self._reached]
        said = frozenset[int]().union(*(reach.words for reach in reached))
        known = {*centers, *(target for reach in reached for _, target in reach.by if self._is_only(target))}
        groups = self._group(centers)
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
        if are_meeting:
            yield from sorted(centers, key=lambda row: row not in used)[:_MAX_SHOWN]
            others = [step for step in self._crosslinks if step.source != step.target]
            yield from () if ways else (row for row in self._refer(centers, 1, others) if row not in known)
            return
        yield from passed
        yield from self._refer(centers, 1 if ways else _FAR)
        own = [step for step in self._steps if step.source == step.target and not step.is_reference]
        yield from self._list_referring(groups, own if ways else self._steps)

    def _refer(self, rows: Iterable[int], depth: int, steps: Sequence[Step] = ()) -> Iterator[int]:
        """What rows refer to, and so on. Lists are followed from these rows alone: they lead to many."""
        groups = self._group(rows)
        for number in range(depth):
            found: list[int] = []
            for step in steps or self._steps:
                relation = self._relations[step.source]
                if step.is_reference and step.source in groups and (number == 0 or step.column not in relation.lists):
                    found += (record for _, record in follow(self._index, self._relations, step, groups[step.source]))
            yield from found
            groups = self._group(found)

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
                    if self._is_named(back) or (is_named and self._measure_sign(columns[there.other_column], said) > 0):
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

    def _group(self, rows: Iterable[int]) -> dict[int, list[int]]:
        groups: dict[int, list[int]] = {}
        for row in rows:
            table = self._index.outline.table_of(row)
            if table and (number := self._numbers.get(table.first)) is not None:
                groups.setdefault(number, []).append(row)
        return groups

    def _relation_of(self, record: int) -> Relation:
        table = self._index.outline.table_of(record)
        assert table
        return self._relations[self._numbers[table.first]]


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


@cache
def _read_ends() -> tuple[frozenset[str], frozenset[str]]:
    """The words for the end that something comes from, and for the one that it leads to."""
    return frozenset(map(stem, read_lexicon("from"))), frozenset(map(stem, read_lexicon("to")))
