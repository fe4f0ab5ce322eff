"""How `overspill wrap` and `overspill unwrap` tell what happened to servers."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from overspill.mcp.host_configs import display, entries, rewriting
from overspill.mcp.host_configs.files import ClientFile
from overspill.mcp.host_configs.rewriting import RewriteOutcome

_UNREMARKABLE = {rewriting.NOT_WRAPPED, entries.OWN_SERVER}


def name_server(outcome: RewriteOutcome) -> str:
    return f"{outcome.server} (project {outcome.project})" if outcome.project else outcome.server


def describe_skipped(outcomes: Sequence[RewriteOutcome]) -> list[str]:
    skipped = [outcome for outcome in outcomes if outcome.change == "none" and outcome.reason not in _UNREMARKABLE]
    lines = [f"  {name_server(outcome)}: {outcome.reason}." for outcome in skipped]
    return ["Not changed:", *lines] if lines else []


def describe_changed(outcomes: Sequence[RewriteOutcome]) -> list[str]:
    changed = _select_changed(outcomes)
    if not changed:
        return []
    now = "now run" if changed[0].change == "wrapped" else "no longer run"
    return [f"These servers {now} through Overspill:", *(f"  {name_server(outcome)}" for outcome in changed)]


def render_changes(outcomes: Sequence[RewriteOutcome]) -> list[str]:
    """What would change, for --print."""
    changes = [line for outcome in _select_changed(outcomes) for line in (name_server(outcome), *display.diff_entry(outcome), "")]
    return [*changes, *describe_skipped(outcomes), "Nothing was written."]


def describe_file(file: ClientFile, copy: Path | None) -> list[str]:
    """A file that was changed, and where its text from before is."""
    link = f" {file.given} is still a link to it." if file.is_symlink else ""
    original = f"The original is in {copy}, secrets included. Remove it when you no longer need it."
    return [f"Changed {file.path}.{link}", original if copy else "It is as it was before, so the copies of it are removed."]


def list_facts(outcomes: Sequence[RewriteOutcome]) -> list[dict[str, Any]]:
    keys = ("server", "project", "change", "reason")
    return [{key: getattr(outcome, key) for key in keys} for outcome in outcomes]


def _select_changed(outcomes: Sequence[RewriteOutcome]) -> list[RewriteOutcome]:
    return [outcome for outcome in outcomes if outcome.change != "none"]
