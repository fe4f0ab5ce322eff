"""`overspill extract`: what is needed from a file or a stream, without reading all of it."""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO, get_args

import anyio
import click
from msgspec.structs import replace
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from overspill import wording
from overspill.cli import output
from overspill.cli.config import load_settings, settings_options
from overspill.cli.messages import say
from overspill.cli.models import endpoints
from overspill.cli.terminal import on_terminal, progress_console
from overspill.errors import SettingsError
from overspill.extraction import BUILTIN
from overspill.models.endpoints import Endpoint
from overspill.models.opening import open_model
from overspill.retrieval.definitions import ExtractMode
from overspill.session.oneshot import extract as extract_from
from overspill.settings import Settings
from overspill.text.humanize import visible
from overspill.types import Extraction

_BLOCK = 1 << 20


@click.command()
@click.argument("what")
@click.argument("file", default="-", type=click.Path(path_type=Path, allow_dash=True))
@click.option("--mode", type=click.Choice(get_args(ExtractMode)), default="auto", show_default=True, help="How to extract.")
@click.option("--model", "models", multiple=True, metavar="PROVIDER/MODEL", help="Ask this model; repeat for more, in order.")
@click.option("--max-tokens", type=click.IntRange(1), default=2000, show_default=True, help="Tokens of the answer at most.")
@click.option("--json", "as_json", is_flag=True, help="Print the answer and its excerpts with their places as JSON.")
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

    Without a model the built-in engine answers: no key, no network. Exit code 1 when nothing was found.
    """
    settings = load_settings(**options).settings
    source = _arriving(output.standard_input("Reading")) if str(file) == "-" else file
    served = endpoints(settings, os.environ, models)
    asked, problem = _askable(models, settings, served)

    async def run() -> Extraction:
        with _Bar() as shown:
            return await extract_from(
                source,
                what,
                max_tokens=max_tokens,
                mode=mode,
                models=asked,
                settings=settings,
                endpoints=served,
                progress=shown,
            )

    try:
        found = anyio.run(run)
    except KeyboardInterrupt:
        # All is closed and removed by now. A thread that still searches cannot be interrupted, and Python would wait for it.
        os._exit(130)
    name = str(file) if source is file else "Standard input"
    if found.warnings:
        name = f"what was searched of {name}"
    if problem and found.model == BUILTIN:
        found = replace(found, warnings=(problem, *found.warnings))
    if as_json:
        output.print_json(found)
    else:
        _print(found, name)
    sys.exit(0 if found.found else 1)


def _arriving(file: BinaryIO) -> BinaryIO | AsyncIterator[bytes]:
    """What may let us wait is not read in a thread, which Ctrl-C could not end; and one Ctrl-D is enough."""
    mode = os.fstat(file.fileno()).st_mode
    return _stream(file) if file.isatty() or stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode) else file


async def _stream(file: BinaryIO) -> AsyncIterator[bytes]:
    while True:
        await anyio.wait_readable(file)
        if not (block := os.read(file.fileno(), _BLOCK)):
            return
        yield block


def _print(found: Extraction, source: str) -> None:
    """What was not found is told beside standard output: whoever reads that on takes it for an answer."""
    for warning in found.warnings:
        say(warning)
    if not found.found:
        say(_nothing(found, source))
        return
    if not found.text:
        say(f"What was found in {source} does not fit. Raise --max-tokens.")
        return
    cited = found.excerpts and found.model != BUILTIN
    shown = f"{found.text}\n\n{wording.citations(found.excerpts, quoted=True)}" if cited else found.text
    click.echo(visible(shown) if on_terminal() else shown)


def _nothing(found: Extraction, source: str) -> str:
    if not found.source_size_bytes:
        return f"{source} is empty."
    if found.model == BUILTIN:
        return f"Nothing in {source} has the words of your question. Try words that stand there, or ask a model with --model."
    return " ".join([f"{found.model} found nothing in {source} that answers this.", *found.text.splitlines()[1:]])


def _askable(models: Sequence[str], settings: Settings, served: Mapping[str, Endpoint]) -> tuple[Sequence[str], str]:
    """Where none of the models can be asked, the engine that answers in their place, and why, as somebody at a shell needs it."""
    named = models or settings.tool_output.models or tuple(filter(None, [settings.extraction_model]))
    problems: list[str] = []
    for target in named:
        try:
            open_model(target, served, {})
        except SettingsError as problem:
            problems.append(str(problem))
    if BUILTIN in named or not problems or len(problems) < len(named) or "builtin" not in settings.extraction_fallback:
        return models, ""
    return [BUILTIN], f"{' '.join(problems)} The built-in engine answered instead."


class _Bar:
    """A bar on a terminal while chunks are asked about; nothing elsewhere."""

    def __init__(self) -> None:
        console = progress_console()
        columns = (TextColumn("extracting"), BarColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
        self._bar = Progress(*columns, console=console, transient=True, disable=not console.is_interactive)
        self._task = self._bar.add_task("", total=None)

    def __enter__(self) -> _Bar:
        self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._bar.stop()

    def __call__(self, done: int, total: int) -> None:
        self._bar.update(self._task, completed=done, total=total, description=f"{done}/{total} chunks")
