"""`overspill verify`: check that stored outputs are unchanged."""

from __future__ import annotations

import sys
from typing import Any

import click

from overspill.cli import output, stores, tables
from overspill.cli.settings import settings_options


@click.command()
@click.argument("id", required=False, shell_complete=stores.complete_outputs)
@output.json_options()
@settings_options
def verify(id: str | None, as_json: bool, as_lines: bool, **options: Any) -> None:
    """Check stored outputs against the SHA-256 checksums recorded when they were stored.

    With ID, only that output is checked. The exit code is 1 if an output has changed.
    """
    archive = stores.archive(**options)
    checks = list(archive.verify([archive.find(id)] if id else archive.items()))
    changed = [check for check in checks if not check.sound]
    if as_json or as_lines:
        facts = ({"artifact_id": check.kept.artifact_id, "sound": check.sound, "problem": check.problem} for check in checks)
        output.print_records(facts, as_lines=as_lines)
    else:
        if changed:
            tables.print_table(
                "Changed outputs", ("ID", "Problem"), [[check.kept.artifact_id, check.problem] for check in changed]
            )
        click.echo(f"{len(checks):,} checked, {len(changed):,} changed.")
    sys.exit(1 if changed else 0)
