"""`overspill extract`: the parts of a file or a stream that answer a question."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from pathlib import Path
from typing import Any, get_args

import anyio
import click
from msgspec.structs import replace

from overspill.cli import ending, output
from overspill.cli.extractions import print_extraction
from overspill.cli.models import endpoints
from overspill.cli.settings import load_settings, settings_options
from overspill.cli.streams import read_stream
from overspill.cli.terminal import watched_on_terminal
from overspill.cli.termination import cancel_on_termination
from overspill.errors import SettingsError
from overspill.extraction import BUILTIN, Progress
from overspill.models.endpoints import Endpoint
from overspill.models.opening import open_model
from overspill.retrieval.definitions import ExtractMode
from overspill.session.oneshot import extract as extract_from
from overspill.settings import Settings
from overspill.types import Extraction


@click.command()
@click.argument("what")
@click.argument("file", default="-", type=click.Path(path_type=Path, allow_dash=True))
@click.option("--mode", type=click.Choice(get_args(ExtractMode)), default="auto", show_default=True, help="How to extract.")
@click.option(
    "--model", "models", multiple=True, metavar="PROVIDER/MODEL", help="Ask this model. Repeat to name others to try next."
)
@click.option("--max-tokens", type=click.IntRange(1), default=2000, show_default=True, help="The longest answer, in tokens.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON: the answer, and its excerpts with their positions.")
@settings_options
def extract(
    what: str,
    file: Path,
    mode: ExtractMode,
    models: tuple[str, ...],
    max_tokens: int,
    as_json: bool,
    **options: Any,
) -> None:
    """Print the parts of FILE (or standard input) that answer WHAT, word for word.

    \b
    kubectl logs web-0 | overspill extract "every failed request with its id"
    overspill extract "the integrity hash of version 1.3.0" registry.json --json

    FILE may be compressed (gzip, bzip2, xz, Zstandard), in another encoding than UTF-8, or a PDF.

    Without a model, the built-in engine answers, with no API key and no network. The exit code is 1 if nothing was found, and 2
    if FILE could not be read as text.
    """
    settings = load_settings(**options).settings
    source = read_stream(output.standard_input("Reading")) if str(file) == "-" else file
    available = endpoints(settings, os.environ, models)
    asked, problem = _choose_models(models, settings, available)

    ask = partial(extract_from, source, what, max_tokens=max_tokens, mode=mode, models=asked, settings=settings)

    async def run() -> Extraction:
        with cancel_on_termination(), _show_progress() as progress:
            return await ask(endpoints=available, progress=progress)

    try:
        found = anyio.run(run)
    except (KeyboardInterrupt, asyncio.CancelledError) as ended:
        # Everything is closed and removed by now. A thread that is still searching cannot be interrupted, and Python would
        # wait for it.
        os._exit(130 if isinstance(ended, KeyboardInterrupt) else ending.TERMINATED)
    name = str(file) if source is file else "standard input"
    if found.warnings:
        name = f"the part of {name} that was searched"
    if problem and found.model == BUILTIN:
        found = replace(found, warnings=(problem, *found.warnings))
    if as_json:
        output.print_json(found)
    else:
        print_extraction(found, name, max_tokens)
    sys.exit(0 if found.found else 1)


def _show_progress() -> AbstractContextManager[Progress | None]:
    if not watched_on_terminal():
        return nullcontext()
    from overspill.cli.chunk_bar import ChunkBar  # Rich takes long to import

    return ChunkBar()


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
