"""`overspill extract`: the parts of a file or a stream that answer a question."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, get_args

import click

from overspill.cli import output
from overspill.cli.models import endpoints
from overspill.cli.searches.answers import add_warning, asked_of_many, asked_of_one, describe, print_answers
from overspill.cli.searches.extractions import has_answer
from overspill.cli.searches.highlighting import find_words
from overspill.cli.settings import load_settings, settings_options
from overspill.errors import SettingsError
from overspill.extraction import BUILTIN
from overspill.models.endpoints import Endpoint
from overspill.models.opening import open_model
from overspill.retrieval.definitions import ExtractMode
from overspill.session.oneshot import open_extraction
from overspill.settings import Settings


@click.command()
@click.argument("what")
@click.argument("files", nargs=-1, type=click.Path(path_type=Path, allow_dash=True))
@click.option("--mode", type=click.Choice(get_args(ExtractMode)), default="auto", show_default=True, help="How to extract.")
@click.option(
    "--model", "models", multiple=True, metavar="PROVIDER/MODEL", help="Ask this model. Repeat to name others to try next."
)
@click.option(
    "--max-tokens", type=click.IntRange(1), default=2000, metavar="N", show_default=True, help="The longest answer, in tokens."
)
@output.json_options("Print JSON: the answer, and its excerpts with their positions.")
@settings_options
def extract(
    what: str,
    files: tuple[Path, ...],
    mode: ExtractMode,
    models: tuple[str, ...],
    max_tokens: int,
    as_json: bool,
    as_lines: bool,
    **options: Any,
) -> None:
    """Print the parts of FILES (or standard input) that answer WHAT, word for word.

    \b
    kubectl logs web-0 | overspill extract "every failed request with its id"
    overspill extract "the integrity hash of version 1.3.0" registry.json --json
    overspill extract "where the retry limit is set" src docs
    overspill extract "how to undo a release (roll back, revert)" docs

    A file may be compressed (gzip, bzip2, xz, Zstandard), in another encoding than UTF-8, or a PDF. Of a folder, every file that
    is not hidden is searched. Of several files, those that answer best come first, and together they have --max-tokens.

    Without a model, the built-in engine answers, with no API key and no network. The exit code is 1 if nothing seems to
    answer, and 2 if a file that you named could not be read as text.
    """
    settings = load_settings(**options).settings
    available = endpoints(settings, os.environ, models)
    asked, problem = _choose_models(models, settings, available)
    opening = partial(open_extraction, what, mode=mode, models=asked, settings=settings, endpoints=available)
    paths = files or (Path("-"),)
    if len(paths) == 1 and not paths[0].is_dir():
        searched = asked_of_one(paths[0], opening, max_tokens)
    else:
        searched = asked_of_many(paths, opening, max_tokens)
    searched = add_warning(searched, problem)
    if as_lines or (as_json and searched.is_many):
        output.print_records(map(describe, searched.answers), as_lines=as_lines)
    elif as_json:
        output.print_json(describe(searched.answers[0]))
    else:
        print_answers(searched, find_words(what), max_tokens)
    sys.exit(2 if searched.is_incomplete else 0 if any(has_answer(each.found) for each in searched.answers) else 1)


def _choose_models(models: Sequence[str], settings: Settings, available: Mapping[str, Endpoint]) -> tuple[Sequence[str], str]:
    """If no model can be asked, choose the built-in engine and say why."""
    named = models or settings.tool_output.models or tuple(filter(None, [settings.extraction_model]))
    problems: list[str] = []
    for target in named:
        try:
            open_model(target, available, {})
        except SettingsError as problem:
            problems.append(str(problem))
    if BUILTIN in named or not problems or len(problems) < len(named) or "builtin" not in settings.extraction_fallback:
        return models, ""
    return [BUILTIN], f"{' '.join(problems)} The built-in engine answered instead."
