"""`overspill wrap` and `overspill unwrap`: run a client's servers through the proxy, or no longer."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import click

from overspill.cli import output
from overspill.cli.target import Target, clients, find_target
from overspill.errors import BadRequest, MissingPackage
from overspill.mcp.host_configs import display, rewriting
from overspill.mcp.host_configs.rewriting import Outcome, Rewriting
from overspill.text.humanize import escape_invisible

_REQUIRED = ("mcp", "mcp_types")  # looked up but not imported, which would take a second


@click.command()
@click.argument("file", required=False)
@click.option("--server", "servers", multiple=True, metavar="NAME", help="Only this server. Can be repeated.")
@click.option(
    "--command", metavar="WORDS", help="The command with which the client starts Overspill. [default: the path of this program]"
)
@click.option(
    "--print",
    "dry",
    is_flag=True,
    help="Show what would change, and write nothing. Without FILE, show what to write for any other client.",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def wrap(file: str | None, servers: tuple[str, ...], command: str | None, dry: bool, as_json: bool) -> None:
    """Run a client's MCP servers through Overspill.

    FILE is claude-code, claude-desktop, cursor or vscode for your own servers in that client, or the path of a JSON file with
    mcpServers (servers in VS Code's files), such as a project's .mcp.json.

    \b
    overspill wrap cursor --print
    overspill wrap claude-code --server github --server filesystem
    overspill wrap .vscode/mcp.json --command overspill

    A copy of the file is kept beside it, and overspill unwrap undoes everything. The exit code is 1 if a server that you named
    cannot be wrapped.
    """
    launch = _parse_launch(command)
    if file is None:
        if not dry:
            raise click.UsageError(_ask_for_client())
        _print_pattern(launch, as_json)
        return
    target = find_target(file)
    result = rewriting.wrap(target.file.text, str(target.file.given), launch, servers)
    _finish(target, result, dry, as_json)
    refused = any(outcome.change == "none" and outcome.reason != rewriting.ALREADY_WRAPPED for outcome in result.outcomes)
    sys.exit(1 if servers and refused else 0)


@click.command()
@click.argument("file")
@click.option("--server", "servers", multiple=True, metavar="NAME", help="Only this server. Can be repeated.")
@click.option("--print", "dry", is_flag=True, help="Show what would change, and write nothing.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def unwrap(file: str, servers: tuple[str, ...], dry: bool, as_json: bool) -> None:
    """Undo overspill wrap: run a client's MCP servers without Overspill.

    FILE is the same as for overspill wrap. Entries become what they were, even if the file has changed since. The exit code is 1
    if an entry runs through Overspill in a way that cannot be undone.
    """
    target = find_target(file)
    result = rewriting.unwrap(target.file.text, str(target.file.given), target.file.read_backups(), servers)
    _finish(target, result, dry, as_json)
    sys.exit(1 if any(outcome.reason == rewriting.NO_ORIGINAL for outcome in result.outcomes) else 0)


def _ask_for_client() -> str:
    known = clients()
    installed = [name for name, client in known.items() if os.path.exists(client.file)]
    hint = f" On this machine: {', '.join(installed)}." if installed else ""
    return f"Name a client ({', '.join(known)}) or a file. For any other client, `--print` shows what to write.{hint}"


def _parse_launch(command: str | None) -> list[str]:
    if command is None:
        if not all(map(find_spec, _REQUIRED)):
            raise MissingPackage("The proxy", "mcp")
        return [str(_find_program())]
    try:
        words = shlex.split(command)
    except ValueError as problem:
        raise BadRequest(f"--command {command}: {problem}.") from None
    if not words:
        raise BadRequest("--command is empty. Write the command that starts Overspill, e.g. --command overspill.")
    return words


def _find_program() -> Path:
    """The full path, because desktop clients do not have your shell's PATH. Links are not followed: they survive updates."""
    on_path = shutil.which("overspill")
    for path in (Path(sys.argv[0]), Path(sys.executable).with_name("overspill"), *([Path(on_path)] if on_path else [])):
        if path.name == "overspill" and os.path.isfile(path):
            return path.absolute()
    raise BadRequest("Cannot tell how a client should start Overspill. Give the command with --command.")


def _print_pattern(launch: Sequence[str], as_json: bool) -> None:
    if as_json:
        output.print_json(display.example_entries(launch))
    else:
        click.echo(display.instructions(launch))


def _finish(target: Target, result: Rewriting, dry: bool, as_json: bool) -> None:
    is_changed = result.text != target.file.text
    copy = target.file.replace(result.text, datetime.now(UTC)) if is_changed and not dry else None
    if as_json:
        output.print_json(_describe_outcomes(target, result, copy))
        return
    for line in _render_changes(result) if dry else _describe_result(target, result, copy):
        click.echo(escape_invisible(line))


def _describe_outcomes(target: Target, result: Rewriting, copy: Path | None) -> dict[str, Any]:
    keys = ("server", "project", "change", "reason")
    return {
        "file": str(target.file.path),
        "client": target.client.name if target.client else None,
        "written": copy is not None,
        "copy": str(copy) if copy else None,
        "servers": [{key: getattr(outcome, key) for key in keys} for outcome in result.outcomes],
    }


def _render_changes(result: Rewriting) -> list[str]:
    changes = [
        f"{_name_server(outcome)}\n{display.diff_entry(outcome)}\n" for outcome in result.outcomes if outcome.change != "none"
    ]
    return [*changes, *_describe_skipped(result.outcomes), "Nothing was written."]


def _describe_result(target: Target, result: Rewriting, copy: Path | None) -> list[str]:
    changed = [outcome for outcome in result.outcomes if outcome.change != "none"]
    if not changed or not copy:
        return [*_describe_skipped(result.outcomes), f"Nothing to change in {target.file.given}."]
    wrapped = changed[0].change == "wrapped"
    lines = [
        "These servers now run through Overspill:" if wrapped else "These servers no longer run through Overspill:",
        *(f"  {_name_server(outcome)}" for outcome in changed),
        *_describe_skipped(result.outcomes),
        f"Changed {target.file.path}." + (f" {target.file.given} is still a link to it." if target.file.is_symlink else ""),
        f"The original is in {copy}, secrets included. Remove it when you no longer need it.",
        target.client.restart if target.client else "Restart the client that reads this file.",
    ]
    if not wrapped:
        return lines
    if target.client and target.file.given != target.client.file:
        lines.append("If you share this file, everyone needs Overspill at the same path, or wrap it with --command overspill.")
    return [*lines, f"To undo: {output.program()} unwrap {shlex.quote(target.given)}"]


def _describe_skipped(outcomes: Sequence[Outcome]) -> list[str]:
    skipped = [outcome for outcome in outcomes if outcome.change == "none" and outcome.reason != rewriting.NOT_WRAPPED]
    lines = [f"  {_name_server(outcome)}: {outcome.reason}." for outcome in skipped]
    return ["Not changed:", *lines] if lines else []


def _name_server(outcome: Outcome) -> str:
    return f"{outcome.server} (project {outcome.project})" if outcome.project else outcome.server
