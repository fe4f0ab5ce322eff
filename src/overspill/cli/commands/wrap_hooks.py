"""`overspill wrap --hooks`, and undoing it: a client's built-in tools go through Overspill too."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path

import click

from overspill.cli import output
from overspill.cli.client_files.hook_files import HookPlan, find_hook_files, plan_unwrap, plan_wrap, write
from overspill.cli.client_files.outcomes import describe_changed, describe_file, describe_skipped, list_facts, render_changes
from overspill.cli.client_files.target import clients
from overspill.errors import BadRequest
from overspill.text.humanize import escape_line


def wrap_hooks(file: str, launch: Sequence[str], only: Sequence[str], *, dry: bool, as_json: bool) -> HookPlan:
    found = find_hook_files(file)
    if found is None:
        able = [name for name, client in clients().items() if client.hooks]
        raise BadRequest(f"Overspill knows no hooks of {file}. --hooks works with {' and '.join(able)}. Leave it out.")
    plan = plan_wrap(found, launch, only)
    _finish(plan, is_undo=False, dry=dry, as_json=as_json)
    return plan


def unwrap_hooks(file: str, *, dry: bool, as_json: bool) -> HookPlan | None:
    """None if there is no hook and no server of ours, so that there is nothing to undo here."""
    found = find_hook_files(file)
    if found is None or not found.launch:
        return None
    plan = plan_unwrap(found)
    _finish(plan, is_undo=True, dry=dry, as_json=as_json)
    return plan


def _finish(plan: HookPlan, *, is_undo: bool, dry: bool, as_json: bool) -> None:
    copies = {} if dry else write(plan, is_undo=is_undo)
    if as_json:
        output.print_json(_describe_facts(plan, copies))
        return
    lines = _render(plan, is_undo=is_undo) if dry else _describe(plan, copies, is_undo=is_undo)
    for line in lines:
        click.echo(escape_line(line))


def _describe_facts(plan: HookPlan, copies: Mapping[Path, Path | None]) -> dict[str, object]:
    def describe_file(path: Path) -> dict[str, object]:
        copy = copies.get(path)
        return {"file": str(path), "written": path in copies, "copy": str(copy) if copy else None}

    at = plan.files
    servers = list_facts(plan.servers.outcomes)
    return {**describe_file(at.servers), "client": at.client.name, "servers": servers, "hooks": describe_file(at.hooks)}


def _render(plan: HookPlan, *, is_undo: bool) -> list[str]:
    """Our own entries, and not the lines of the file that they are on, which may hold secrets."""
    at, sign = plan.files, "-" if is_undo else "+"
    hook, server = ((at.text(path) if is_undo else plan.texts[path]) for path in (at.hooks, at.servers))
    words = at.place.find_hook(hook, str(at.hooks), at.place.find_server(server, str(at.servers)))
    lines: list[str] = []
    if at.hooks in plan.changed:
        lines += [f"{at.hooks}", f"{sign} hooks.{at.place.event}: {at.place.tools}: {shlex.join(words)}", ""]
    if at.servers in plan.changed:
        lines += [f"{at.servers}", f"{sign} mcpServers.overspill: {shlex.join([*words[:-2], 'serve', at.client.name])}", ""]
    return [*lines, *render_changes(plan.servers.outcomes)]


def _describe(plan: HookPlan, copies: Mapping[Path, Path | None], *, is_undo: bool) -> list[str]:
    at, outcomes = plan.files, plan.servers.outcomes
    if not copies:
        return [*describe_skipped(outcomes), f"Nothing to change: the hook and the server of {at.client.title} are there."]
    tools = ", ".join(at.place.tools.split("|"))
    verb = "no longer go" if is_undo else "now go"
    lines = [f"Outputs of these built-in tools {verb} through Overspill: {tools}.", *describe_changed(outcomes)]
    lines += describe_skipped(outcomes)
    for path, copy in copies.items():
        lines += _describe_file(plan, path, copy)
    if is_undo:
        return [*lines, at.client.restart]
    return [
        *lines,
        "Large outputs of these tools are from now on stored on your disk, secrets included, readable only by you.",
        at.client.restart,
        f"To undo: {output.program()} unwrap {shlex.quote(at.given)}",
    ]


def _describe_file(plan: HookPlan, path: Path, copy: Path | None) -> list[str]:
    if not plan.texts[path]:
        return [f"Removed {path}, which Overspill had made."]
    if path not in plan.files.found:
        return [f"Made {path}."]
    return describe_file(plan.files.found[path], copy)
