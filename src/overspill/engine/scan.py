"""Finding the terms of a query in a text, in one pass of a linear-time matcher."""

from __future__ import annotations

import re
from collections.abc import Iterator

import re2

from overspill.engine.decode import decode
from overspill.engine.query import Query, Term
from overspill.engine.words import stem, subwords

_SAMPLES = 24
_SAMPLE = 16_384
_DENSE = 250
"""A term that stands every so many bytes says nothing and is only looked for when there is no other."""

Hit = tuple[int, int, int, float]
"""Start, end, number of the term, how exact the match is (0…1)."""


class Finder:
    """The terms of a query as one pattern, and what each spelling it meets stands for."""

    def __init__(self, terms: tuple[Term, ...]) -> None:
        self.terms = terms
        self._stems = {term.key: number for number, term in enumerate(terms) if not term.literal}
        self._literals = {term.key: number for number, term in enumerate(terms) if term.literal}
        self._known: dict[bytes, tuple[tuple[int, float], ...]] = {}
        options = re2.Options()
        options.log_errors = False
        options.encoding = re2.Options.Encoding.LATIN1
        self._pattern = re2.compile(self._spell(), options)

    def _spell(self) -> bytes:
        literals = sorted(self._literals, key=len, reverse=True)
        prefixes = sorted({_prefix(key) for key in self._stems}, key=len, reverse=True)
        parts: list[str] = []
        if literals:
            parts.append("(?i:" + "|".join(_bounded(key) for key in literals) + ")")
        if prefixes:
            parts.append("(?:\\b|_)(?i:" + "|".join(map(_escape, prefixes)) + ")[a-zA-Z\\x80-\\xf4]*")
            humps = [_escape(key[0].upper() + key[1:]) for key in prefixes if len(key) > 2 and key[0].isascii() and key.isalpha()]
            if humps:
                parts.append("[a-z0-9](?:" + "|".join(humps) + ")[a-z]*")
        return "|".join(parts).encode("latin-1")

    def hits(self, text: bytes, start: int, end: int) -> Iterator[Hit]:
        known = self._known
        for found in self._pattern.finditer(text, start, end):
            spelling = found.group()
            meanings = known.get(spelling)
            if meanings is None:
                meanings = known[spelling] = self._meanings(spelling)
            for number, exactness in meanings:
                yield found.start(), found.end(), number, exactness

    def _meanings(self, spelling: bytes) -> tuple[tuple[int, float], ...]:
        word = decode(spelling)
        lower = word.lower()
        found: dict[int, float] = {}
        if lower in self._literals:
            found[self._literals[lower]] = 1.0
        for part in dict.fromkeys((*subwords(word), *re.split(r"[\W_]+", lower))):
            if (number := self._stems.get(stem(part))) is not None:
                found[number] = 1.0
            elif part and (near := self._nearest(part)) is not None:
                found.setdefault(near, 0.5)
        return tuple(found.items())

    def _nearest(self, word: str) -> int | None:
        """A word that only goes on a little after the term, or the other way round: Asia, Asian."""
        for key, number in self._stems.items():
            shorter = min(len(key), len(word))
            if shorter >= 4 and abs(len(key) - len(word)) <= 3 and key[:shorter] == word[:shorter]:
                return number
        return None


def _prefix(key: str) -> str:
    return key[:-1] if len(key) > 3 and key[-1] in "iey" else key


def _escape(text: str) -> str:
    return "".join(f"\\x{byte:02x}" if not chr(byte).isalnum() or byte > 127 else chr(byte) for byte in text.encode("utf-8", "replace"))


def _bounded(literal: str) -> str:
    opening = "\\b" if literal[0].isascii() and literal[0].isalnum() else ""
    closing = "\\b" if literal[-1].isascii() and literal[-1].isalnum() else ""
    return f"{opening}{_escape(literal)}{closing}"


def telling(query: Query, text: bytes, end: int) -> tuple[Term, ...]:
    """The terms without those that stand everywhere, judged by samples; all of them when nothing else is left."""
    finder = Finder(query.terms)
    if end <= _SAMPLES * _SAMPLE * 2:
        return query.terms
    counts = [0] * len(query.terms)
    step = (end - _SAMPLE) // (_SAMPLES - 1)
    for number in range(_SAMPLES):
        for _, _, term, _ in finder.hits(text, number * step, number * step + _SAMPLE):
            counts[term] += 1
    rare = tuple(term for term, count in zip(query.terms, counts, strict=True) if count * _DENSE < _SAMPLES * _SAMPLE)
    return rare or query.terms
