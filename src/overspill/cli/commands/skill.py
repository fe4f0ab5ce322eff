"""`overspill skill`: what to tell a coding agent."""

from __future__ import annotations

import click

from overspill.wording.shell import SKILL, SKILL_HEADER


@click.command()
@click.option("--header", is_flag=True, help="Begin with the header that a SKILL.md file needs.")
def skill(header: bool) -> None:
    """Print a few lines that tell a coding agent when to use `overspill keep` and `overspill get`.

    \b
    overspill skill >> AGENTS.md
    mkdir -p .claude/skills/overspill && overspill skill --header > .claude/skills/overspill/SKILL.md
    """
    click.echo((SKILL_HEADER if header else "") + SKILL, nl=False)
