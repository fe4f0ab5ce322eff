"""Words as people and programs write them: parts of identifiers, stems, and stop words."""

from __future__ import annotations

import re
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, cast

import Stemmer

from overspill.text.regex import regex

_ENGLISH: Any = cast(Any, Stemmer).Stemmer("english", 0)
_RUSSIAN: Any = cast(Any, Stemmer).Stemmer("russian", 0)

_CYRILLIC = regex(r"[\u0400-\u052f]")
_SUBWORD = regex(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[^\W\dA-Za-z_]+|\d+")


def word_set(words: str) -> frozenset[str]:
    return frozenset(words.split())


@cache
def read_list(name: str) -> tuple[str, ...]:
    """The words of a list in `lexicon/`, in order. Lines that begin with # explain the list."""
    return tuple(" ".join(read_lines(name)).split())


@cache
def read_lexicon(name: str) -> frozenset[str]:
    return frozenset(read_list(name))


@cache
def read_stems(name: str) -> frozenset[str]:
    return frozenset(map(stem, read_list(name)))


@cache
def read_lines(name: str) -> tuple[str, ...]:
    lines = (Path(__file__).parent / "lexicon" / f"{name}.txt").read_text("utf-8").splitlines()
    return tuple(line for line in lines if not line.startswith("#"))


@cache
def compile_phrases(*patterns: str) -> re.Pattern[str]:
    """A pattern in which `{name}` matches any line of that list: words, phrases, or further patterns."""
    named = regex(r"\{([a-z_]+)\}")
    either = "|".join(patterns)
    return regex(named.sub(lambda name: f"(?:{'|'.join(read_lines(name[1]))})", either), re.IGNORECASE)


@lru_cache(maxsize=65_536)
def stem(word: str) -> str:
    """The beginning that all forms of a word share, in English and in Cyrillic script."""
    return (_RUSSIAN if _CYRILLIC.match(word) else _ENGLISH).stemWord(word)


@cache
def read_related(name: str = "related") -> dict[str, tuple[str, ...]]:
    """For each stem, the stems of near synonyms."""
    groups: dict[str, dict[str, None]] = {}
    for line in read_lines(name):
        stems = dict.fromkeys(map(stem, line.split()))
        for one in stems:
            groups.setdefault(one, {}).update({other: None for other in stems if other != one})
    return {one: tuple(others) for one, others in groups.items()}


def split_words(text: str) -> list[str]:
    """Lower-case words; in scripts without spaces, every pair of adjacent characters."""
    found = re.split(r"[\W_]+", text.lower())
    if text.isascii():
        return [word for word in found if word]
    words: list[str] = []
    for word in found:
        for run, rest in _unspaced_or_not().findall(word):
            words += [run[at : at + 2] for at in range(max(1, len(run) - 1))] if run else [rest]
    return words


def is_unspaced(word: str) -> bool:
    return not word.isascii() and (run := _unspaced_or_not().match(word)) is not None and run[1] is not None


@cache
def _unspaced_or_not() -> re.Pattern[str]:
    """Scripts that put no spaces between words (Thai, Lao, Burmese, Khmer, Chinese, Japanese), or not only there (Korean).

    It takes 20 ms to compile, and most text does not need it.
    """
    return regex(
        r"([\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3005-\u30ff\u3400-\u9fff\uac00-\ud7af\uf900-\ufaff\uff66-\uff9f"
        r"\U00020000-\U0003ffff]+)"
        r"|([^\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3005-\u30ff\u3400-\u9fff\uac00-\ud7af\uf900-\ufaff\uff66-\uff9f"
        r"\U00020000-\U0003ffff]+)"
    )


def split_subwords(word: str) -> list[str]:
    """`parseHTTPReply_v2` → parse, http, reply, v, 2."""
    return [part.lower() for part in _SUBWORD.findall(word)]


@cache
def read_keywords() -> dict[str, frozenset[str]]:
    """Maps the stems of things people ask for in source code to their keywords."""
    lines = (line.partition(":") for line in read_lines("keywords"))
    return {stem(word): word_set(spelt) for words, _, spelt in lines for word in words.split()}
