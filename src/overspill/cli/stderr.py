"""What commands write to standard error: `overspill: …`, `overspill: warning: …` and `overspill: error: …`."""

from __future__ import annotations

from typing import Literal, TypeAlias

import click

from overspill.cli.terminal import has_colored_messages
from overspill.text.humanize import escape_invisible, suggest_nearest

Level: TypeAlias = Literal["note", "warning", "error"]
Verbosity: TypeAlias = Literal["quiet", "usual", "verbose"]
_VERBOSITY = "overspill.verbosity"
_LABELS: dict[Level, str] = {"note": "", "warning": "warning:", "error": "error:"}
_COLORS: dict[Level, str] = {"warning": "yellow", "error": "red"}


def format_message(text: str, level: Level) -> str:
    return f"overspill: {f'{_LABELS[level]} ' if _LABELS[level] else ''}{escape_invisible(text)}"


def inform(text: str) -> None:
    if not is_quiet():
        _write(text, "note")


def warn(text: str) -> None:
    if not is_quiet():
        _write(text, "warning")


def set_verbosity(context: click.Context, verbosity: Verbosity) -> None:
    context.meta[_VERBOSITY] = verbosity


def is_quiet() -> bool:
    return _find_verbosity() == "quiet"


def is_verbose() -> bool:
    return _find_verbosity() == "verbose"


def _find_verbosity() -> Verbosity:
    context = click.get_current_context(silent=True)
    return context.meta.get(_VERBOSITY, "usual") if context else "usual"


def report_error(text: str) -> None:
    _write(text, "error")


def _write(text: str, level: Level) -> None:
    message = format_message(text, level)
    is_colored = has_colored_messages()
    if is_colored and level in _COLORS:
        message = message.replace(_LABELS[level], click.style(_LABELS[level], fg=_COLORS[level], bold=True), 1)
    click.echo(message, err=True, color=is_colored)


def report_usage(problem: click.ClickException) -> None:
    """A mistake on the command line: first what is wrong, then how the command is used."""
    if isinstance(problem, click.exceptions.NoArgsIsHelpError):
        problem.show()
        return
    report_error(_describe(problem))
    context = problem.ctx if isinstance(problem, click.UsageError) else None
    if context is not None:
        click.echo(f"\n{context.get_usage()}\n\nFor more information, try '{context.command_path} --help'.", err=True)


def with_uvx(command: str) -> str:
    """How to run a command that needs MCP without installing anything."""
    return f"With uv: `uvx --from 'overspill[mcp]' overspill {command}`. "


def _describe(problem: click.ClickException) -> str:
    if isinstance(problem, click.NoSuchOption):  # each version of click words it differently
        return f"No such option {problem.option_name!r}.{suggest_nearest(problem.option_name, problem.possibilities or ())}"
    message = problem.format_message()
    return message if message.endswith((".", "?", "!")) else f"{message}."
