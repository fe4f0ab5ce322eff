"""`overspill keep`: run a command, or read standard input, and keep what is printed."""

from __future__ import annotations

import codecs
import os
import resource
import signal
import sys
from functools import partial
from typing import Any, NoReturn

import anyio
import click

from overspill.cli import ending, output
from overspill.cli.detaching import run_detachable
from overspill.cli.settings import load_settings, settings_options
from overspill.cli.stderr import report_error, warn
from overspill.cli.streams import read_stream
from overspill.settings import Settings
from overspill.shell.command import CommandNotStarted
from overspill.shell.keeping import KEEP_DEFAULTS, OFFERED, keep_command, keep_stream
from overspill.text.humanize import escape_invisible


@click.command(context_settings={"allow_interspersed_args": False})
@click.argument("command", nargs=-1, type=click.UNPROCESSED)
@click.option("--for", "what", default="", metavar="WHAT", help="What you need from the output, in words.")
@click.option(
    "--background-after",
    type=click.FloatRange(0),
    metavar="SECONDS",
    help="Let a command that takes longer keep running in the background.",
)
@settings_options
def keep(command: tuple[str, ...], what: str, background_after: float | None, **options: Any) -> None:
    """Run COMMAND, or read standard input, and print its output if it is small. Store it if it is large.

    \b
    overspill keep --for "failing tests and why" -- pytest -q
    kubectl logs web-0 | overspill keep --for "requests that failed"
    overspill keep --background-after 20 -- npm run build

    Of a stored output you see the parts that answer --for, or a description, and its name. overspill get NAME reads it back.

    The exit code and standard error are the command's own. If a signal ends the command, the same signal ends overspill keep.
    If nothing can be stored, a warning says so, and the whole output is printed.
    """
    ending.require_output()
    if background_after is not None and not command:
        raise click.UsageError("--background-after needs a command: overspill keep --background-after 20 -- make.")
    settings = _load(background_after, **options)
    if not command:
        anyio.run(keep_stream, read_stream(output.standard_input()), settings, what, StandardOutput())
        return
    run = partial(keep_command, command, settings, what)
    try:
        if background_after is None:
            code = anyio.run(run, StandardOutput())
        else:
            code = run_detachable(lambda leave: anyio.run(run, StandardOutput(), background_after, leave))
    except CommandNotStarted as problem:
        report_error(str(problem))
        code = problem.exit_code
    sys.stdout.flush()
    _end(code)


def _load(background_after: float | None, preset: str | None, config: Any, assignments: tuple[str, ...]) -> Settings:
    slow = () if not background_after else (f"asyncTimeoutSecs={background_after}",)
    return load_settings(preset, config, (*assignments, OFFERED, *slow), [KEEP_DEFAULTS], lasting="keep").settings


class StandardOutput:
    """Exact bytes, except on a terminal, where control characters are shown as escapes."""

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")("backslashreplace") if sys.stdout.isatty() else None

    def write(self, data: bytes, *, is_last: bool = True) -> None:
        """If more follows, half a character at the end waits for its other half."""
        if self._decoder is not None:
            data = escape_invisible(self._decoder.decode(data, is_last)).encode()
        sys.stdout.buffer.write(data)
        sys.stdout.flush()

    def tell(self, problem: str) -> None:
        warn(problem)


def _end(code: int) -> NoReturn:
    """As the command ended: a shell stops its script only for a program that the signal itself has ended."""
    if code < 0:
        resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))  # the command has written one
        signal.signal(-code, signal.SIG_DFL) if -code not in (signal.SIGKILL, signal.SIGSTOP) else None
        os.kill(os.getpid(), -code)
    sys.exit(128 - code if code < 0 else code)
