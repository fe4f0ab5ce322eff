"""Finds the terms of a query in one pass of a linear-time matcher."""

from __future__ import annotations

import html
from collections.abc import Callable, Iterator
from html.entities import codepoint2name
from typing import NamedTuple, TypeVar

from overspill.lexical.query import Term
from overspill.lexical.words import is_unspaced, read_keywords, split_subwords, split_words, stem
from overspill.tables.table import Text
from overspill.text.encoding import decode
from overspill.text.patterns import Pattern, compile_pattern, find_spans
from overspill.text.regex import regex

T = TypeVar("T")

_PIECE_BYTES = 1 << 20
_MAX_WORD_BYTES = 4_096
_WORD_ENDS = (b"\n", b" ", b'"', b",", b">")
_SAMPLES = 16
_SAMPLE_BYTES = 8_192
_MAX_REMEMBERED_TERMS = 10_000
_MAX_COMMON_HITS = 5_000
"""Stop counting terms that occur everywhere after this many hits."""

_ESCAPES = (rb"\b", rb"\f", rb"\n", rb"\r", rb"\t")
"""Escapes in strings whose letter looks like the beginning of the next word."""
_WORD_START = r"(?:\b|\\[bfnrt])"
_RAW_WORD_START = r"(?:\b|\\[bfnrt]|\x1b\[[0-9;]{0,20}m)"
"""In stored bytes, a colour may come right before a word."""
_LETTERS = r"[a-zA-Z\x80-\xf4]*"
_RAW_LETTERS = r"(?:[a-zA-Z\x80-\xf4]|\\u[0-9a-fA-F]{4}|&(?:[a-zA-Z]{2,8}|#[0-9]{2,5}|#[xX][0-9a-fA-F]{2,4});)*"
"""In stored bytes, a letter may be escaped or an entity."""
_COLOUR = regex(rb"\x1b\[[0-9;]*+m")
_ESCAPED = regex(rb"\\u[0-9a-fA-F]{4}|&")
_MATCHER_MEMORY = 64 << 20
"""With less memory for its states, the matcher would be many times slower."""
_LAST_ASCII = b"\x7f"
_MAX_CHARACTER_BYTES = 4
_MAX_SHORT_ESCAPE = 0xFFFF
_ESCAPED_LETTER = regex(r"\\u([0-9a-fA-F]{4})")

_OTHER_SPELLINGS = {"е": "ёЁ"}
"""Letters whose spelling in text may differ from that in a stem."""

Hit = tuple[int, int, int]
"""Start, end, number of the term."""


class _Spelling(NamedTuple):
    """A match of the pattern: where the word begins in it, and which term it is."""

    offset: int
    meanings: tuple[int, ...]
    may_be_part: bool
    """Whether the word may continue past its apparent edge, because the pattern knows only ASCII letters."""


class Finder:
    """The terms of a query as one pattern, and the term for each spelling it finds. In code, it also matches keywords.

    If `raw`, it searches the bytes as stored: words may have colour codes between them, letters may be escapes or entities.
    """

    def __init__(self, terms: tuple[Term, ...], *, code: bool, raw: bool = False) -> None:
        self._raw = raw
        self.terms = terms
        self._stems = {term.key: number for number, term in enumerate(terms) if not term.literal}
        self._keywords = {
            keyword: number for key, number in self._stems.items() if code for keyword in sorted(read_keywords().get(key, ()))
        }
        self._literals = {term.key: number for number, term in enumerate(terms) if term.literal}
        self._signs = [key for key in self._stems if len(key) == 1 and is_unspaced(key)]
        self._known: dict[bytes, _Spelling] = {}
        self._pattern = compile_pattern(self._spell(), max_memory=_MATCHER_MEMORY)

    def _spell(self) -> bytes:
        literals = sorted(self._literals, key=len, reverse=True)
        prefixes = sorted({*map(_prefix, self._stems), *self._keywords}, key=len, reverse=True)
        parts: list[str] = []
        if literals:
            parts.append("(?i:" + "|".join(self._spell_literal(key) for key in literals) + ")")
        if prefixes:
            raw, letters = self._raw, _RAW_LETTERS if self._raw else _LETTERS
            plain = [_escape(key, raw) for key in prefixes if key[0].isascii()]
            foreign = [_escape(key, raw) for key in prefixes if not key[0].isascii()]
            if plain:
                opening = _RAW_WORD_START if raw else _WORD_START
                parts.append(f"(?:{opening}|_)(?i:" + "|".join(plain) + ")" + letters)
            if foreign:
                # The matcher does not treat bytes above 127 as letters, so it cannot find the start of a word there.
                parts.append("(?i:" + "|".join(foreign) + ")" + letters)
            humps = [
                _escape(key[0].upper() + key[1:], raw) for key in prefixes if len(key) > 2 and key[0].isascii() and key.isalpha()
            ]
            if humps:
                parts.append("[a-z0-9](?:" + "|".join(humps) + ")[a-z]*")
        return "|".join(parts).encode("latin-1")

    def _spell_literal(self, key: str) -> str:
        word_start = _RAW_WORD_START if self._raw else _WORD_START
        opening = word_start if key[0].isascii() and key[0].isalnum() else ""
        closing = "\\b" if key[-1].isascii() and key[-1].isalnum() else ""
        return f"{opening}{_escape(key, self._raw)}{closing}"

    def hits(self, text: Text, start: int, end: int) -> Iterator[Hit]:
        known = self._known
        for piece in iterate_pieces(text, start, end):
            for start, end in find_spans(self._pattern, text, *piece):
                spelling = known.get(spelt := bytes(text[start:end]))
                if spelling is None:
                    spelling = known[spelt] = self._read(spelt)
                offset, meanings, may_be_part = spelling
                start += offset
                if may_be_part and _is_part_of_word(text, start, end):
                    continue
                for number in meanings:
                    yield start, end, number

    def _read(self, found: bytes) -> _Spelling:
        offset = 2 if found[:2] in _ESCAPES else 0
        if self._raw and (colour := _COLOUR.match(found, offset)):
            offset = colour.end()
        word = found[offset:]
        return _Spelling(offset, self._meanings(word), word[-1:].isdigit() or word[:1] > _LAST_ASCII)

    def _meanings(self, spelling: bytes) -> tuple[int, ...]:
        word = decode(spelling)
        if self._raw and _ESCAPED.search(spelling):
            word = html.unescape(_ESCAPED_LETTER.sub(lambda found: chr(int(found[1], 16)), word))
        parts = (*split_subwords(word), *split_words(word), *(sign for sign in self._signs if sign in word))
        found = (self._literals.get(word.lower()), self._keywords.get(word), *map(self._find_stem, parts))
        return tuple(dict.fromkeys(number for number in found if number is not None))

    def _find_stem(self, word: str) -> int | None:
        """The term that has the stem of a word, or else one that is slightly shorter or longer: Asia, Asian."""
        if (number := self._stems.get(stem(word))) is not None:
            return number
        for key, number in self._stems.items():
            shorter = min(len(key), len(word))
            if shorter >= 4 and abs(len(key) - len(word)) <= 3 and key[:shorter] == word[:shorter]:
                return number
        return None


def _is_part_of_word(text: Text, start: int, end: int) -> bool:
    """Whether this is only the beginning of a number, or the rest of a word."""
    word = bytes(text[start:end])
    if word[-1:].isdigit() and text[end : end + 1].isdigit():
        return True
    if word[:1] <= _LAST_ASCII:
        return False
    before = bytes(text[max(0, start - _MAX_CHARACTER_BYTES) : start])
    return decode(before)[-1:].isalpha() and before[-2:] not in _ESCAPES and not is_unspaced(decode(word))


def _prefix(key: str) -> str:
    """The part of a stem to search for: without its last letter if that may change (citi, city)."""
    return key[:-1] if len(key) > 3 and key[-1] in "iey" else key


def _escape(text: str, raw: bool = False) -> str:
    """A pattern for the text, with capitals of non-ASCII letters, because the matcher ignores case only in single bytes."""
    return "".join(character if character.isascii() and character.isalnum() else _spellings(character, raw) for character in text)


def _spellings(character: str, raw: bool) -> str:
    forms = dict.fromkeys((character, character.upper(), *_OTHER_SPELLINGS.get(character, "")))
    spelt = ["".join(f"\\x{byte:02x}" for byte in form.encode("utf-8", "replace")) for form in forms]
    if raw and not character.isascii():
        spelt += [way for form in forms if len(form) == 1 for way in _escaped_spellings(form)]
    return spelt[0] if len(spelt) == 1 else f"(?:{'|'.join(spelt)})"


def _escaped_spellings(letter: str) -> Iterator[str]:
    """How JSON and HTML may spell a letter without using it."""
    code = ord(letter)
    if code <= _MAX_SHORT_ESCAPE:
        yield rf"\\u(?i:{code:04x})"
    yield f"&#(?:0*{code}|[xX]0*(?i:{code:x}));"
    if name := codepoint2name.get(code):
        yield f"&{name};"


def iterate_pieces(text: Text, start: int, end: int) -> Iterator[tuple[int, int]]:
    """Cuts a span at line ends or, in long lines, between words. A call to a matcher blocks all other threads."""
    while end - start > _PIECE_BYTES:
        cut = start + _PIECE_BYTES
        tail = text[cut - _MAX_WORD_BYTES : cut]
        ends = (tail.rfind(mark) for mark in _WORD_ENDS)
        cut -= len(tail) - 1 - next((found for found in ends if found >= 0), len(tail) - 1)
        yield start, cut
        start = cut
    if start < end:
        yield start, end


def search_pieces(pattern: Pattern, text: Text, start: int, end: int) -> Iterator[tuple[int, int]]:
    """The spans that the pattern matches, searched in pieces."""
    for piece in iterate_pieces(text, start, end):
        yield from find_spans(pattern, text, *piece)


class TermSamples:
    """How often terms occur in samples of the text. Remembers each count, because questions share terms and come in steps."""

    def __init__(self, text: Text, *, code: bool, raw: bool = False) -> None:
        self._text = text
        self._code = code
        self._raw = raw
        self._counts: dict[Term, int] = {}

    def search(
        self, every: tuple[Term, ...], least: int, scan: Callable[[tuple[Term, ...], int | None], tuple[T, set[int]]]
    ) -> tuple[tuple[Term, ...], T]:
        """The terms used, and what `scan` finds. `scan` gets the number of hits to stop at, and also returns the terms it met. If
        these are only wording of the question, it runs again with the rarest of the terms that occur everywhere."""
        terms, is_everywhere = self._drop_common_terms(every, least)
        found, met = scan(terms, _MAX_COMMON_HITS if is_everywhere else None)
        if len(terms) < len(every) and all(terms[number].role == "wording" for number in met):
            left = tuple(term for term in every if term not in terms)
            terms += self._drop_common_terms(tuple(term for term in left if term.telling) or left, least)[0]
            found, _ = scan(terms, _MAX_COMMON_HITS)
        return terms, found

    def _drop_common_terms(self, terms: tuple[Term, ...], min_bytes_per_hit: int) -> tuple[tuple[Term, ...], bool]:
        """Drops terms that occur everywhere: keeps the rarest while their hits stay countable.

        Also returns whether even the rarest occurs everywhere.
        """
        if len(self._text) <= 2 * _SAMPLES * _SAMPLE_BYTES or not terms:
            return terms, False
        known = self._counts if len(self._counts) <= _MAX_REMEMBERED_TERMS else {}
        known = self._counts = known | self._count(tuple(term for term in terms if term not in known))
        counts = [known[term] for term in terms]
        kept: set[int] = set()
        most = room = _SAMPLES * _SAMPLE_BYTES // min_bytes_per_hit
        rarest_first = sorted(range(len(counts)), key=counts.__getitem__)
        for number in rarest_first:
            room -= counts[number]
            if room >= 0 or not kept:
                kept.add(number)
        return tuple(term for number, term in enumerate(terms) if number in kept), counts[rarest_first[0]] > most

    def _count(self, terms: tuple[Term, ...]) -> dict[Term, int]:
        if not terms:
            return {}
        finder = Finder(terms, code=self._code, raw=self._raw)
        counts = dict.fromkeys(terms, 0)
        step = (len(self._text) - _SAMPLE_BYTES) // (_SAMPLES - 1)
        for number in range(_SAMPLES):
            for _, _, term in finder.hits(self._text, number * step, number * step + _SAMPLE_BYTES):
                counts[terms[term]] += 1
        return counts
