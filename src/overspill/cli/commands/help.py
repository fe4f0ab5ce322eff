"""`overspill help`: how to use a command. `overspill skill`: how a coding agent uses them. `overspill config`: the settings."""

from __future__ import annotations

from typing import Any

import click

from overspill.cli import output
from overspill.cli.settings import load_settings, settings_options
from overspill.settings import Settings
from overspill.settings.schema import dotted_path, flatten, visible
from overspill.text.lenient_json import dumps
from overspill.wording.shell import SKILL, SKILL_HEADER


def _complete(context: click.Context, _: click.Parameter, typed: str) -> list[str]:
    root = context.find_root()
    known = root.command.list_commands(root) if isinstance(root.command, click.Group) else []
    return [name for name in known if name.startswith(typed)]


@click.command("help")
@click.argument("names", metavar="[COMMAND]...", nargs=-1, shell_complete=_complete)
@click.pass_context
def help_(context: click.Context, names: tuple[str, ...]) -> None:
    """Show how to use a command, as its --help does.

    \b
    overspill help extract
    overspill help artifacts list
    """
    found = context.find_root()
    for name in names:
        if not isinstance(found.command, click.Group):
            raise click.UsageError(f"{found.command_path!r} has no commands.", found)
        _, command, _ = found.command.resolve_command(found, [name])
        if command is not None:
            found = click.Context(command, parent=found, info_name=name)
    click.echo(found.get_help())


@click.command()
@click.option("--header", is_flag=True, help="Begin with the header that a SKILL.md file needs.")
def skill(header: bool) -> None:
    """Print a few lines that explain to a coding agent when to use `overspill keep` and `overspill get`.

    \b
    overspill skill >> AGENTS.md
    mkdir -p .claude/skills/overspill && overspill skill --header > .claude/skills/overspill/SKILL.md
    """
    click.echo((SKILL_HEADER if header else "") + SKILL, nl=False)


@click.command()
@settings_options
@output.json_options()
def config(as_json: bool, as_lines: bool, **options: Any) -> None:
    """Show the settings in effect and where each comes from.

    Strongest first: the command line; the file you name with --config, or else .overspill.yaml in the working directory and
    config.yaml in your config directory; then the preset and the defaults.
    """
    loaded = load_settings(**options)
    values = {dotted_path(Settings, path): visible(Settings, path, value) for path, value in flatten(Settings, loaded.settings)}
    rows = {key: {"value": value, "from": loaded.origins[key]} for key, value in values.items()}
    if as_lines:
        output.print_records(({"key": key, **row} for key, row in rows.items()), as_lines=True)
    elif as_json:
        output.print_json(rows)
    else:
        from rich.table import Table  # Rich takes long to import
        from rich.text import Text

        from overspill.cli.tables import console

        table = Table("Key", "Value", "From", box=None, pad_edge=False)
        for key, value in values.items():
            table.add_row(*(Text(cell, overflow="fold") for cell in (key, dumps(value).decode(), loaded.origins[key])))
        console().print(table)
