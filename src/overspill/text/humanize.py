"""Sizes and short texts as people and models read them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from difflib import get_close_matches

ELLIPSIS = "…"
SUMMARY_CHARS = 100
_QUOTE_CHARS = 300


def count_noun(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def suggest(given: Iterable[str], known: Sequence[str]) -> str:
    """`, unless 'comand' is to be 'command'`: a guess to put behind what is missing, or nothing."""
    for each in given:
        if each not in known and (near := get_close_matches(each, known, n=1)):
            return f", unless {each!r} is to be {near[0]!r}"
    return ""


def format_size(count: int) -> str:
    """`890 KB`, `2.3 MB`: decimal, one digit from MB up."""
    if count < 1000:
        return f"{count} bytes"
    if count < 999_500:
        return f"{round(count / 1000)} KB"
    for unit, factor in (("MB", 10**6), ("GB", 10**9), ("TB", 10**12)):
        if count < 999.95 * factor or unit == "TB":
            return f"{count / factor:.1f} {unit}"
    raise AssertionError


def format_short_size(count: int) -> str:
    """`45KB`: as in the list of completed tools."""
    return format_size(count).replace(" bytes", "B").replace(" ", "")


def format_tokens(count: int) -> str:
    """`~45K tokens`: as in the notice."""
    return f"~{round(count / 1000)}K tokens" if count >= 1000 else f"~{count} tokens"


def escape_invisible(text: str) -> str:
    """Control and format characters as they are written in source code: foreign text commands no terminal and hides nothing."""
    return "".join(char if char.isprintable() or char in "\n\t" else ascii(char)[1:-1] for char in text)


def shorten(text: str, limit: int) -> str:
    """At most `limit` characters, with an ellipsis in place of the rest."""
    return text if len(text) <= limit else text[: limit - 1] + ELLIPSIS


def one_line(text: str, limit: int = SUMMARY_CHARS) -> str:
    """Foreign words for the middle of one of our lines: no line ends, nothing that cannot be seen, at most `limit` characters."""
    # Of a very long text only so much is looked at as can be shown; more of it would have to be white space.
    flat = escape_invisible(" ".join(text[: 10 * limit].split()))
    return shorten(flat, limit) if len(text) <= 10 * limit else flat[: limit - 1] + ELLIPSIS


def quote_line(text: str) -> str:
    """What somebody else said, for the middle of one of our lines."""
    return one_line(text, _QUOTE_CHARS)
