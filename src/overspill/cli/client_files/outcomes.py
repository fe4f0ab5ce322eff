"""How `overspill wrap` and `overspill unwrap` tell what happened to servers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from overspill.mcp.host_configs import display, entries, rewriting
from overspill.mcp.host_configs.rewriting import Outcome

_UNREMARKABLE = {rewriting.NOT_WRAPPED, entries.OWN_SERVER}


def name_server(outcome: Outcome) -> str:
    return f"{outcome.server} (project {outcome.project})" if outcome.project else outcome.server


def describe_skipped(outcomes: Sequence[Outcome]) -> list[str]:
    skipped = [outcome for outcome in outcomes if outcome.change == "none" and outcome.reason not in _UNREMARKABLE]
    lines = [f"  {name_server(outcome)}: {outcome.reason}." for outcome in skipped]
    return ["Not changed:", *lines] if lines else []


def describe_changed(outcomes: Sequence[Outcome]) -> list[str]:
    changed = [outcome for outcome in outcomes if outcome.change != "none"]
    if not changed:
        return []
    now = "now run" if changed[0].change == "wrapped" else "no longer run"
    return [f"These servers {now} through Overspill:", *(f"  {name_server(outcome)}" for outcome in changed)]


def render_changes(outcomes: Sequence[Outcome]) -> list[str]:
    changed = [outcome for outcome in outcomes if outcome.change != "none"]
    return [line for outcome in changed for line in (name_server(outcome), *display.diff_entry(outcome), "")]


def list_facts(outcomes: Sequence[Outcome]) -> list[dict[str, Any]]:
    keys = ("server", "project", "change", "reason")
    return [{key: getattr(outcome, key) for key in keys} for outcome in outcomes]
