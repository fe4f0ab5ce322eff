"""`overspill wrap` and `overspill unwrap`: run a client's servers through the proxy, or no longer."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click

from overspill.cli import output
from overspill.cli.client_files import outcomes
from overspill.cli.client_files.launching import parse_launch
from overspill.cli.client_files.target import Target, clients, complete_clients, find_installed, find_target
from overspill.cli.commands.wrap_hooks import unwrap_hooks, wrap_hooks
from overspill.cli.stderr import warn
from overspill.errors import BadRequest, OverspillError
from overspill.mcp.host_configs import display, rewriting
from overspill.mcp.host_configs.rewriting import Rewriting
from overspill.text.humanize import escape_line


@click.command()
@click.argument("file", required=False, shell_complete=complete_clients)
@click.option("--server", "servers", multiple=True, metavar="NAME", help="Only this server. Can be repeated.")
@click.option(
    "--command", metavar="WORDS", help="The command with which the client starts Overspill. [default: the path of this program]"
)
@click.option("--hooks", is_flag=True, help="Also put built-in tools through Overspill: claude-code and gemini-cli.")
@click.option("--all", "every", is_flag=True, help="Every client on this machine, without asking.")
@click.option(
    "--print",
    "dry",
    is_flag=True,
    help="Show what would change, and write nothing. Without FILE and --all, show what to write for any other client.",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def wrap(
    file: str | None, servers: tuple[str, ...], command: str | None, hooks: bool, every: bool, dry: bool, as_json: bool
) -> None:
    """Run a client's MCP servers through Overspill.

    FILE is claude-code, claude-desktop, cline, codex, cursor, gemini-cli, goose, opencode, vscode, windsurf or zed for your own
    servers in that client, or the path of a file, such as a project's .mcp.json. Without FILE, overspill wrap finds the clients
    on this machine, shows what it would do, and asks.

    \b
    overspill wrap cursor --print
    overspill wrap claude-code --hooks
    overspill wrap claude-code --server github --server filesystem
    overspill wrap .vscode/mcp.json --command overspill

    A copy of the file is kept beside it, and overspill unwrap undoes everything. The exit code is 1 if a server that you named
    cannot be wrapped.
    """
    if hooks and file is None:
        raise click.UsageError("--hooks needs a client: overspill wrap claude-code --hooks.")
    launch = parse_launch(command)
    if file is None and dry and not every:
        output.print_json(display.example_entries(launch)) if as_json else click.echo(display.instructions(launch))
        return
    if file is None:
        if servers or as_json:
            raise click.UsageError(f"--server and --json need a client or a file.{_list_clients()}")
        _wrap_all(launch, dry=dry, ask=not every and not dry)
        return
    if every:
        raise click.UsageError("Use --all or name a client, not both.")
    if hooks:
        result = wrap_hooks(file, launch, servers, dry=dry, as_json=as_json).servers
    else:
        target = find_target(file)
        result = display.wrap(target.file.text, str(target.file.given), launch, servers, target.dialect)
        _finish(target, result, dry, as_json)
    refused = any(outcome.change == "none" and outcome.reason != rewriting.ALREADY_WRAPPED for outcome in result.outcomes)
    sys.exit(1 if servers and refused else 0)


@click.command()
@click.argument("file", shell_complete=complete_clients)
@click.option("--server", "servers", multiple=True, metavar="NAME", help="Only this server. Can be repeated.")
@click.option("--print", "dry", is_flag=True, help="Show what would change, and write nothing.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def unwrap(file: str, servers: tuple[str, ...], dry: bool, as_json: bool) -> None:
    """Undo overspill wrap: run a client's MCP servers without Overspill.

    FILE is the same as for overspill wrap. Entries become what they were, even if the file has changed since. What --hooks has
    added goes too, unless you name servers. The exit code is 1 if an entry runs through Overspill in a way that cannot be undone.
    """
    undone = None if servers else unwrap_hooks(file, dry=dry, as_json=as_json)
    if undone:
        result = undone.servers
    else:
        target = find_target(file)
        result = rewriting.unwrap(target.file.text, str(target.file.given), target.file.read_backups(), servers, target.dialect)
        _finish(target, result, dry, as_json)
    sys.exit(1 if any(outcome.reason == rewriting.NO_ORIGINAL for outcome in result.outcomes) else 0)


def _wrap_all(launch: Sequence[str], *, dry: bool, ask: bool) -> None:
    changed: list[tuple[Target, Rewriting]] = []
    for target in find_installed():
        try:
            result = display.wrap(target.file.text, str(target.file.given), launch, (), target.dialect)
        except OverspillError as problem:
            warn(f"{problem} Skipping it.")
            continue
        if result.text != target.file.text:
            changed.append((target, result))
    if not changed:
        raise BadRequest(f"There is nothing to wrap on this machine.{_list_clients()}")
    if ask:
        for target, result in changed:
            names = ", ".join(outcomes.name_server(outcome) for outcome in result.outcomes if outcome.change == "wrapped")
            click.echo(escape_line(f"{target.given}: {names} ({target.file.given})"))
        _confirm()
    for target, result in changed:
        _finish(target, result, dry, as_json=False)


def _confirm() -> None:
    if not (sys.stdin and sys.stdin.isatty()):
        raise BadRequest("Nothing was written, because there is no terminal to ask you on. Use --all, or name a client.")
    click.confirm("Run these servers through Overspill?", abort=True, err=True)


def _list_clients() -> str:
    known = clients()
    installed = [name for name, client in known.items() if os.path.exists(client.file)]
    here = f" On this machine: {', '.join(installed)}." if installed else ""
    return f" Name a client ({', '.join(known)}) or a file.{here} For any other client, `--print` shows what to write."


def _finish(target: Target, result: Rewriting, dry: bool, as_json: bool) -> None:
    is_written = result.text != target.file.text and not dry
    is_undo = any(outcome.change == "unwrapped" for outcome in result.outcomes)
    copy = None
    if is_written:
        write = target.file.restore if is_undo else target.file.replace
        copy = write(result.text, datetime.now(UTC))
    if as_json:
        output.print_json(_describe_outcomes(target, result, is_written, copy))
        return
    for line in outcomes.render_changes(result.outcomes) if dry else _describe_result(target, result, is_written, copy):
        click.echo(escape_line(line))


def _describe_outcomes(target: Target, result: Rewriting, is_written: bool, copy: Path | None) -> dict[str, Any]:
    return {
        "file": str(target.file.path),
        "client": target.client.name if target.client else None,
        "written": is_written,
        "copy": str(copy) if copy else None,
        "servers": outcomes.list_facts(result.outcomes),
    }


def _describe_result(target: Target, result: Rewriting, is_written: bool, copy: Path | None) -> list[str]:
    changed = outcomes.describe_changed(result.outcomes)
    if not changed or not is_written:
        return [*outcomes.describe_skipped(result.outcomes), f"Nothing to change in {target.file.given}."]
    lines = [
        *changed,
        *outcomes.describe_skipped(result.outcomes),
        *outcomes.describe_file(target.file, copy),
        target.client.restart if target.client else "Restart the client that reads this file.",
    ]
    if any(outcome.change == "unwrapped" for outcome in result.outcomes):
        return lines
    if target.client and target.file.given != target.client.file:
        lines.append("If you share this file, everyone needs Overspill at the same path, or wrap it with --command overspill.")
    return [*lines, f"To undo: {output.program()} unwrap {shlex.quote(target.given)}"]
