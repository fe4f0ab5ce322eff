"""`overspill python`: run a program over files or stored outputs, in the sandbox that models' programs run in."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO

import anyio
import click

from overspill.cli import output, stores
from overspill.cli.settings import load_settings, settings_options
from overspill.cli.terminal import on_terminal, warn
from overspill.errors import BadRequest, HandleError
from overspill.retrieval.archive import Archive
from overspill.session.session import Session
from overspill.settings import Settings
from overspill.shell.reading import OutputFinder
from overspill.store.readers import read_blocks
from overspill.text.humanize import escape_invisible

_BLOCK_BYTES = 1 << 20
_MAX_PROGRAM_PATH_CHARS = 1_000


@click.command()
@click.argument("program")
@click.argument("outputs", nargs=-1, shell_complete=stores.complete_outputs)
@click.option(
    "--timeout",
    type=click.FloatRange(0, min_open=True),
    default=60,
    metavar="SECONDS",
    show_default=True,
    help="How long the program may take.",
)
@settings_options
def python(program: str, outputs: tuple[str, ...], timeout: float, **options: Any) -> None:
    """Run PROGRAM, a Python file or the code itself, over OUTPUTS: files, or names of stored outputs.

    \b
    overspill python "print(sum(o['total'] for o in load('orders.json')))" orders.json
    overspill python late.py out_3f7k9q
    kubectl get pods -o json | overspill python "len(load('-')['items'])" -

    load(NAME) gives parsed JSON, the rows of a table, or lines. parts, text, sql, find and save work as in `run_program`. The
    program runs in a sandbox: it sees these outputs and nothing else, no files, no network. What it prints is printed, and the
    value of its last expression.

    The exit code is 1 if the program fails.
    """
    found = stores.find_stores(load_settings(*(options[key] for key in ("preset", "config", "assignments"))).settings)
    settings = Settings(toolResponseMaxBytes=0, programTimeoutSecs=timeout, async_=False)
    code = _read_program(program)

    async def run() -> tuple[str, bool]:
        async with Session(settings, preload=False) as session:
            names: dict[str, str] = {}
            finder = OutputFinder(found, Archive(found, warn=warn))
            for each in dict.fromkeys(outputs):
                names[each] = names[Path(each).name] = (await session.keep(_read(each, finder), each)).name
            reply = await session.run_program(code, names=names)
            return reply.text, reply.is_error

    text, failed = anyio.run(run)
    shown = escape_invisible(text) if on_terminal() else text
    click.echo(shown, err=failed)
    sys.exit(1 if failed else 0)


def _read_program(program: str) -> str:
    with suppress(OSError, ValueError):  # code that cannot be a path
        if len(program) <= _MAX_PROGRAM_PATH_CHARS and (path := Path(program)).is_file():
            return path.read_text("utf-8")
    if program.endswith(".py") and "\n" not in program and " " not in program:
        raise BadRequest(f"There is no file {program}.")
    return program


def _read(name: str, finder: OutputFinder) -> Iterator[bytes]:
    """A file, standard input, or a stored output."""
    if name == "-":
        yield from _read_stream(output.standard_input("Reading"))
    elif Path(name).exists():
        try:
            with Path(name).open("rb") as file:
                yield from _read_stream(file)
        except OSError as error:
            raise BadRequest(f"{name} cannot be read: {error.strerror}.") from None
    else:
        try:
            with finder.open(name) as (stored, _):
                yield from map(bytes, read_blocks(stored.reader))
        except HandleError:
            raise BadRequest(f"{name} is neither a file nor the name of a stored output.") from None


def _read_stream(stream: BinaryIO) -> Iterator[bytes]:
    while block := stream.read(_BLOCK_BYTES):
        yield block
