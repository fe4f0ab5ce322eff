"""Words as people and programs write them: parts of identifiers, stems, and stop words."""

from __future__ import annotations

import re
from functools import cache, lru_cache
from typing import Any, cast

import Stemmer

_ENGLISH: Any = cast(Any, Stemmer).Stemmer("english", 0)
_RUSSIAN: Any = cast(Any, Stemmer).Stemmer("russian", 0)

_CYRILLIC = re.compile(r"[\u0400-\u052f]")
_SUBWORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[^\W\dA-Za-z_]+|\d+")


def word_set(words: str) -> frozenset[str]:
    return frozenset(words.split())


STOP = word_set(
    """a an the of to in on at is are was were be been being am and or not no nor for with by from this that these those
    which who whom whose what when where how why did do does done doing it its as has have had having you your i me my
    we our us they them their he she his her there here than then so such about into onto if can could would should
    shall will may might must also please any some each both between within under over per via vs s t d ll re ve m
    just only own same other others more most very too out up down off again once get got gets let like want need
    needs"""
)

INSTRUCTION = word_set(
    """find show list give tell report extract return print highlight identify describe explain quote display output outputs
    fetch look search retrieve part parts piece section sections detail details information info related relevant
    regarding concerning entry entries exact exactly verbatim value values result results text content contents
    document page file log logs line lines record records following above below including include includes name named
    names called listed item items thing things kind type reviewed review number numbers many much all every everything
    complete full entire after before next previous prior follow immediately came come comes first last top bottom
    least highest lowest largest smallest longest shortest greatest fewest earliest latest total"""
)
"""Words that are more often part of the request than of the answer: they count little."""


@lru_cache(maxsize=65_536)
def stem(word: str) -> str:
    """The beginning that all forms of a word share, in English and in Cyrillic script."""
    return (_RUSSIAN if _CYRILLIC.match(word) else _ENGLISH).stemWord(word)


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
    return re.compile(
        r"([\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3005-\u30ff\u3400-\u9fff\uac00-\ud7af\uf900-\ufaff\uff66-\uff9f"
        r"\U00020000-\U0003ffff]+)"
        r"|([^\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3005-\u30ff\u3400-\u9fff\uac00-\ud7af\uf900-\ufaff\uff66-\uff9f"
        r"\U00020000-\U0003ffff]+)"
    )


def split_subwords(word: str) -> list[str]:
    """`parseHTTPReply_v2` → parse, http, reply, v, 2."""
    return [part.lower() for part in _SUBWORD.findall(word)]


KEYWORDS: dict[str, frozenset[str]] = {
    stem(word): word_set(spelt)
    for words, spelt in {
        "function method procedure": "def fn func function",
        "class": "struct",
        "import include": "import include require using",
        "variable": "let var",
        "constant": "const define final",
    }.items()
    for word in words.split()
}
"""What people ask for in source code, and the keywords for it."""
