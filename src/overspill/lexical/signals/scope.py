"""Scope: in which files to look.

A question that begins with a name and a colon ("parser: …", "fix(parser): …") names the file. What has to be changed is in the
program, not in its tests and documentation, which have the same words.
"""

from __future__ import annotations

import re

from msgspec import Struct

from overspill.lexical.boost import Boost
from overspill.lexical.index import Index
from overspill.lexical.kinds.source import BANNER
from overspill.lexical.outline import Outline
from overspill.lexical.query import Query
from overspill.lexical.rank import Ranking
from overspill.lexical.weights import WEIGHTS
from overspill.lexical.words import read_lexicon, read_task_stems, split_subwords, stem

_SCOPE = re.compile(
    r"(?:\A|[.?!]\s)\s{0,9}(?:(?:[A-Za-z]{1,20}\()?([A-Za-z][\w./-]{0,60})\)?!?:\s|\[([A-Za-z][\w./-]{0,60})\]:?\s)"
)
"""`parser: …`, `fix(parser): …` and `[parser] …`, at the beginning of a sentence."""
_RESULT = re.compile(rb"([^\n]{1,200}?)[:-]\d{1,9}[:-]")
_MAX_PATH_BYTES = 250
_MAX_SHARE = 0.5
"""A name that more of the files have says nothing about where to look."""


class _Files(Struct, frozen=True):
    """The file of each record, or -1, and the words in the path of each file."""

    by_record: list[int]
    words: list[frozenset[str]]


def boost_scope(index: Index, query: Query, ranking: Ranking) -> Boost | None:
    if index.traits.layout not in ("definitions", "results"):
        return None
    scopes = [words for found in _SCOPE.finditer(query.text) if (words := _read_words(found[1] or found[2]) - read_task_stems())]
    asked = {term.key for term in query.terms}
    aside = frozenset(map(stem, read_lexicon("aside")))
    is_change = not asked.isdisjoint(read_task_stems()) and asked.isdisjoint(aside)
    if not scopes and not is_change:
        return None
    files = index.remember(_read_files)
    meant = {number for number, words in enumerate(files.words) if scopes and words >= scopes[0]}
    if len(meant) > _MAX_SHARE * len(files.words):
        meant.clear()
    others = {number for number, words in enumerate(files.words) if is_change and not aside.isdisjoint(words)}
    shares = {**dict.fromkeys(others, WEIGHTS.aside), **dict.fromkeys(meant, WEIGHTS.scope)}
    if not shares:
        return None
    return Boost(rescored={record: score * shares.get(files.by_record[record], 1.0) for record, score in ranking.scores.items()})


def _read_files(index: Index) -> _Files:
    paths = _list_result_paths(index) if index.traits.layout == "results" else _list_banners(index)
    numbers = {path: number for number, path in enumerate(dict.fromkeys(path for path in paths if path))}
    words = [_read_words(path.decode("utf-8", "replace")) for path in numbers]
    return _Files([numbers.get(path, -1) for path in paths], words)


def _list_result_paths(index: Index) -> list[bytes]:
    outline = index.outline
    found = (_RESULT.match(index.text, start, end) for start, end in zip(outline.starts, outline.ends, strict=True))
    return [bytes(place[1]) if place else b"" for place in found]


def _list_banners(index: Index) -> list[bytes]:
    """By record, the line above the file that it is in."""
    outline = index.outline
    above = [_read_banner(index, outline, label) for label in range(len(outline.label_starts))]
    for label, parent in enumerate(outline.label_parents):
        if parent >= 0:
            above[label] = above[parent]
    return [above[label] if label >= 0 else b"" for label in outline.under]


def _read_banner(index: Index, outline: Outline, label: int) -> bytes:
    if outline.label_parents[label] >= 0:
        return b""
    start, end = outline.label_starts[label], min(outline.label_ends[label], outline.label_starts[label] + _MAX_PATH_BYTES)
    return bytes(index.text[start:end]) if BANNER.match(index.text, start, end) else b""


def _read_words(path: str) -> frozenset[str]:
    return frozenset(map(stem, split_subwords(path)))
