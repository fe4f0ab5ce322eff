"""`overspill help`: how to use a command. `overspill skill`: how a coding agent uses them."""

from __future__ import annotations

import click

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
    """Print a few lines that tell a coding agent when to use `overspill keep` and `overspill get`.

    \b
    overspill skill >> AGENTS.md
    mkdir -p .claude/skills/overspill && overspill skill --header > .claude/skills/overspill/SKILL.md
    """
    click.echo((SKILL_HEADER if header else "") + SKILL, nl=False)
