"""`overspill jobs`: what runs in the background of live sessions."""

from __future__ import annotations

import click

from overspill import ids
from overspill.archive import JobLine
from overspill.cli import look
from overspill.events import now_ms


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def jobs(as_json: bool) -> None:
    """List running, queued and finished background jobs of live sessions."""
    lines = look.archive().jobs()
    if as_json:
        look.print_json([_facts(line) for line in lines])
    elif not lines:
        click.echo("No background jobs in live sessions.")
    else:
        rows = [[str(value) for value in _facts(line).values()] for line in lines]
        look.print_table("Background jobs", ("ID", "Tool", "State", "Seconds", "Asked for", "Session", "Error"), rows)


def _facts(line: JobLine) -> dict[str, str | float]:
    change = line.change
    since_change = 0.0 if change.state in ("ready", "failed") else (now_ms() - change.t) / 1000
    return {
        "id": ids.artifact_id(change.id),
        "tool": change.tool,
        "state": change.state,
        "seconds": round(change.seconds + since_change, 1),
        "asked_for": look.when(line.asked_ms),
        "session": line.session,
        "error": change.error,
    }
