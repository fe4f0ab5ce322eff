"""How commands print what was extracted, and highlight the words of the question in it."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Sequence

from overspill.cli.terminal import has_color, inform, on_terminal, warn
from overspill.extraction import BUILTIN
from overspill.text.humanize import escape_invisible
from overspill.text.patterns import compile_pattern, find_spans
from overspill.types import Extraction
from overspill.wording import retrieval as wording

_HIT, _PLACE, _END = "\x1b[1;31m", "\x1b[2m", "\x1b[0m"
_COMMON_WORDS = """
all and any are but can did does each every for from has have how its not that the their there this was were what when where
which who why will with
"""
_COMMON = frozenset(_COMMON_WORDS.split())
_MAX_WORDS = 100
_MAX_ENDING_CHARS = 3
"""A word may have this many more letters than in the question: "limits" for "limit"."""


def has_answer(found: Extraction) -> bool:
    """Whether the exit code is 0. Passages that are merely the nearest match do not count."""
    return found.found and not (found.is_nearest and found.text)


def print_extraction(found: Extraction, source: str, max_tokens: int, question: str = "") -> None:
    """Print what was found, with the words of the question highlighted if the output has colors.

    Standard output gets only answers: a program that reads it would take anything else for one.
    """
    if found.decoding:
        inform(wording.decoding(found.decoding))
    for warning in found.warnings:
        warn(warning)
    parts = [f"{wording.PASSAGES}\n{found.passages.text}"] if found.passages else []
    # Capitalize our own words, but not the name of a file.
    at_start = source[0].upper() + source[1:] if source.startswith(("standard input", "the part of")) else source
    if not found.source_size_bytes and not found.found:
        inform(f"{at_start} is empty.")
    elif not found.found and found.model == BUILTIN:
        inform(f"No match in {source}. Try words that appear in it, or ask a model with --model.")
    elif not found.found:
        inform(" ".join([f"{found.model} found no answer in {source}.", *found.text.splitlines()[1:]]))
    elif not found.text:
        inform(f"{at_start} has an answer that does not fit into {max_tokens:,} tokens. Raise --max-tokens.")
        return
    else:
        if not has_answer(found):
            inform(f"Nothing in {source} seems to answer that. This comes nearest.")
        if found.excerpts and found.model != BUILTIN:
            parts.insert(0, wording.citations(found.excerpts, quoted=True, support=found.support or "cited"))
        unsupported = [f"{wording.UNSUPPORTED}\n{found.unsupported}"] if found.unsupported else []
        parts = [found.text, *parts, *unsupported]
    print_parts(*parts, words=find_words(question))


def print_parts(*parts: str, words: Sequence[str] = (), is_safe: bool = False) -> None:
    """Print parts below each other. `is_safe`: escape sequences in them are ours."""
    if not parts or not sys.stdout:
        return
    shown = "\n\n".join(parts)
    if not is_safe and (on_terminal() or has_color()):
        shown = escape_invisible(shown)
    if words and has_color():
        shown = highlight(shown, words)
    sys.stdout.write(shown if shown.endswith("\n") else f"{shown}\n")  # click would strip colors from other programs' output


def find_words(question: str) -> list[str]:
    """Return the words of a question that are worth highlighting."""
    words = dict.fromkeys(word.casefold() for word in re.findall(r"\w{3,}", question))
    return [word for word in words if word not in _COMMON][:_MAX_WORDS]


def highlight(text: str, words: Iterable[str]) -> str:
    """Highlight words in `text`, which must not contain control characters."""
    wanted = frozenset(words)

    def mark(found: re.Match[str]) -> str:
        if found[1]:
            return f"{_PLACE}{found[0]}{_END}"
        word = found[0].casefold()
        is_hit = any(word[: len(word) - ending] in wanted for ending in range(_MAX_ENDING_CHARS + 1))
        return f"{_HIT}{found[0]}{_END}" if is_hit else found[0]

    return re.sub(r"(?m)(^\[L\d[^\]\n]*\]$)|\w{3,}", mark, text)


def highlight_pattern(text: str, pattern: str, *, ignore_case: bool) -> str:
    """Highlight the matches of an RE2 regular expression, line by line. Expects `text` without control characters."""
    compiled = compile_pattern(pattern.encode(), utf8=True, ignore_case=ignore_case, within_lines=True)
    data, pieces, done = text.encode("utf-8", "surrogateescape"), list[bytes](), 0
    for start, end in find_spans(compiled, data, 0, len(data)):
        pieces += (data[done:start], _HIT.encode(), data[start:end], _END.encode()) if end > start else ()
        done = end if end > start else done
    return b"".join([*pieces, data[done:]]).decode("utf-8", "surrogateescape")
