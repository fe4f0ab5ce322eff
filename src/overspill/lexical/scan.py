"""Finds the terms of a query in a text, in one pass of a linear-time matcher."""

from __future__ import annotations

from collections.abc import Iterator

from overspill.lexical.outline import Text
from overspill.lexical.query import Term
from overspill.lexical.words import KEYWORDS, is_unspaced, split_subwords, split_words, stem
from overspill.text.encoding import decode
from overspill.text.patterns import compile_pattern

_SAMPLES = 16
_SAMPLE_BYTES = 8_192
_MIN_BYTES_PER_HIT = 1_200
"""Terms that together occur more often than this are used only if there are no others."""

_ESCAPES = (rb"\b", rb"\f", rb"\n", rb"\r", rb"\t")
"""Escapes in strings, whose letter seems to begin the next word."""
_WORD_START = r"(?:\b|\\[bfnrt])"
_MATCHER_MEMORY = 64 << 20
"""With less memory for its states, the matcher is many times slower."""
_MAX_ASCII = 127
_MAX_CHARACTER_BYTES = 4
_PART_EXACTNESS = 0.4
_ATTACHED_EXACTNESS = 0.7
_EDGES = tuple(bytes((byte,)) for byte in b"\"'` \t\r\n|,;:.()[]{}<>=")
_JOINTS = (b".", b"-", b"+", b",", b"_")

_OTHER_SPELLINGS = {"е": "ёЁ"}
"""Letters that a text may spell differently from a stem."""

Hit = tuple[int, int, int, float]
"""Start, end, number of the term, exactness of the match (0…1)."""


class Finder:
    """The terms of a query as one pattern, and the meaning of each spelling it finds; in code, also matching keywords."""

    def __init__(self, terms: tuple[Term, ...], *, code: bool) -> None:
        self.terms = terms
        self._stems = {term.key: number for number, term in enumerate(terms) if not term.literal}
        self._keywords = {
            keyword: number for key, number in self._stems.items() if code for keyword in sorted(KEYWORDS.get(key, ()))
        }
        self._literals = {term.key: number for number, term in enumerate(terms) if term.literal}
        self._signs = [key for key in self._stems if len(key) == 1 and is_unspaced(key)]
        self._exact = frozenset(self._literals.values())
        self._known: dict[bytes, tuple[tuple[int, float], ...]] = {}
        self._pattern = compile_pattern(self._spell(), max_memory=_MATCHER_MEMORY)

    def _spell(self) -> bytes:
        literals = sorted(self._literals, key=len, reverse=True)
        prefixes = sorted({*map(_prefix, self._stems), *self._keywords}, key=len, reverse=True)
        parts: list[str] = []
        if literals:
            parts.append("(?i:" + "|".join(_add_boundaries(key) for key in literals) + ")")
        if prefixes:
            plain = [_escape(key) for key in prefixes if key[0].isascii()]
            foreign = [_escape(key) for key in prefixes if not key[0].isascii()]
            if plain:
                parts.append(f"(?:{_WORD_START}|_)(?i:" + "|".join(plain) + ")[a-zA-Z\\x80-\\xf4]*")
            if foreign:
                # The matcher does not treat bytes above 127 as letters, so it sees no start of a word there.
                parts.append("(?i:" + "|".join(foreign) + ")[a-zA-Z\\x80-\\xf4]*")
            humps = [_escape(key[0].upper() + key[1:]) for key in prefixes if len(key) > 2 and key[0].isascii() and key.isalpha()]
            if humps:
                parts.append("[a-z0-9](?:" + "|".join(humps) + ")[a-z]*")
        return "|".join(parts).encode("latin-1")

    def hits(self, text: Text, start: int, end: int) -> Iterator[Hit]:
        known = self._known
        for found in self._pattern.finditer(text, start, end):
            start, end = found.span()
            spelling = bytes(text[start:end])
            if spelling[:2] in _ESCAPES:
                start, spelling = start + 2, spelling[2:]
            if spelling[-1:].isdigit() and text[end : end + 1].isdigit():
                continue
            if spelling[0] > _MAX_ASCII and _continues_word(text, start, decode(spelling)):
                continue
            meanings = known.get(spelling)
            if meanings is None:
                meanings = known[spelling] = self._meanings(spelling)
            for number, exactness in meanings:
                if number in self._exact:
                    exactness *= _measure_exactness(text, start, end)
                yield start, end, number, exactness

    def _meanings(self, spelling: bytes) -> tuple[tuple[int, float], ...]:
        word = decode(spelling)
        lower = word.lower()
        found: dict[int, float] = {}
        if lower in self._literals:
            found[self._literals[lower]] = 1.0
        if word in self._keywords:
            found[self._keywords[word]] = 1.0
        for part in dict.fromkeys((*split_subwords(word), *split_words(word), *(sign for sign in self._signs if sign in word))):
            if (number := self._stems.get(stem(part))) is not None:
                found[number] = 1.0
            elif part and (near := self._nearest(part)) is not None:
                found.setdefault(near, 0.5)
        return tuple(found.items())

    def _nearest(self, word: str) -> int | None:
        """A term that is slightly shorter or longer than the word: Asia, Asian."""
        for key, number in self._stems.items():
            shorter = min(len(key), len(word))
            if shorter >= 4 and abs(len(key) - len(word)) <= 3 and key[:shorter] == word[:shorter]:
                return number
        return None


def _measure_exactness(text: Text, start: int, end: int) -> float:
    """How exactly a spelling matches: 3 hardly in 66.3, nor 1.2 in 1.2.3; 2.0 mostly in ^2.0."""
    before, after = text[max(0, start - 2) : start], text[end : end + 2]
    if (after[:1] in _JOINTS and after[1:].isalnum()) or (before[1:] in _JOINTS and before[:1].isalnum()):
        return _PART_EXACTNESS
    return 1.0 if (not before or before[-1:] in _EDGES) and (not after or after[:1] in _EDGES) else _ATTACHED_EXACTNESS


def _continues_word(text: Text, start: int, word: str) -> bool:
    """Whether this is only the rest of a word."""
    before = bytes(text[max(0, start - _MAX_CHARACTER_BYTES) : start])
    return decode(before)[-1:].isalpha() and before[-2:] not in _ESCAPES and not is_unspaced(word)


def _prefix(key: str) -> str:
    """The part of a stem to search for: without its last letter if that may change (Asian, Asia)."""
    return key[:-1] if len(key) > 3 and (key[-1] in "iey" or (len(key) > 4 and key.endswith("an"))) else key


def _escape(text: str) -> str:
    """Adds capitals of letters above 127, because the matcher ignores case only in single bytes."""
    return "".join(character if character.isascii() and character.isalnum() else _spellings(character) for character in text)


def _spellings(character: str) -> str:
    forms = dict.fromkeys((character, character.upper(), *_OTHER_SPELLINGS.get(character, "")))
    spelt = ["".join(f"\\x{byte:02x}" for byte in form.encode("utf-8", "replace")) for form in forms]
    return spelt[0] if len(spelt) == 1 else f"(?:{'|'.join(spelt)})"


def _add_boundaries(literal: str) -> str:
    opening = _WORD_START if literal[0].isascii() and literal[0].isalnum() else ""
    closing = "\\b" if literal[-1].isascii() and literal[-1].isalnum() else ""
    return f"{opening}{_escape(literal)}{closing}"


def drop_common_terms(terms: tuple[Term, ...], text: Text, end: int, *, code: bool) -> tuple[tuple[Term, ...], bool]:
    """Drops terms that occur everywhere, judging by samples: keeps the rarest while their hits stay countable.

    Also returns whether even the rarest occurs everywhere.
    """
    if end <= 8 * _SAMPLES * _SAMPLE_BYTES or not terms:
        return terms, False
    finder = Finder(terms, code=code)
    counts = [0] * len(terms)
    step = (end - _SAMPLE_BYTES) // (_SAMPLES - 1)
    for number in range(_SAMPLES):
        for _, _, term, _ in finder.hits(text, number * step, number * step + _SAMPLE_BYTES):
            counts[term] += 1
    kept: set[int] = set()
    room = _SAMPLES * _SAMPLE_BYTES // _MIN_BYTES_PER_HIT
    rarest_first = sorted(range(len(counts)), key=counts.__getitem__)
    for number in rarest_first:
        room -= counts[number]
        if room >= 0 or not kept:
            kept.add(number)
    everywhere = counts[rarest_first[0]] > _SAMPLES * _SAMPLE_BYTES // _MIN_BYTES_PER_HIT
    return tuple(term for number, term in enumerate(terms) if number in kept), everywhere
