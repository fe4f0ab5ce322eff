"""`overspill jobs`: the background jobs of live sessions."""

from __future__ import annotations

from typing import Any

import click

from overspill import handles
from overspill.cli import output, stores, tables
from overspill.cli.settings import settings_options
from overspill.record.events import now_ms
from overspill.retrieval.archive import ArchivedJob


@click.command()
@output.json_options()
@settings_options
def jobs(as_json: bool, as_lines: bool, **options: Any) -> None:
    """List the running, queued and finished background jobs of live sessions.

    To print the output of a finished job: overspill artifacts show ID
    """
    found = stores.archive(**options).jobs()
    if as_json or as_lines:
        output.print_records(map(_describe, found), as_lines=as_lines)
    elif not found:
        click.echo("No background jobs in live sessions.")
    else:
        rows = [
            [handles.artifact_id(job.change.id), job.change.tool, job.change.state, f"{_count_seconds(job):,.1f}",
             output.format_time(job.asked_ms), job.session, job.change.error]
            for job in found
        ]  # fmt: skip
        tables.print_table(
            "Background Jobs", ("ID", "Tool", "State", "Seconds", "Requested", "Session", "Error"), rows, numbers=("Seconds",)
        )


def _count_seconds(job: ArchivedJob) -> float:
    """Up to now, for a job that is still running."""
    change = job.change
    since = 0.0 if change.state in ("ready", "failed") else max(0, now_ms() - change.t) / 1000
    return round(change.seconds + since, 1)


def _describe(job: ArchivedJob) -> dict[str, Any]:
    return {
        "id": handles.artifact_id(job.change.id),
        "tool": job.change.tool,
        "state": job.change.state,
        "seconds": _count_seconds(job),
        "asked_for": output.format_iso(job.asked_ms),
        "session": job.session,
        "error": job.change.error,
    }
