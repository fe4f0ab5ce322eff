"""Show what was looked for in what was found."""

from __future__ import annotations

import re
from collections.abc import Iterable

from overspill.text.patterns import compile_pattern, find_spans

_HIT, _PLACE, _END = "\x1b[1;31m", "\x1b[2m", "\x1b[0m"
_PLACE_OR_WORD = re.compile(r"(?m)(^\[L\d[^\]\n]*\]$)|\w{3,}")
_WORD = re.compile(r"\w{3,}")
_COMMON_WORDS = """
all and any are but can did does each every for from has have how its not that the their there this was were what when where
which who why will with
"""
_COMMON = frozenset(_COMMON_WORDS.split())
_MAX_WORDS = 100
_MAX_ENDING_CHARS = 3
"""So many letters more than the question has are shown too: "limits" for "limit"."""


def find_words(question: str) -> list[str]:
    """The words of a question that are worth showing."""
    words = dict.fromkeys(word.casefold() for word in _WORD.findall(question))
    return [word for word in words if word not in _COMMON][:_MAX_WORDS]


def highlight(text: str, words: Iterable[str]) -> str:
    """`text` has no control characters of its own."""
    wanted = frozenset(words)

    def mark(found: re.Match[str]) -> str:
        if found[1]:
            return f"{_PLACE}{found[0]}{_END}"
        word = found[0].casefold()
        is_hit = any(word[: len(word) - ending] in wanted for ending in range(_MAX_ENDING_CHARS + 1))
        return f"{_HIT}{found[0]}{_END}" if is_hit else found[0]

    return _PLACE_OR_WORD.sub(mark, text)


def highlight_pattern(text: str, pattern: str, *, ignore_case: bool) -> str:
    """The matches of an RE2 regular expression, line by line. `text` has no control characters of its own."""
    compiled = compile_pattern(pattern.encode(), utf8=True, ignore_case=ignore_case, within_lines=True)
    data, pieces, done = text.encode("utf-8", "surrogateescape"), list[bytes](), 0
    for start, end in find_spans(compiled, data, 0, len(data)):
        pieces += (data[done:start], _HIT.encode(), data[start:end], _END.encode()) if end > start else ()
        done = end if end > start else done
    return b"".join([*pieces, data[done:]]).decode("utf-8", "surrogateescape")


def head(name: str) -> str:
    return f"\x1b[35m{name}{_END}"
