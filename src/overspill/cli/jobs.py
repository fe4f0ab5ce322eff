"""`overspill jobs`: what runs in the background of live sessions."""

from __future__ import annotations

from typing import Any

import click

from overspill import handles
from overspill.cli import output
from overspill.cli.config import settings_options
from overspill.record.events import now_ms
from overspill.retrieval.archive import ArchivedJob


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@settings_options
def jobs(as_json: bool, **options: Any) -> None:
    """List running, queued and finished background jobs of live sessions.

    The output of a finished job: overspill artifacts show ID
    """
    lines = output.archive(**options).jobs()
    if as_json:
        output.print_json([_facts(line) for line in lines])
    elif not lines:
        click.echo("No background jobs in live sessions.")
    else:
        rows = [
            [handles.artifact_id(line.change.id), line.change.tool, line.change.state, f"{_seconds(line):,.1f}",
             output.when(line.asked_ms), line.session, line.change.error]
            for line in lines
        ]  # fmt: skip
        output.print_table(
            "Background Jobs", ("ID", "Tool", "State", "Seconds", "Asked for", "Session", "Error"), rows, numbers=("Seconds",)
        )


def _seconds(line: ArchivedJob) -> float:
    """Up to now, of a job that goes on."""
    change = line.change
    since = 0.0 if change.state in ("ready", "failed") else max(0, now_ms() - change.t) / 1000
    return round(change.seconds + since, 1)


def _facts(line: ArchivedJob) -> dict[str, Any]:
    return {
        "id": handles.artifact_id(line.change.id),
        "tool": line.change.tool,
        "state": line.change.state,
        "seconds": _seconds(line),
        "asked_for": output.iso(line.asked_ms),
        "session": line.session,
        "error": line.change.error,
    }
