"""The options that every command takes, behind its name or before it: -q, -v and --color."""

from __future__ import annotations

from typing import Any

import click
from click.core import ParameterSource

from overspill.cli.stderr import is_quiet, is_verbose, set_verbosity
from overspill.cli.terminal import chosen_color

_SHOW_THEIR_LOG = {"proxy", "run", "serve"}
"""Commands that show what is logged by themselves."""
_COLORS = {"auto": None, "always": True, "never": False}


def add_common_options(command: click.Command) -> click.Command:
    """Once. Options that a command has itself stay. A hook takes none: whatever its client passes, it must not fail."""
    if isinstance(command, click.Group):
        for each in command.commands.values():
            add_common_options(each)
        return command
    return _add(command)


def add_common_options_before(group: click.Group) -> click.Group:
    """To the group itself: `overspill -q stats`."""
    _add(group)
    return group


def _add(command: click.Command) -> click.Command:
    taken = {spelling for param in command.params for spelling in param.opts}
    if command.name != "hook":
        command.params += [option for option in _make_options() if option.opts[-1] not in taken]
    return command


def is_common(option: click.Option) -> bool:
    """Whether it is one of these, and not one that a command has itself."""
    return option.callback in (_silence, _explain, _color)


def _make_options() -> list[click.Option]:
    quiet = click.Option(["-q", "--quiet"], is_flag=True, expose_value=False, callback=_silence, help="Report only errors.")
    verbose = click.Option(["-v", "--verbose"], is_flag=True, expose_value=False, callback=_explain, help="Report what is done.")
    color = click.Option(
        ["--color"],
        type=click.Choice(list(_COLORS)),
        default="auto",
        show_default=True,
        expose_value=False,
        callback=_color,
        help="When to use colors. auto: on a terminal, unless NO_COLOR or FORCE_COLOR is set.",
    )
    return [quiet, verbose, color]


def _silence(context: click.Context, _: click.Parameter, given: bool) -> None:
    if given and is_verbose():
        raise click.UsageError("Use -q or -v, not both.")
    if given:
        set_verbosity(context, "quiet")


def _explain(context: click.Context, _: click.Parameter, given: bool) -> None:
    if given and is_quiet():
        raise click.UsageError("Use -q or -v, not both.")
    if given:
        set_verbosity(context, "verbose")
    if is_verbose() and context.parent is not None and context.command.name not in _SHOW_THEIR_LOG:
        from overspill.cli.logs import show_log

        context.with_resource(show_log())


def _color(context: click.Context, option: click.Parameter, given: Any) -> None:
    is_typed = context.get_parameter_source(option.name or "") is not ParameterSource.DEFAULT
    if is_typed or context.parent is None:
        context.color = _COLORS[given]
        chosen_color.set(_COLORS[given])
