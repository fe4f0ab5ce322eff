"""How commands print what was extracted."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from overspill.cli.searches.highlighting import highlight
from overspill.cli.stderr import inform, warn
from overspill.cli.terminal import has_color, on_terminal
from overspill.extraction import BUILTIN
from overspill.text.humanize import escape_invisible
from overspill.types import Extraction
from overspill.wording import retrieval as wording


def has_answer(found: Extraction) -> bool:
    """Whether the exit code is 0. What only comes nearest is no answer."""
    return found.found and not (found.is_nearest and found.text)


def print_extraction(found: Extraction, source: str, max_tokens: int, words: Sequence[str] = ()) -> None:
    """`words` are highlighted where there are colors.

    Standard output gets only answers: a program that reads it would take anything else for one.
    """
    if found.decoding:
        inform(wording.decoding(found.decoding))
    for warning in found.warnings:
        warn(warning)
    passages = [f"{wording.PASSAGES}\n{found.passages.text}"] if found.passages else []
    if not found.found:
        inform(_describe_nothing(found, source))
        print_parts(*passages, words=words)
        return
    if not found.text:
        inform(f"{_capitalize(source)} has an answer that does not fit into {max_tokens:,} tokens. Raise --max-tokens.")
        return
    if not has_answer(found):
        inform(f"Nothing in {source} seems to answer that. This comes nearest.")
    is_cited = found.excerpts and found.model != BUILTIN
    cited = [wording.citations(found.excerpts, quoted=True, support=found.support or "cited")] if is_cited else []
    unsupported = [f"{wording.UNSUPPORTED}\n{found.unsupported}"] if found.unsupported else []
    print_parts(found.text, *cited, *passages, *unsupported, words=words)


def print_parts(*parts: str, words: Sequence[str] = (), is_safe: bool = False) -> None:
    """`is_safe`: the colors in it are ours."""
    if not parts or not sys.stdout:
        return
    shown = "\n\n".join(parts)
    if not is_safe and (on_terminal() or has_color()):
        shown = escape_invisible(shown)
    if words and has_color():
        shown = highlight(shown, words)
    sys.stdout.write(shown if shown.endswith("\n") else f"{shown}\n")  # click would take colors out of what others wrote


def _describe_nothing(found: Extraction, source: str) -> str:
    if not found.source_size_bytes:
        return f"{_capitalize(source)} is empty."
    if found.model == BUILTIN:
        return f"No match in {source}. Try words that appear in it, or ask a model with --model."
    return " ".join([f"{found.model} found no answer in {source}.", *found.text.splitlines()[1:]])


def _capitalize(source: str) -> str:
    """Only our own words are capitalized, not the name of a file."""
    return source[0].upper() + source[1:] if source.startswith(("standard input", "the part of")) else source
