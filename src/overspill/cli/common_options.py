"""What commands have in common: -q, -v and --color, before or after a command's name, and a hint for a mistyped name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click
from click.core import ParameterSource

from overspill.cli.terminal import chosen_color, is_quiet, is_verbose, set_verbosity
from overspill.text.humanize import suggest_nearest

_SHOW_THEIR_LOG = {"proxy", "run", "serve"}
"""Commands that show their log themselves."""
_MAX_GROUP_CHARS = 40
_COLORS = {"auto": None, "always": True, "never": False}


def group_name(value: str) -> str:
    """Check the value of an option: the name shared by the proxies of one client and the entry that reads what they store."""
    if not value.isascii() or not value.replace("-", "").isalnum() or len(value) > _MAX_GROUP_CHARS:
        raise click.BadParameter(f"{value!r} is not a name of up to {_MAX_GROUP_CHARS} letters, digits and hyphens.")
    return value


class CommandGroup(click.Group):
    """Suggests the nearest command for a mistyped name."""

    def resolve_command(self, ctx: click.Context, args: list[str]) -> tuple[str | None, click.Command | None, list[str]]:
        known = self.list_commands(ctx)
        if args[0] not in known and not args[0].startswith("-"):
            ctx.fail(f"No such command {args[0]!r}.{suggest_nearest(args[0], known)}")
        return super().resolve_command(ctx, args)


def grace_option(default: float) -> Callable[[Any], Any]:
    """Make the option --grace, for commands that serve others."""
    return click.option(
        "--grace",
        type=click.FloatRange(0),
        default=default,
        show_default=True,
        metavar="SECONDS",
        help="How long calls may take to end after SIGTERM or Ctrl-C.",
    )


def add_common_options(command: click.Command) -> click.Command:
    """Add the options to a command, or to all in a group, unless it has its own. A hook gets none, so it cannot fail on them."""
    for each in command.commands.values() if isinstance(command, click.Group) else [command]:
        taken = {spelling for param in each.params for spelling in param.opts}
        if each.name != "hook":
            each.params += [option for option in make_common_options() if option.opts[-1] not in taken]
    return command


def is_common(option: click.Option) -> bool:
    """Whether this is one of the common options, and not a command's own option."""
    return option.callback in (_set_verbosity, _color)


def make_common_options() -> list[click.Option]:
    verbosity: dict[str, Any] = {"is_flag": True, "expose_value": False, "callback": _set_verbosity}
    color = click.Option(
        ["--color"],
        type=click.Choice(list(_COLORS)),
        default="auto",
        show_default=True,
        expose_value=False,
        callback=_color,
        help="When to use colors. auto: on a terminal, unless NO_COLOR or FORCE_COLOR is set.",
    )
    return [
        click.Option(["-q", "--quiet"], **verbosity, help="Report only errors."),
        click.Option(["-v", "--verbose"], **verbosity, help="Report each step."),
        color,
    ]


def _set_verbosity(context: click.Context, option: click.Parameter, given: bool) -> None:
    is_quiet_option = option.name == "quiet"
    if given and (is_verbose() if is_quiet_option else is_quiet()):
        raise click.UsageError("Use -q or -v, not both.")
    if given:
        set_verbosity(context, "quiet" if is_quiet_option else "verbose")
    if not is_quiet_option and is_verbose() and context.parent is not None and context.command.name not in _SHOW_THEIR_LOG:
        from overspill.cli.logs import show_log

        context.with_resource(show_log())


def _color(context: click.Context, option: click.Parameter, given: Any) -> None:
    is_typed = context.get_parameter_source(option.name or "") is not ParameterSource.DEFAULT
    if is_typed or context.parent is None:
        context.color = _COLORS[given]
        chosen_color.set(_COLORS[given])
