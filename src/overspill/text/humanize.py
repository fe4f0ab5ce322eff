"""Sizes, counts and short strings as people and models read them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from difflib import get_close_matches

ELLIPSIS = "…"
SUMMARY_CHARS = 100
_QUOTE_CHARS = 300


def count_noun(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def suggest(given: Iterable[str], known: Sequence[str]) -> str:
    """` (did you mean 'command' instead of 'comand'?)`, to append to a message about a missing name; or an empty string."""
    for each in given:
        if each not in known and (near := get_close_matches(each, known, n=1)):
            return f" (did you mean {near[0]!r} instead of {each!r}?)"
    return ""


def suggest_nearest(given: str, known: Iterable[str]) -> str:
    """` Did you mean 'config'?`, to append to a sentence; or an empty string."""
    near = get_close_matches(given, list(known), n=1)
    return f" Did you mean {near[0]!r}?" if near else ""


def to_datetime(milliseconds: int) -> datetime:
    """Converts to UTC. A damaged journal may contain any number; an invalid time becomes 1970."""
    try:
        return datetime.fromtimestamp(milliseconds / 1000, UTC)
    except (OverflowError, ValueError, OSError):
        return datetime.fromtimestamp(0, UTC)


def format_size(count: int) -> str:
    """`890 KB`, `2.3 MB`: decimal units, with one digit after the point from MB up."""
    if count < 1000:
        return f"{count} bytes"
    if count < 999_500:
        return f"{round(count / 1000)} KB"
    units = (("MB", 10**6), ("GB", 10**9), ("TB", 10**12))
    unit, factor = next((each for each in units if count < 999.95 * each[1]), units[-1])
    return f"{count / factor:.1f} {unit}"


def format_short_size(count: int) -> str:
    """`45KB`, the form in the list of completed tools."""
    return format_size(count).replace(" bytes", "B").replace(" ", "")


def format_tokens(count: int) -> str:
    """`~45K tokens`, the form in the notice."""
    return f"~{round(count / 1000)}K tokens" if count >= 1000 else f"~{count} tokens"


def format_estimate(count: int) -> str:
    """`about 33000`: as many digits as an estimate deserves."""
    return f"about {int(float(f'{count:.2g}'))}"


def escape_invisible(text: str) -> str:
    """Escapes control and format characters, with which untrusted text could control a terminal or hide something."""
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() or char in "\n\t" else ascii(char)[1:-1] for char in text)


def escape_line(text: str) -> str:
    """Like `escape_invisible`, but also escapes line ends, with which untrusted text could add lines to ours."""
    return escape_invisible(text).replace("\n", "\\n")


def shorten(text: str, limit: int) -> str:
    """At most `limit` characters, with an ellipsis in place of the rest."""
    return text if len(text) <= limit else text[: limit - 1] + ELLIPSIS


def one_line(text: str, limit: int = SUMMARY_CHARS) -> str:
    """Makes untrusted text safe inside one of our lines: no line ends, nothing invisible, at most `limit` characters."""
    # Read only the beginning of a very long string. More would matter only if that were mostly white space.
    flat = escape_invisible(" ".join(text[: 10 * limit].split()))
    return shorten(flat, limit) if len(text) <= 10 * limit else flat[: limit - 1] + ELLIPSIS


def quote_line(text: str) -> str:
    """An untrusted message, made safe inside one of our lines."""
    return one_line(text, _QUOTE_CHARS)
