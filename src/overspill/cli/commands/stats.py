"""`overspill stats`: what Overspill kept and retrieved, over all sessions that are still stored."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import click

from overspill.cli import output, stores, tables
from overspill.cli.settings import settings_options
from overspill.cli.stderr import inform
from overspill.record.counters import Counters
from overspill.store.protocols import ShelfLabel
from overspill.text import humanize

_NOTHING_STORED = (
    "No session is stored, so every figure is 0. Sessions leave nothing behind when they end, unless their retention is `keep`, "
    "as in the proxy, in `overspill keep` and in hooks."
)


@click.command()
@output.json_options("Print JSON: the figures in total and for each session.")
@settings_options
def stats(as_json: bool, as_lines: bool, **options: Any) -> None:
    """Show how many outputs were kept, how many tokens that saved, and what was retrieved.

    --jsonl prints the figures of each session, without the total.
    """
    sessions = stores.archive(**options).counters()
    total = _sum([counters for _, counters in sessions])
    described = [_describe(label, counters) for label, counters in sessions]
    if as_lines:
        output.print_records(described, as_lines=True)
        return
    if as_json:
        output.print_json({"total": total, "sessions": described})
        return
    if not sessions:
        inform(_NOTHING_STORED)
    rows = [
        ("Sessions", f"{len(sessions):,} ({sum(label.live for label, _ in sessions)} live)"),
        ("Tool calls", f"{total['calls']:,} ({total['failed_calls']:,} failed)"),
        ("Outputs kept", f"{total['kept']:,} ({humanize.format_size(total['kept_bytes'])})"),
        ("Tokens kept out of context", f"{total['tokens_kept_out']:,}"),
        ("Calls answered with less", f"{total['truncation_rate']:.1%}"),
        ("Retrievals", f"{total['retrievals']:,} ({total['failed_retrievals']:,} failed)"),
        ("Later retrieved in full", f"{total['retrieved_in_full']:,}"),
        ("Outputs used as arguments", f"{total['refs']:,}"),
        ("Tokens, estimated / reported", f"{total['estimated_tokens']:,} / {total['reported_tokens']:,}"),
    ]
    tables.print_facts("Overspill", rows)


_SUMMED = (
    "calls", "failed_calls", "kept", "kept_bytes", "kept_tokens", "truncated", "tokens_kept_out", "retrievals",
    "failed_retrievals", "retrieved_in_full", "refs", "estimated_tokens", "reported_tokens",
)  # fmt: skip


def _describe(label: ShelfLabel, counters: Counters) -> dict[str, Any]:
    figures = {name: getattr(counters, name) for name in (*_SUMMED, "truncation_rate")}
    return {"session": label.session, "name": label.name, "live": label.live, **figures}


def _sum(all_counters: Sequence[Counters]) -> dict[str, Any]:
    total = {name: sum(getattr(counters, name) for counters in all_counters) for name in _SUMMED}
    return total | {"truncation_rate": total["truncated"] / total["calls"] if total["calls"] else 0.0}
