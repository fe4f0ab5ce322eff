"""`overspill python`: run a program over files or stored outputs, in the sandbox that models' programs run in."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import anyio
import click

from overspill.cli import output, stores
from overspill.cli.settings import load_settings, settings_options
from overspill.cli.terminal import on_terminal
from overspill.errors import BadRequest, HandleError
from overspill.redaction.policy import Redaction
from overspill.session.session import Session
from overspill.settings import Settings
from overspill.shell.reading import OutputFinder
from overspill.text.humanize import escape_invisible


@click.command()
@click.argument("program")
@click.argument("outputs", nargs=-1, shell_complete=stores.complete_outputs)
@click.option("--timeout", type=click.FloatRange(0, min_open=True), metavar="SECONDS", help="How long it may take.")
@settings_options
def python(program: str, outputs: tuple[str, ...], timeout: float | None, **options: Any) -> None:
    """Run PROGRAM, a Python file or the code itself, over OUTPUTS: files, or names of stored outputs.

    \b
    overspill python "print(sum(o['total'] for o in load('orders.json')))" orders.json
    overspill python late.py out_3f7k9q
    kubectl get pods -o json | overspill python "len(load('-')['items'])" -

    load(NAME) gives parsed JSON, the rows of a table, or lines. parts, text, sql, find and save work as in `run_program`, but
    what is saved lasts only until the program ends. It runs in a sandbox, and sees these outputs and nothing else. Its output
    and its last value are printed.

    The exit code is 1 if the program fails.
    """
    is_file = program.endswith(".py") and " " not in program
    code = _read_file(program).decode("utf-8", "replace") if is_file else program
    given = load_settings(*(options[key] for key in ("preset", "config", "assignments"))).settings
    finder = OutputFinder(stores.open_archive(given, Redaction(given, os.environ)))
    data = {each: _read(each, finder) for each in outputs}

    async def run() -> tuple[str, bool]:
        seconds = timeout or given.program_timeout_secs
        settings = Settings(toolResponseMaxBytes=0, programTimeoutSecs=seconds, async_=False)
        async with Session(settings, preload=False) as session:
            names = {each: (await session.keep(text, each)).name for each, text in data.items()}
            reply = await session.run_program(code, names={Path(each).name: name for each, name in names.items()} | names)
            return reply.text, reply.is_error

    text, failed = anyio.run(run)
    click.echo(escape_invisible(text) if on_terminal() else text, err=failed)
    sys.exit(1 if failed else 0)


def _read(name: str, finder: OutputFinder) -> bytes:
    if name == "-":
        return output.standard_input("Reading").read()
    if Path(name).exists():
        return _read_file(name)
    try:
        with finder.open(name) as (stored, _):
            return stored.bytes()
    except HandleError:
        raise BadRequest(f"{name} is neither a file nor the name of a stored output.") from None


def _read_file(name: str) -> bytes:
    try:
        return Path(name).read_bytes()
    except OSError as error:
        raise BadRequest(f"{name} cannot be read: {error.strerror}.") from None
