"""Shortens records to the lines that matter, or to the pieces that contain the terms of the question."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator
from typing import NamedTuple

from overspill.lexical.index import Index
from overspill.lexical.kinds.lines import split_long
from overspill.lexical.rank import Ranking
from overspill.lexical.words import read_lexicon, split_subwords, stem
from overspill.tables.table import Span, Text
from overspill.text.lines import iterate_lines, join_spans
from overspill.text.regex import regex

_PIECE_BYTES = 160
"""Size of the pieces that trimming keeps or drops; smaller if not even two of them fit."""
_MAX_PIECES = 200
_TOKEN = regex(rb"(?s)\"(?:[^\"\\]++|\\.)*+\"?|[{}\[\],]")
_KEY = regex(rb"\s*+\"([^\"\\]{1,60})\"\s*+:")
_NAMES = ("name", "title", "label")
"""The endings of keys whose values name a record."""
_MAX_NAMES = 3
_INNER_DEPTH = 2


class Member(NamedTuple):
    """A part of a JSON object, and how deeply it is nested."""

    start: int
    end: int
    depth: int
    is_whole: bool = True
    """Whether it is a whole member, not a piece of one."""

    @property
    def is_short(self) -> bool:
        return self.end - self.start <= _PIECE_BYTES


class Trimmer:
    """Remembers how it cut each record, because callers return with more room."""

    def __init__(self, index: Index, ranking: Ranking, cost: Callable[[Span], float]) -> None:
        self._index = index
        self._ranking = ranking
        self._cost = cost
        self._members: dict[int, list[Member]] = {}
        self._parts: dict[tuple[int, int], tuple[list[Span], list[float], list[int]]] = {}

    def list_telling_lines(self, record: int) -> list[Span]:
        """The lines of a record that match the question, or its first line."""
        index, ranking = self._index, self._ranking
        if members := self._split_members(record):
            return _list_telling_members(index, ranking, record, members)
        lines = list(iterate_lines(index.text, index.outline.starts[record], index.outline.ends[record]))
        spots = [position for position, _, term in ranking.hits.get(record, []) if ranking.terms[term].telling]
        held = sorted({bisect_right(lines, position, key=lambda line: line[0]) - 1 for position in spots})
        return join_spans([lines[number] for number in held or [0]])

    def trim(self, record: int, allowed: float) -> list[Span]:
        """The beginning of a record and the pieces with terms of the question, joined if adjacent."""
        key = record, min(_PIECE_BYTES, int(2 * allowed))
        if key not in self._parts:
            self._parts[key] = self._split(*key)
        parts, worths, best_first = self._parts[key]
        taken: set[int] = set()
        for number in best_first:
            price = self._cost(parts[number]) + 1
            if price <= allowed and (worths[number] > 0 or number == 0):
                taken.add(number)
                allowed -= price
        if any(worths) and not any(worths[number] for number in taken):
            return []  # the beginning alone does not tell why the record matches
        return join_spans([parts[number] for number in taken])

    def _split(self, record: int, size: int) -> tuple[list[Span], list[float], list[int]]:
        """The pieces of a record, the worth of each, and those to take, best first."""
        text, ranking, members = self._index.text, self._ranking, self._split_members(record)
        span = self._index.outline.starts[record], self._index.outline.ends[record]
        parts = _join_members(members, size) if len(members) > 1 else list(split_long(text, *span, size))
        worths = _weigh_parts(ranking, record, parts)
        best_first = sorted(range(len(parts)), key=lambda number: (-worths[number], number))
        return parts, worths, list(dict.fromkeys((best_first[0], 0, *best_first)))[:_MAX_PIECES]

    def _split_members(self, record: int) -> list[Member]:
        if not self._index.traits.has_members:
            return []
        if record not in self._members:
            outline = self._index.outline
            self._members[record] = split_members(self._index.text, outline.starts[record], outline.ends[record])
        return self._members[record]


def _list_telling_members(index: Index, ranking: Ranking, record: int, members: list[Member]) -> list[Span]:
    """For each term, the shortest and outermost member that contains it, plus the members that name the record.

    If a value contains the term, fields with the term in their names add nothing.
    """
    best: dict[int, tuple[bool, bool, int, int]] = {}
    for position, end, term in ranking.hits.get(record, []):
        if ranking.terms[term].role != "wording":
            number = bisect_right(members, position, key=lambda member: member.start) - 1
            member = members[number]
            key = _KEY.match(index.text, member.start)
            place = (key is not None and end <= key.end(), not (member.is_short and member.is_whole), member.depth, number)
            best[term] = min(place, best.get(term, place))
    if any(not is_key and not is_mention for is_key, is_mention, *_ in best.values()):
        best = {term: place for term, place in best.items() if not place[1]}
    met = {ranking.terms[term].key for term, (is_key, *_) in best.items() if not is_key}
    keys = {number: _split_key(index.text, member) for number, member in enumerate(members) if member.depth == 1}
    asked = [number for number, parts in keys.items() if any(stem(part) in ranking.asked - met for part in parts)]
    held = {*_list_naming(index.text, members, keys), *asked, *(number for *_, number in best.values())}
    return join_spans([(members[number].start, members[number].end) for number in held])


def _list_naming(text: Text, members: list[Member], keys: dict[int, list[str]]) -> list[int]:
    """The members that identify the record: its first identifier and its names, or else the first short member."""
    short = {number: parts for number, parts in keys.items() if parts and members[number].is_short and members[number].is_whole}
    names = [number for number, parts in short.items() if parts[-1].endswith(_NAMES)][:_MAX_NAMES]
    if not names:
        # Look inside nested objects, as in `{"metadata": {"name": …}}`, and prefer `name` to `generateName`.
        inner = (number for number, member in enumerate(members) if member.depth == _INNER_DEPTH and member.is_short)
        named = [(number, parts) for number in inner if (parts := _split_key(text, members[number])) and parts[-1] in _NAMES]
        names = [number for number, _ in sorted(named, key=lambda pair: len(pair[1]))][:1]
    known = read_lexicon("identifiers")
    identifier = next(([number] for number, parts in short.items() if known & {parts[0], parts[-1]}), list[int]())
    return [*identifier, *names] or [next(iter(short), 0)]


def _split_key(text: Text, member: Member) -> list[str]:
    key = _KEY.match(text, member.start)
    return split_subwords(key[1].decode("utf-8", "replace")) if key else []


def split_members(text: Text, start: int, end: int) -> list[Member]:
    """The innermost members of a JSON object, each with the brackets that follow it. Cuts long members."""
    depth, outer, opened = 0, 1, start
    members: list[Member] = []
    for found in _TOKEN.finditer(text, start, end):
        token = text[found.start() : found.start() + 1]
        if token == b'"':
            continue
        depth += (token in (b"{", b"[")) - (token in (b"}", b"]"))
        if token in (b",", b"{", b"["):
            members += _split_member(text, opened, found.end(), outer)
            opened, outer = found.end(), depth
    return [*members, *_split_member(text, opened, end, outer)]


def _split_member(text: Text, start: int, end: int, depth: int) -> Iterator[Member]:
    return (Member(*part, depth, part == (start, end)) for part in split_long(text, start, end, _PIECE_BYTES))


def _join_members(members: list[Member], size: int) -> list[Span]:
    """Pieces of about this size that end between members, to keep each value with its key."""
    parts = [(members[0].start, members[0].end)]
    for member in members[1:]:
        first, last = parts[-1]
        if member.end - first <= size:
            parts[-1] = (first, member.end)
        else:
            parts.append((last, member.end))
    return parts


def _weigh_parts(ranking: Ranking, record: int, parts: list[Span]) -> list[float]:
    starts = [start for start, _ in parts]
    held: list[set[int]] = [set() for _ in parts]
    for position, _, term in ranking.hits.get(record, []):
        held[bisect_right(starts, position) - 1].add(term)
    return [sum(ranking.worth[term] for term in sorted(terms)) for terms in held]


def intersect_spans(spans: list[Span], within: list[Span]) -> list[Span]:
    return [(max(start, low), min(end, high)) for start, end in spans for low, high in within if max(start, low) < min(end, high)]
