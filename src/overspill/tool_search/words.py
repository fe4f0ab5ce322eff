"""Ranks tools by the words of a query: BM25 over their names, descriptions, arguments and servers."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain, islice
from typing import Any, cast

from msgspec import Struct

from overspill.lexical.words import read_lexicon, read_related, split_subwords, split_words, stem

_FIELDS = {"name": 4.0, "server": 1.0, "description": 1.5, "arguments": 1.0}
"""The weight of a word by the field it is in."""
_MAX_WORDS = 200
"""The most words of one field. Cramming more words into a description does not help it."""
_SATURATION, _LENGTH_SHARE = 0.6, 0.75
_RELATED = 0.65
"""The weight of a word that means nearly the same as a word of the query."""
_MAX_QUERY_WORDS = 64
_MAX_DEPTH = 6


class SearchedTool(Struct, frozen=True):
    name: str
    """The name that the model uses."""
    description: str
    parameters: Mapping[str, Any]
    """A JSON Schema."""
    server: str = ""
    own_name: str = ""
    """The server's name for it, if that differs."""
    is_destructive: bool = False
    """Whether its server says that it is destructive."""


class WordRanking:
    def __init__(self, tools: Sequence[SearchedTool]) -> None:
        counted = [{name: Counter(islice(words, _MAX_WORDS)) for name, words in _split_fields(tool).items()} for tool in tools]
        usual = {name: sum(fields[name].total() for fields in counted) / max(1, len(counted)) or 1.0 for name in _FIELDS}
        self._names = {tool.name.casefold(): at for at, tool in enumerate(tools)}
        self._postings: dict[str, list[tuple[int, float]]] = {}
        for at, fields in enumerate(counted):
            weights: Counter[str] = Counter()
            for name, words in fields.items():
                length = 1 - _LENGTH_SHARE + _LENGTH_SHARE * words.total() / usual[name]
                for word, times in words.items():
                    weights[word] += _FIELDS[name] * times / length  # pyright: ignore[reportArgumentType]
            for word, weight in weights.items():
                self._postings.setdefault(word, []).append((at, weight * (_SATURATION + 1) / (weight + _SATURATION)))
        self._count = len(tools)

    def score(self, query: str) -> dict[int, float]:
        """Score the tools, by index, that have a word of the query or a word that means nearly the same."""
        scores: dict[int, float] = {}
        for spellings in _expand(query):
            best: dict[int, float] = {}
            for word, worth in spellings.items():
                postings = self._postings.get(word, ())
                worth *= math.log(1 + (self._count - len(postings) + 0.5) / (len(postings) + 0.5))
                for at, weight in postings:
                    best[at] = max(best.get(at, 0.0), worth * weight)
            for at, weight in best.items():
                scores[at] = scores.get(at, 0.0) + weight
        if (named := self._names.get(query.strip().casefold())) is not None:
            scores[named] = math.inf
        return scores


def _expand(query: str) -> list[dict[str, float]]:
    """Return, for each word of the query, weights for it and for words that mean nearly the same."""
    words = list(islice(_split(query), _MAX_QUERY_WORDS))
    telling = {stem(word): None for word in words if word not in read_lexicon("stop")} or {stem(word): None for word in words}
    related = (read_related("actions"), read_related("related"))
    return [{other: _RELATED for known in related for other in known.get(word, ())} | {word: 1.0} for word in telling]


def _split_fields(tool: SearchedTool) -> dict[str, Iterator[str]]:
    texts = {
        "name": [tool.name.removeprefix(tool.server)],
        "server": [tool.server],
        "description": [tool.description],
        "arguments": _list_texts(tool.parameters, 0),
    }
    return {name: map(stem, chain.from_iterable(map(_split, said))) for name, said in texts.items()}


def _split(text: str) -> Iterator[str]:
    """Yield words, and the parts of names."""
    for word in text[: 20 * _MAX_WORDS].split():
        yield from split_words(word)
        if not word.islower() and word.isascii() and len(parts := split_subwords(word)) > 1:
            yield from (part for part in parts if len(part) > 1)


def _list_texts(schema: object, depth: int) -> Iterator[str]:
    """Yield the names, descriptions and choices of arguments."""
    if not isinstance(schema, dict) or depth > _MAX_DEPTH:
        return
    known = cast("dict[str, Any]", schema)
    properties = known.get("properties")
    for name, inner in cast("dict[str, Any]", properties).items() if isinstance(properties, dict) else ():
        yield name
        yield from _list_texts(inner, depth + 1)
    if depth and isinstance(said := known.get("description"), str):
        yield said
    choices = known.get("enum")
    yield from (each for each in cast("list[Any]", choices) if isinstance(each, str)) if isinstance(choices, list) else ()
    yield from _list_texts(known.get("items"), depth + 1)
