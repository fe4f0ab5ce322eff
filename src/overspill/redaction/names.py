"""Judges whether a name is that of a secret, and whether a value looks random."""

from __future__ import annotations

from functools import cache, cached_property
from itertools import pairwise
from pathlib import Path
from string import ascii_letters, digits
from typing import Literal, TypeAlias

import msgspec
from msgspec import Struct

from overspill.text.lenient_json import ready
from overspill.text.regex import regex

Meaning: TypeAlias = Literal["password", "secret", "key"]

_MIN_CHARS, _MIN_KEY_CHARS, _JUDGED_CHARS = 8, 16, 64
_MIN_RARE, _MIN_RARE_SHARE = 3, 0.15
"""How many pairs of neighbouring characters must be rare for a value to look random, and what share of all pairs."""
_BORDER = regex(r"(?<=[a-z0-9])(?=[A-Z])|[.-]")
_DIGEST = regex(rb"(?i)[0-9a-f-]{32,}")
_LETTERS, _DIGITS, STRONG = frozenset(ascii_letters), frozenset(digits), frozenset("!#$%^&*@+?~=")


class Words(Struct, frozen=True, dict=True):
    """The parts of names. `harmless…`: words that, before "token" or "key", name something that is not secret. `openers`: may
    be before those as separate words. `usual_pairs`: a letter, and the letters that follow it in words and identifiers. They are
    95 % of the pairs in words and identifiers, and 42 % of random pairs."""

    passwords: tuple[str, ...]
    secrets: frozenset[str]
    suffixes: frozenset[str]
    harmless_tokens: frozenset[str]
    harmless_keys: frozenset[str]
    openers: frozenset[str]
    usual_pairs: frozenset[str]

    @cached_property
    def pairs(self) -> frozenset[str]:
        return frozenset(row[0] + following for row in self.usual_pairs for following in row[1:])


@cache
def read_words() -> Words:
    return msgspec.json.decode(Path(__file__).with_name("names.json").read_bytes(), type=ready(Words))


def read_meaning(name: str) -> Meaning | None:
    """The kind of secret that a name is for; None if it is not the name of a secret."""
    _, last = _read_end(name)
    if last.endswith(read_words().passwords) and last != "bypass":
        return "password"
    if last.endswith(("secret", "token", "apikey")) or last in read_words().secrets:
        return "secret"
    return "key" if last.endswith("key") else None


def is_harmless(name: str) -> bool:
    """Whether a name that ends with "token" or "key" names something public, such as a next page or a primary key."""
    words, (before, last) = read_words(), _read_end(name)
    kinds = words.harmless_keys if last.endswith("key") else words.harmless_tokens
    return not kinds.isdisjoint((before, last.removesuffix("key").removesuffix("token")))


def _read_end(name: str) -> tuple[str, str]:
    """The last two parts of a name, without suffixes that only describe the form of its value."""
    parts = [part for part in _BORDER.sub("_", name).lower().split("_") if part]
    while len(parts) > 1 and (parts[-1] in read_words().suffixes or len(parts[-1]) == 1 or parts[-1].isdigit()):
        parts.pop()
    return parts[-2] if len(parts) > 1 else "", parts[-1] if parts else ""


def looks_random(value: bytes, meaning: Meaning) -> bool:
    """Whether a value is unlike words, numbers and identifiers: too many of its neighbouring characters are rare pairs."""
    text = value[:_JUDGED_CHARS].decode("latin-1")
    different = len(set(text))
    if _DIGEST.fullmatch(value):
        return different >= 8
    if len(text) < (_MIN_KEY_CHARS if meaning == "key" else _MIN_CHARS) or different < (8 if len(text) >= 16 else 5):
        return False
    pairs, rare = read_words().pairs, 0.0
    for one, two in pairwise(text):
        if one in _LETTERS and two in _LETTERS:
            rare += 0.5 if one.islower() and two.isupper() else 0
            rare += 1 if (one + two).lower() not in pairs else 0
        elif (one in _DIGITS and two in _LETTERS) or (one in _LETTERS and two in _DIGITS) or one in STRONG or two in STRONG:
            rare += 0.5
    return rare >= max(_MIN_RARE, _MIN_RARE_SHARE * len(text))


def is_more_than_a_word(value: bytes) -> bool:
    """Whether a value looks like a password that a person chose, rather than a word."""
    characters = set(value.decode("latin-1"))
    return len(value) >= _MIN_CHARS and not characters.isdisjoint(_LETTERS) and not characters.isdisjoint(_DIGITS | STRONG)
