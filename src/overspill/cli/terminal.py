"""Whether output goes to a terminal, whether it has colors, and what commands write to standard error: `overspill: …`,
`overspill: warning: …` and `overspill: error: …`."""

from __future__ import annotations

import os
import sys
from contextvars import ContextVar
from typing import Literal, TypeAlias

import click

from overspill.errors import MissingPackage
from overspill.text.humanize import escape_invisible, suggest_nearest

Level: TypeAlias = Literal["note", "warning", "error"]
_VERBOSITY = "overspill.verbosity"
_COLORS: dict[Level, str] = {"warning": "yellow", "error": "red"}
chosen_color: ContextVar[bool | None] = ContextVar("chosen_color", default=None)
"""What --color says, or None. Unlike what click knows, it outlives the command, and its errors are reported after it."""


def on_terminal() -> bool:
    return bool(sys.stdout) and sys.stdout.isatty()


def watched_on_terminal() -> bool:
    """Whether standard error is a terminal, where live displays go."""
    return bool(sys.stderr) and sys.stderr.isatty()


def has_color(*, is_terminal: bool | None = None) -> bool:
    """As --color says, or else NO_COLOR or FORCE_COLOR, or else on a terminal that shows colors: standard output, or the one
    that is given."""
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
    """A mistake on the command line: first what is wrong, then how the command is used."""
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
    """The error of a command that needs MCP, with how to run it without installing anything."""
    return MissingPackage(f"`overspill {command}`", "mcp", f"With uv: `uvx --from 'overspill[mcp]' overspill {command}`. ")
