"""How commands print what was extracted."""

from __future__ import annotations

import click

from overspill import wording
from overspill.cli.stderr import inform, warn
from overspill.cli.terminal import on_terminal
from overspill.extraction import BUILTIN
from overspill.text.humanize import escape_invisible
from overspill.types import Extraction


def print_extraction(found: Extraction, source: str, max_tokens: int) -> None:
    """Standard output gets only answers: a program that reads it would take anything else for one."""
    if found.decoding:
        inform(wording.decoding(found.decoding))
    for warning in found.warnings:
        warn(warning)
    passages = [f"{wording.PASSAGES}\n{found.passages.text}"] if found.passages else []
    if not found.found:
        inform(_describe_nothing(found, source))
        print_parts(*passages)
        return
    if not found.text:
        inform(f"{_capitalize(source)} has an answer that does not fit into {max_tokens:,} tokens. Raise --max-tokens.")
        return
    if found.is_nearest:
        inform(f"Nothing in {source} seems to answer that. This comes nearest.")
    is_cited = found.excerpts and found.model != BUILTIN
    cited = [wording.citations(found.excerpts, quoted=True, support=found.support or "cited")] if is_cited else []
    unsupported = [f"{wording.UNSUPPORTED}\n{found.unsupported}"] if found.unsupported else []
    print_parts(found.text, *cited, *passages, *unsupported)


def print_parts(*parts: str) -> None:
    if parts:
        shown = "\n\n".join(parts)
        click.echo(escape_invisible(shown) if on_terminal() else shown, nl=not shown.endswith("\n"))


def _describe_nothing(found: Extraction, source: str) -> str:
    if not found.source_size_bytes:
        return f"{_capitalize(source)} is empty."
    if found.model == BUILTIN:
        return f"No match in {source}. Try words that appear in it, or ask a model with --model."
    return " ".join([f"{found.model} found no answer in {source}.", *found.text.splitlines()[1:]])


def _capitalize(source: str) -> str:
    """Only our own words are capitalized, not the name of a file."""
    return source[0].upper() + source[1:] if source.startswith(("standard input", "the part of")) else source
