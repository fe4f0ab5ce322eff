"""Whether output goes to a terminal, whether it has colors, and what commands write to standard error: `overspill: …`,
`overspill: warning: …` and `overspill: error: …`. Also how a command ends: it writes all its output, or says that it failed."""

from __future__ import annotations

import io
import os
import signal
import sys
from contextlib import suppress
from contextvars import ContextVar
from typing import Any, Literal, NoReturn, TypeAlias

import click

from overspill.errors import MissingPackage, OverspillError
from overspill.text.humanize import escape_invisible, suggest_nearest

Level: TypeAlias = Literal["note", "warning", "error"]
_ANSWERS = ("y", "yes", "n", "no")
_VERBOSITY = "overspill.verbosity"
_COLORS: dict[Level, str] = {"warning": "yellow", "error": "red"}
# What a shell reports when a program writes to a pipe that nothing reads. Windows has no such signal.
READER_GONE = 128 + getattr(signal, "SIGPIPE", 13)
TERMINATED = 128 + signal.SIGTERM
chosen_color: ContextVar[bool | None] = ContextVar("chosen_color", default=None)
"""The value of --color, or None. Unlike click's context, it outlives the command, whose errors are reported afterwards."""


def on_terminal() -> bool:
    return bool(sys.stdout) and sys.stdout.isatty()


def can_ask() -> bool:
    """Whether the user can see a question and answer it."""
    return on_terminal() and bool(sys.stdin) and sys.stdin.isatty()


def watched_on_terminal() -> bool:
    """Whether standard error is a terminal, where live displays go."""
    return bool(sys.stderr) and sys.stderr.isatty()


def has_color(*, is_terminal: bool | None = None) -> bool:
    """Whether to use colors: as --color says, then NO_COLOR or FORCE_COLOR, then whether the output is a color terminal."""
    chosen = chosen_color.get()
    if chosen is not None:
        return chosen
    if os.environ.get("NO_COLOR"):
        return False
    if forced := os.environ.get("FORCE_COLOR"):
        return forced != "0"
    return (on_terminal() if is_terminal is None else is_terminal) and os.environ.get("TERM") != "dumb"


def set_verbosity(context: click.Context, verbosity: Literal["quiet", "verbose"]) -> None:
    context.meta[_VERBOSITY] = verbosity


def is_quiet() -> bool:
    return _find_verbosity() == "quiet"


def is_verbose() -> bool:
    return _find_verbosity() == "verbose"


def _find_verbosity() -> str | None:
    context = click.get_current_context(silent=True)
    return context.meta.get(_VERBOSITY) if context else None


def format_message(text: str, level: Level) -> str:
    return f"overspill: {f'{level}: ' if level in _COLORS else ''}{escape_invisible(text)}"


def inform(text: str, level: Level = "note") -> None:
    if is_quiet() and level != "error":
        return
    message = format_message(text, level)
    is_colored = has_color(is_terminal=watched_on_terminal())
    if is_colored and level in _COLORS:
        message = message.replace(f"{level}:", click.style(f"{level}:", fg=_COLORS[level], bold=True), 1)
    click.echo(message, err=True, color=is_colored)


def warn(text: str) -> None:
    inform(text, "warning")


def report_error(text: str) -> None:
    inform(text, "error")


def report_usage(problem: click.ClickException) -> None:
    """Report a mistake on the command line: first what is wrong, then how the command is used."""
    if isinstance(problem, click.exceptions.NoArgsIsHelpError):
        problem.show()
        return
    if isinstance(problem, click.NoSuchOption):  # each version of click words it differently
        message = f"No such option {problem.option_name!r}.{suggest_nearest(problem.option_name, problem.possibilities or ())}"
    else:
        message = problem.format_message()
    report_error(message if message.endswith((".", "?", "!")) else f"{message}.")
    context = problem.ctx if isinstance(problem, click.UsageError) else None
    if context is not None:
        click.echo(f"\n{context.get_usage()}\n\nFor more information, try '{context.command_path} --help'.", err=True)


def lacks_mcp(command: str) -> MissingPackage:
    """Make the error of a command that needs MCP. It says how to run the command without installing anything."""
    return MissingPackage(f"`overspill {command}`", "mcp", f"With uv: `uvx --from 'overspill[mcp]' overspill {command}`. ")


def report_failure(problem: OSError | OverspillError) -> int:
    """Write one line to standard error and return the exit code. A reader that goes away, as `head` does, is not a mistake."""
    if isinstance(problem, BrokenPipeError):
        return READER_GONE
    message = str(problem)
    if isinstance(problem, OSError):  # one that no command expects, such as a full disk under standard output
        message = f"{problem.filename or 'Reading or writing'} failed: {problem.strerror or problem}."
        try:
            os.getcwd()
        except FileNotFoundError:
            message = "The working directory no longer exists. Change to another one and try again."
    with suppress(OSError):  # standard error may be on the same full disk
        report_error(message)
    return 2


class ClosedOutput(io.TextIOBase):
    """Replaces a standard output that the caller has closed. Python sets None, and would silently lose what is printed."""

    @property
    def buffer(self) -> ClosedOutput:
        return self

    def write(self, _: object, /) -> NoReturn:
        raise OverspillError("Standard output is closed, so the output is lost. Send it to a file, or to /dev/null.")


def require_output() -> None:
    if isinstance(sys.stdout, ClosedOutput):
        sys.stdout.write("")


def hold_closed_streams() -> None:
    """Keep the numbers of closed standard streams taken, so that no file opened later gets one of them."""
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # takes the lowest number that is free
    if sys.stdout is None:  # pyright: ignore[reportUnnecessaryComparison]  # None when the parent process closed it
        sys.stdout = ClosedOutput()


def drop_unwritten() -> None:
    """Drop what cannot be written. At shutdown, Python would try again, print a traceback and change the exit code."""
    for stream in (sys.stdout, sys.stderr):
        if stream is None:  # pyright: ignore[reportUnnecessaryComparison]
            continue
        try:
            stream.flush()
        except OSError:
            with suppress(OSError):  # a caller may have replaced the stream by one without a file descriptor
                null = os.open(os.devnull, os.O_WRONLY)
                os.dup2(null, stream.fileno())
                os.close(null)


def confirm() -> bool:
    """Ask for confirmation. Unlike `click.confirm`, says which answers are possible."""
    shown: dict[str, Any] = {"show_default": False, "show_choices": False, "prompt_suffix": " ", "err": True}
    try:
        answer = click.prompt("Do this now? [y/N]", "n", type=click.Choice(_ANSWERS, case_sensitive=False), **shown)
        return answer in _ANSWERS[:2]
    except click.Abort:  # Ctrl-C and Ctrl-D leave the cursor behind the question
        click.echo(err=True)
        return False
