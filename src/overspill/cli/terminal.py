"""Whether output goes to a terminal, whether it has colors, and what commands write to standard error: `overspill: …`,
`overspill: warning: …` and `overspill: error: …`. How a command ends: its output is written, or you learn that it was not. And
the options of all commands: -q, -v and --color, behind the name of each or before it."""

from __future__ import annotations

import io
import os
import signal
import sys
from collections.abc import Callable
from contextlib import suppress
from contextvars import ContextVar
from typing import Any, Literal, NoReturn, TypeAlias

import click
from click.core import ParameterSource

from overspill.errors import MissingPackage, OverspillError
from overspill.text.humanize import escape_invisible, suggest_nearest

Level: TypeAlias = Literal["note", "warning", "error"]
_VERBOSITY = "overspill.verbosity"
_COLORS: dict[Level, str] = {"warning": "yellow", "error": "red"}
# What a shell reports when a program writes to a pipe that nothing reads. Windows has no such signal.
READER_GONE = 128 + getattr(signal, "SIGPIPE", 13)
TERMINATED = 128 + signal.SIGTERM
_chosen_color: ContextVar[bool | None] = ContextVar("chosen_color", default=None)
"""What --color says, or None. Unlike what click knows, it outlives the command, and its errors are reported after it."""
_SHOW_THEIR_LOG = {"proxy", "run", "serve"}
"""Commands that show what is logged by themselves."""
_COLOR_CHOICES = {"auto": None, "always": True, "never": False}


def on_terminal() -> bool:
    return bool(sys.stdout) and sys.stdout.isatty()


def watched_on_terminal() -> bool:
    """Whether standard error is a terminal, where live displays go."""
    return bool(sys.stderr) and sys.stderr.isatty()


def has_color(*, is_terminal: bool | None = None) -> bool:
    """As --color says, or else NO_COLOR or FORCE_COLOR, or else on a terminal that shows colors: standard output, or the one
    that is given."""
    chosen = _chosen_color.get()
    if chosen is not None:
        return chosen
    if os.environ.get("NO_COLOR"):
        return False
    if forced := os.environ.get("FORCE_COLOR"):
        return forced != "0"
    return (on_terminal() if is_terminal is None else is_terminal) and os.environ.get("TERM") != "dumb"


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
    """A standard output that the caller has closed. Python has None there, and would lose what is printed without a word."""

    @property
    def buffer(self) -> ClosedOutput:
        return self

    def write(self, _: object, /) -> NoReturn:
        raise OverspillError("Standard output is closed, so the output is lost. Send it to a file, or to /dev/null.")


def require_output() -> None:
    if isinstance(sys.stdout, ClosedOutput):
        sys.stdout.write("")


def hold_closed_streams() -> None:
    """Keep the numbers of closed standard streams taken: a file that is opened later must not pass for one of them."""
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # takes the lowest number that is free
    if sys.stdout is None:  # pyright: ignore[reportUnnecessaryComparison]  # None when the parent process closed it
        sys.stdout = ClosedOutput()


def drop_unwritten() -> None:
    """Python would try again at shutdown, fail again, print a traceback and change the exit code."""
    for stream in (sys.stdout, sys.stderr):
        if stream is None:  # pyright: ignore[reportUnnecessaryComparison]
            continue
        try:
            stream.flush()
        except OSError:
            with suppress(OSError):  # a caller may have put a stream without a file descriptor here
                null = os.open(os.devnull, os.O_WRONLY)
                os.dup2(null, stream.fileno())
                os.close(null)


class CommandGroup(click.Group):
    """Suggests the nearest command for a mistyped name."""

    def resolve_command(self, ctx: click.Context, args: list[str]) -> tuple[str | None, click.Command | None, list[str]]:
        known = self.list_commands(ctx)
        if args[0] not in known and not args[0].startswith("-"):
            ctx.fail(f"No such command {args[0]!r}.{suggest_nearest(args[0], known)}")
        return super().resolve_command(ctx, args)


def grace_option(default: float) -> Callable[[Any], Any]:
    """For commands that serve others."""
    return click.option(
        "--grace",
        type=click.FloatRange(0),
        default=default,
        show_default=True,
        metavar="SECONDS",
        help="How long calls may take to end after SIGTERM or Ctrl-C.",
    )


def add_common_options(command: click.Command) -> click.Command:
    """To the command, or to those of a group. Options that a command has itself stay. A hook takes none: even with options that
    nobody knows, it must not fail."""
    for each in command.commands.values() if isinstance(command, click.Group) else [command]:
        taken = {spelling for param in each.params for spelling in param.opts}
        if each.name != "hook":
            each.params += [option for option in make_common_options() if option.opts[-1] not in taken]
    return command


def is_common(option: click.Option) -> bool:
    """Whether it is one of these, and not one that a command has itself."""
    return option.callback in (_set_verbosity, _color)


def make_common_options() -> list[click.Option]:
    verbosity: dict[str, Any] = {"is_flag": True, "expose_value": False, "callback": _set_verbosity}
    color = click.Option(
        ["--color"],
        type=click.Choice(list(_COLOR_CHOICES)),
        default="auto",
        show_default=True,
        expose_value=False,
        callback=_color,
        help="When to use colors. auto: on a terminal, unless NO_COLOR or FORCE_COLOR is set.",
    )
    return [
        click.Option(["-q", "--quiet"], **verbosity, help="Report only errors."),
        click.Option(["-v", "--verbose"], **verbosity, help="Report what is done."),
        color,
    ]


def _set_verbosity(context: click.Context, option: click.Parameter, given: bool) -> None:
    is_quiet_option = option.name == "quiet"
    if given and (is_verbose() if is_quiet_option else is_quiet()):
        raise click.UsageError("Use -q or -v, not both.")
    if given:
        context.meta[_VERBOSITY] = "quiet" if is_quiet_option else "verbose"
    if not is_quiet_option and is_verbose() and context.parent is not None and context.command.name not in _SHOW_THEIR_LOG:
        from overspill.cli.logs import show_log

        context.with_resource(show_log())


def _color(context: click.Context, option: click.Parameter, given: Any) -> None:
    is_typed = context.get_parameter_source(option.name or "") is not ParameterSource.DEFAULT
    if is_typed or context.parent is None:
        context.color = _COLOR_CHOICES[given]
        _chosen_color.set(_COLOR_CHOICES[given])
