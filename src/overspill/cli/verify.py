"""`overspill verify`: is everything that was stored still what it was?"""

from __future__ import annotations

import sys
from typing import Any

import click

from overspill.cli import output
from overspill.cli.config import settings_options


@click.command()
@click.argument("id", required=False)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@settings_options
def verify(id: str | None, as_json: bool, **options: Any) -> None:
    """Hash stored outputs again and compare with what was stored.

    With ID only that one. Exit code 1 if one is not as it was.
    """
    archive = output.archive(**options)
    checks = list(archive.verify([archive.find(id)] if id else archive.items()))
    broken = [check for check in checks if not check.sound]
    if as_json:
        output.print_json(
            [{"artifact_id": check.kept.artifact_id, "sound": check.sound, "problem": check.problem} for check in checks]
        )
    else:
        if broken:
            output.print_table("Not as stored", ("ID", "Problem"), [[check.kept.artifact_id, check.problem] for check in broken])
        click.echo(f"{len(checks):,} checked, {len(broken):,} not as stored.")
    sys.exit(1 if broken else 0)
