"""`overspill verify`: check that stored outputs are unchanged."""

from __future__ import annotations

import sys
from typing import Any

import click
from msgspec import to_builtins

from overspill.cli import output, stores, tables
from overspill.cli.settings import settings_options
from overspill.retrieval.archive import Check
from overspill.text.humanize import escape_invisible


@click.command()
@click.argument("id", required=False, shell_complete=stores.complete_outputs)
@output.json_options()
@settings_options
def verify(id: str | None, as_json: bool, as_lines: bool, **options: Any) -> None:
    """Check stored outputs against the SHA-256 checksums recorded when they were stored.

    With ID, only that output is checked. Of an output that a query made, the query is shown, with the outputs that it read and
    their checksums then. The exit code is 1 if an output has changed.
    """
    archive = stores.archive(**options)
    checks = list(archive.verify([archive.find(id)] if id else archive.items()))
    changed = [check for check in checks if not check.sound]
    if as_json or as_lines:
        output.print_records(map(_describe, checks), as_lines=as_lines)
    else:
        if changed:
            tables.print_table(
                "Changed outputs", ("ID", "Problem"), [[check.kept.artifact_id, check.problem] for check in changed]
            )
        for check in checks:
            if (made := check.kept.lineage) is not None:
                sources = "".join(f"\n  from {each.name}: {each.handle}, SHA-256 {each.sha256}" for each in made.sources)
                click.echo(escape_invisible(f"{check.kept.artifact_id} was made by: {' '.join(made.query.split())}{sources}"))
        click.echo(f"{len(checks):,} checked, {len(changed):,} changed.")
    sys.exit(1 if changed else 0)


def _describe(check: Check) -> dict[str, Any]:
    facts = {"artifact_id": check.kept.artifact_id, "sound": check.sound, "problem": check.problem}
    return facts if check.kept.lineage is None else facts | {"lineage": to_builtins(check.kept.lineage)}
