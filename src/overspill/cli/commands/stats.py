"""The activity of stored sessions: `overspill stats` sums it up, `overspill jobs` lists background jobs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from statistics import fmean, median
from typing import Any

import click

from overspill import handles
from overspill.cli import output, stores, tables
from overspill.cli.commands.hub import list_facts
from overspill.cli.settings import load_settings, settings_options
from overspill.cli.terminal import inform
from overspill.record.bill import Bill
from overspill.record.events import now_ms
from overspill.retrieval.archive import ArchivedJob
from overspill.text.humanize import format_size
from overspill.types import ENDED

_NOTHING_STORED = (
    "No session is stored, so every figure is 0. Sessions leave nothing behind when they end, unless their retention is `keep`, "
    "as in the proxy, in `overspill keep` and in hooks."
)

_NOT_COUNTED = (
    "Conversations that stored nothing have left no record, and each of them paid for the tools that Overspill offers. To count "
    "them too, and to compare with conversations that are left alone, set holdoutPercent."
)
MIN_COMPARED = 30

_SUMMED = (
    "calls", "failed_calls", "kept", "kept_bytes", "kept_tokens", "truncated", "tokens_kept_out", "retrievals",
    "failed_retrievals", "retrieved_in_full", "refs", "estimated_tokens", "reported_tokens",
)  # fmt: skip


@click.command()
@output.json_options("Print JSON: the figures in total and for each session.")
@settings_options
def stats(as_json: bool, as_lines: bool, **options: Any) -> None:
    """Show how many outputs were kept, what was retrieved, and what that saved or cost in tokens and money.

    --jsonl prints the figures of each session, without the total.
    """
    settings = load_settings(**options).settings
    sessions = stores.open_archive(settings).counters()
    costs = [counters.bill.costs(settings.prices) for _, counters in sessions]
    money = {name: sum(each[name] for each in costs) for name in Bill().costs(settings.prices)}
    total: dict[str, Any] = {name: sum(getattr(counters, name) for _, counters in sessions) for name in _SUMMED}
    total |= {"truncation_rate": total["truncated"] / total["calls"] if total["calls"] else 0.0}
    described = [
        {"session": label.session, "name": label.name, "live": label.live, "untouched": counters.bill.is_untouched}
        | {name: getattr(counters, name) for name in (*_SUMMED, "truncation_rate")}
        | {"money": cost}
        for (label, counters), cost in zip(sessions, costs, strict=True)
    ]
    if as_lines:
        output.print_records(described, as_lines=True)
        return
    if as_json:
        output.print_json({"total": total | {"money": money}, "sessions": described})
        return
    if not sessions:
        inform(_NOTHING_STORED)
    rows = [
        ("Sessions", f"{len(sessions):,} ({sum(label.live for label, _ in sessions)} live)"),
        ("Tool calls", f"{total['calls']:,} ({total['failed_calls']:,} failed)"),
        ("Outputs kept", f"{total['kept']:,} ({format_size(total['kept_bytes'])})"),
        ("Tokens kept out of context", f"{total['tokens_kept_out']:,}"),
        ("Calls answered with less", f"{total['truncation_rate']:.1%}"),
        ("Retrievals", f"{total['retrievals']:,} ({total['failed_retrievals']:,} failed)"),
        ("Later retrieved in full", f"{total['retrieved_in_full']:,}"),
        ("Outputs used as arguments", f"{total['refs']:,}"),
        ("Tokens, estimated / reported", f"{total['estimated_tokens']:,} / {total['reported_tokens']:,}"),
    ]
    rows += [
        ("What was kept out would have cost", f"${money['kept']:,.2f}"),
        ("Minus what was shown instead", f"${money['shown']:,.2f}"),
        ("Minus what was read back", f"${money['read_back']:,.2f}"),
        ("Minus our tools in each request", f"${money['offered']:,.2f}"),
        ("Minus additional requests", f"${money['steps']:,.2f} ({sum(counters.bill.steps for _, counters in sessions):,})"),
        ("Saved, net", f"${money['saved']:,.2f}"),
        *_compare(described),
    ]
    tables.print_facts("Overspill", [*rows, *list_facts()])
    if any(counters.calls for _, counters in sessions) and not settings.holdout_percent:
        inform(_NOT_COUNTED)


def _compare(sessions: Sequence[Mapping[str, Any]]) -> Iterator[tuple[str, str]]:
    """Compare the conversations that were left alone with the others, if there are both."""
    called = [each for each in sessions if each["calls"]]
    groups = [[each for each in called if each["untouched"] is kind] for kind in (True, False)]
    if all(groups):
        for name, group in zip(("Untouched conversations", "Other conversations"), groups, strict=True):
            spent, calls = [each["money"]["spent"] for each in group], fmean(each["calls"] for each in group)
            cost = f"${fmean(spent):,.4f} each for results (median ${median(spent):,.4f})"
            yield name, f"{len(group):,}: {cost}, {calls:,.1f} calls"
        if min(map(len, groups)) < MIN_COMPARED:
            yield "Beware", f"With fewer than {MIN_COMPARED} conversations in a group, the difference may be chance."


@click.command()
@output.json_options()
@settings_options
def jobs(as_json: bool, as_lines: bool, **options: Any) -> None:
    """List the running, queued and finished background jobs of live sessions.

    To print the output of a finished job: overspill artifacts show ID
    """
    found = stores.archive(**options).jobs()
    if as_json or as_lines:
        described = [
            {"id": handles.artifact_id(job.change.id), "tool": job.change.tool, "state": job.change.state}
            | {"seconds": _count_seconds(job), "asked_for": output.format_iso(job.asked_ms)}
            | {"session": job.session, "error": job.change.error}
            for job in found
        ]
        output.print_records(described, as_lines=as_lines)
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
    """Return how long a job took, or has taken so far if it is still running."""
    change = job.change
    since = 0.0 if change.state in ENDED else max(0, now_ms() - change.t) / 1000
    return round(change.seconds + since, 1)
