"""How `overspill wrap` and `overspill unwrap` tell what happened to servers and files."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from overspill.cli import output
from overspill.cli.client_files.plans import FilePlan, write
from overspill.cli.client_files.target import HookFiles
from overspill.mcp.host_configs import display, entries, rewriting
from overspill.mcp.host_configs.rewriting import RewriteOutcome
from overspill.text.humanize import escape_line

_UNREMARKABLE = {rewriting.NOT_WRAPPED, entries.OWN_SERVER}


def name_server(outcome: RewriteOutcome) -> str:
    return f"{outcome.server} (project {outcome.project})" if outcome.project else outcome.server


def finish(plan: FilePlan, *, dry: bool, as_json: bool) -> None:
    """Write what is planned, unless it is `dry`, and say so."""
    copies = {} if dry else write(plan)
    if as_json:
        output.print_json(_list_facts(plan, copies))
        return
    for line in _render(plan) if dry else _describe(plan, copies):
        click.echo(escape_line(line))


def _list_facts(plan: FilePlan, copies: Mapping[Path, Path | None]) -> dict[str, Any]:
    at = plan.files

    def list_file(path: Path) -> dict[str, Any]:
        copy, real = copies.get(path), at.found[path].path if path in at.found else path
        return {"file": str(real), "written": path in copies, "copy": str(copy) if copy else None}

    keys = ("server", "project", "change", "reason")
    servers = [{key: getattr(outcome, key) for key in keys} for outcome in plan.servers.outcomes]
    hooks = {"hooks": list_file(at.hooks)} if isinstance(at, HookFiles) else {}
    return {**list_file(at.servers), "client": at.client and at.client.name, "servers": servers, **hooks}


def _render(plan: FilePlan) -> list[str]:
    """What would change. Of hooks, our own entries, and not the lines of the file that they are on, which may hold secrets."""
    at, lines = plan.files, list[str]()
    if isinstance(at, HookFiles):
        sign, texts = ("-", {path: at.text(path) for path in plan.texts}) if plan.is_undo else ("+", plan.texts)
        words = at.place.find_hook(texts[at.hooks], str(at.hooks), at.place.find_server(texts[at.servers], str(at.servers)))
        if at.hooks in plan.changed:
            lines += [f"{at.hooks}", f"{sign} hooks.{at.place.event}: {at.place.tools}: {shlex.join(words)}", ""]
        if at.servers in plan.changed:
            lines += [f"{at.servers}", f"{sign} mcpServers.overspill: {shlex.join([*words[:-2], 'serve', at.place.client])}", ""]
    for outcome in _select_changed(plan.servers.outcomes):
        lines += [name_server(outcome), *display.diff_entry(outcome), ""]
    return [*lines, *_describe_skipped(plan.servers.outcomes), "Nothing was written."]


def _describe(plan: FilePlan, copies: Mapping[Path, Path | None]) -> list[str]:
    at, hooked = plan.files, plan.files if isinstance(plan.files, HookFiles) else None
    skipped = _describe_skipped(plan.servers.outcomes)
    if not copies:
        nothing = f": the hook and the server of {at.title} are there" if hooked else f" in {at.servers}"
        return [*skipped, f"Nothing to change{nothing}."]
    lines: list[str] = []
    if hooked:
        verb = "no longer go" if plan.is_undo else "now go"
        lines.append(f"Outputs of these built-in tools {verb} through Overspill: {', '.join(hooked.place.tools.split('|'))}.")
    lines += [*_describe_changed(plan.servers.outcomes), *skipped]
    for path, copy in copies.items():
        lines += _describe_file(plan, path, copy)
    if hooked and not plan.is_undo:
        lines.append("Large outputs of these tools are from now on stored on your disk, secrets included, readable only by you.")
    lines.append(at.client.restart if at.client else "Restart the client that reads this file.")
    if plan.is_undo:
        return lines
    if not hooked and at.client and at.servers != at.client.file:
        lines.append("If you share this file, everyone needs Overspill at the same path, or wrap it with --command overspill.")
    return [*lines, f"To undo: {output.program()} unwrap {shlex.quote(at.given)}"]


def _describe_skipped(outcomes: Sequence[RewriteOutcome]) -> list[str]:
    skipped = [outcome for outcome in outcomes if outcome.change == "none" and outcome.reason not in _UNREMARKABLE]
    lines = [f"  {name_server(outcome)}: {outcome.reason}." for outcome in skipped]
    return ["Not changed:", *lines] if lines else []


def _describe_changed(outcomes: Sequence[RewriteOutcome]) -> list[str]:
    changed = _select_changed(outcomes)
    if not changed:
        return []
    now = "now run" if changed[0].change == "wrapped" else "no longer run"
    return [f"These servers {now} through Overspill:", *(f"  {name_server(outcome)}" for outcome in changed)]


def _describe_file(plan: FilePlan, path: Path, copy: Path | None) -> list[str]:
    """A file that was changed, and where its text from before is."""
    if not plan.texts[path]:
        return [f"Removed {path}, which Overspill had made."]
    if path not in plan.files.found:
        return [f"Made {path}."]
    file = plan.files.found[path]
    link = f" {file.given} is still a link to it." if file.is_symlink else ""
    original = f"The original is in {copy}, secrets included. Remove it when you no longer need it."
    return [f"Changed {file.path}.{link}", original if copy else "It is as it was before, so the copies of it are removed."]


def _select_changed(outcomes: Sequence[RewriteOutcome]) -> list[RewriteOutcome]:
    return [outcome for outcome in outcomes if outcome.change != "none"]
