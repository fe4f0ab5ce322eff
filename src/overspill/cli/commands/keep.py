"""`overspill keep`: run a command, or read standard input, and keep what is printed."""

from __future__ import annotations

import os
import resource
import signal
import sys
from collections.abc import Callable
from functools import partial
from threading import Thread
from typing import Any, NoReturn, TypeAlias

import anyio
import click

from overspill.cli import output, terminal
from overspill.cli.settings import load_settings, settings_options
from overspill.cli.signals import read_stream
from overspill.cli.terminal import report_error, warn
from overspill.errors import OverspillError
from overspill.shell.command import FORWARDED, CommandNotStarted, SignalForwarder
from overspill.shell.keeping import KEEP_DEFAULTS, OFFERED, keep_command, keep_stream

Detachable: TypeAlias = Callable[[], None]
"""Leaves the caller, who then gets exit code 0."""
_LEFT = b"left"


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

    For a stored output, you see the parts that answer --for, or a description, and its name. overspill get NAME reads it back.

    The exit code and standard error are the command's own. If a signal ends the command, the same signal ends overspill keep.
    If nothing can be stored, a warning says so, and the whole output is printed.
    """
    terminal.require_output()
    if background_after is not None and not command:
        raise click.UsageError("--background-after needs a command: overspill keep --background-after 20 -- make.")
    slow = () if not background_after else (f"asyncTimeoutSecs={background_after}",)
    assignments = (*options["assignments"], OFFERED, *slow)
    settings = load_settings(options["preset"], options["config"], assignments, [KEEP_DEFAULTS], lasting="keep").settings
    if not command:
        anyio.run(keep_stream, read_stream(output.standard_input()), settings, what, warn, os.environ)
        return
    run = partial(keep_command, command, settings, what, warn, os.environ)
    try:
        if background_after is None:
            code = anyio.run(run)
        else:
            code = _run_detachable(lambda leave: anyio.run(run, background_after, leave))
    except CommandNotStarted as problem:
        report_error(str(problem))
        code = problem.exit_code
    sys.stdout.flush()
    _end(code)


def _end(code: int) -> NoReturn:
    """End as the command ended: a shell stops its script only if the signal itself has ended the program."""
    if code < 0:
        resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))  # the command has written one
        signal.signal(-code, signal.SIG_DFL) if -code not in (signal.SIGKILL, signal.SIGSTOP) else None
        os.kill(os.getpid(), -code)
    sys.exit(128 - code if code < 0 else code)


def _run_detachable(work: Callable[[Detachable], int]) -> int:
    """Do the work in a process that can leave the caller. It has no terminal and, after leaving, none of the caller's streams.

    Return what `work` returns, or 0 as soon as it leaves. Negative: the signal that ended it.
    """
    sys.stdout.flush()
    sys.stderr.flush()
    told, telling = os.pipe()
    lifeline, ours = os.pipe()  # our end is closed when we end
    signal.pthread_sigmask(signal.SIG_BLOCK, FORWARDED)  # until both processes can forward signals
    child = os.fork()  # before there are threads
    if not child:
        os.close(told)
        os.close(ours)
        os._exit(_work(work, telling, lifeline))
    with SignalForwarder() as signals:
        signals.forward_to(lambda number: os.kill(child, number))
        os.close(telling)
        os.close(lifeline)
        with open(told, "rb") as pipe:
            message = pipe.read()
        if message == _LEFT:
            return 0
        _, status = os.waitpid(child, 0)
        return int(message) if message else os.waitstatus_to_exitcode(status)


def _work(work: Callable[[Detachable], int], telling: int, lifeline: int) -> int:
    os.setsid()  # a signal to the caller's process group does not reach this process
    has_left = False

    def follow() -> None:
        """If the caller was killed, end too. The command's guard then sees that we are gone and ends the command."""
        os.read(lifeline, 1)
        if not has_left:
            os.kill(os.getpid(), signal.SIGKILL)

    Thread(target=follow, daemon=True).start()

    def leave() -> None:
        nonlocal has_left
        has_left = True
        null = os.open(os.devnull, os.O_RDWR)
        for stream in range(3):  # a program that reads these streams to their end must not wait for us
            os.dup2(null, stream)
        os.write(telling, _LEFT)
        os.close(telling)

    try:
        code = work(leave)
    except (OSError, OverspillError) as problem:
        code = terminal.report_failure(problem)
        code = problem.exit_code if isinstance(problem, CommandNotStarted) else code
    if not has_left:
        os.write(telling, str(code).encode())
    return 0
