"""`overspill wrap` and `overspill unwrap`: a client's servers through the proxy, and back."""

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
from overspill.cli.target import Target, clients, target_of
from overspill.errors import BadRequest, MissingPackage
from overspill.mcp.host_configs import display, rewriting
from overspill.mcp.host_configs.rewriting import Outcome, Rewriting
from overspill.text.humanize import visible

_NEEDED = ("mcp", "mcp_types")  # looked for and not imported, which would take a second


@click.command()
@click.argument("file", required=False)
@click.option("--server", "servers", multiple=True, metavar="NAME", help="Only this server; repeat for more.")
@click.option("--command", metavar="WORDS", help="How the client is to start Overspill; without it, this program by its path.")
@click.option("--print", "dry", is_flag=True, help="Write nothing, show what would change. Without FILE: for any other client.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def wrap(file: str | None, servers: tuple[str, ...], command: str | None, dry: bool, as_json: bool) -> None:
    """Run a client's MCP servers through Overspill.

    FILE is claude-code, claude-desktop, cursor or vscode for your own servers of that client, or the path of a JSON file with
    mcpServers (in VS Code's files: servers), such as .mcp.json of a project.

    \b
    overspill wrap cursor --print
    overspill wrap claude-code --server github --server filesystem
    overspill wrap .vscode/mcp.json --command overspill

    A copy of the file is kept beside it; overspill unwrap undoes everything. Exit code 1 if a server that you named cannot be
    wrapped.
    """
    launch = _launch(command)
    if file is None:
        if not dry:
            raise click.UsageError(_whose())
        _print_pattern(launch, as_json)
        return
    target = target_of(file)
    made = rewriting.wrap(target.file.text, str(target.file.given), launch, servers)
    _finish(target, made, dry, as_json)
    refused = any(outcome.change == "none" and outcome.reason != rewriting.ALREADY_WRAPPED for outcome in made.outcomes)
    sys.exit(1 if servers and refused else 0)


@click.command()
@click.argument("file")
@click.option("--server", "servers", multiple=True, metavar="NAME", help="Only this server; repeat for more.")
@click.option("--print", "dry", is_flag=True, help="Write nothing, show what would change.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def unwrap(file: str, servers: tuple[str, ...], dry: bool, as_json: bool) -> None:
    """Run a client's MCP servers without Overspill again.

    FILE is as for overspill wrap. Entries become what they were, also if the file was changed in between. Exit code 1 if an
    entry runs through Overspill in a way that cannot be undone.
    """
    target = target_of(file)
    made = rewriting.unwrap(target.file.text, str(target.file.given), target.file.read_backups(), servers)
    _finish(target, made, dry, as_json)
    sys.exit(1 if any(outcome.reason == rewriting.NO_ORIGINAL for outcome in made.outcomes) else 0)


def _whose() -> str:
    known = clients()
    here = [name for name, client in known.items() if os.path.exists(client.file)]
    found = f" On this machine: {', '.join(here)}." if here else ""
    return f"Name a client ({', '.join(known)}) or a file; `--print` alone tells what to write for any other client.{found}"


def _launch(command: str | None) -> list[str]:
    if command is None:
        if not all(map(find_spec, _NEEDED)):
            raise MissingPackage("The proxy, through which the servers are to run,", "mcp")
        return [str(_program())]
    try:
        words = shlex.split(command)
    except ValueError as problem:
        raise BadRequest(f"--command {command}: {problem}.") from None
    if not words:
        raise BadRequest("--command is empty. Write the words that start Overspill, e.g. --command overspill.")
    return words


def _program() -> Path:
    """By its full path, since clients with windows do not have your shell's PATH. A link stays one: it outlives an update."""
    found = shutil.which("overspill")
    for place in (Path(sys.argv[0]), Path(sys.executable).with_name("overspill"), *([Path(found)] if found else [])):
        if place.name == "overspill" and os.path.isfile(place):
            return place.absolute()
    raise BadRequest("It is not clear how a client could start Overspill. Say it with --command.")


def _print_pattern(launch: Sequence[str], as_json: bool) -> None:
    if as_json:
        output.print_json(display.example_entries(launch))
    else:
        click.echo(display.instructions(launch))


def _finish(target: Target, made: Rewriting, dry: bool, as_json: bool) -> None:
    changed = made.text != target.file.text
    copy = target.file.replace(made.text, datetime.now(UTC)) if changed and not dry else None
    if as_json:
        output.print_json(_facts(target, made, copy))
        return
    for line in _render_changes(made) if dry else _describe_result(target, made, copy):
        click.echo(visible(line))


def _facts(target: Target, made: Rewriting, copy: Path | None) -> dict[str, Any]:
    keys = ("server", "project", "change", "reason")
    return {
        "file": str(target.file.path),
        "client": target.client.name if target.client else None,
        "written": copy is not None,
        "copy": str(copy) if copy else None,
        "servers": [{key: getattr(outcome, key) for key in keys} for outcome in made.outcomes],
    }


def _render_changes(made: Rewriting) -> list[str]:
    changes = [f"{_name(outcome)}\n{display.diff_entry(outcome)}\n" for outcome in made.outcomes if outcome.change != "none"]
    return [*changes, *_describe_skipped(made.outcomes), "Nothing is written."]


def _describe_result(target: Target, made: Rewriting, copy: Path | None) -> list[str]:
    done = [outcome for outcome in made.outcomes if outcome.change != "none"]
    if not done or not copy:
        return [*_describe_skipped(made.outcomes), f"{target.file.given} has nothing to change and is as it was."]
    wrapped = done[0].change == "wrapped"
    lines = [
        "Through Overspill run from now on:" if wrapped else "Without Overspill run from now on:",
        *(f"  {_name(outcome)}" for outcome in done),
        *_describe_skipped(made.outcomes),
        f"{target.file.path} is changed."
        + (f" {target.file.given} is a link to it and stays one." if target.file.is_symlink else ""),
        f"What it was is in {copy}, its secrets too: remove that copy when you do not need it any more.",
        target.client.restart if target.client else "Restart the client that reads this file.",
    ]
    if not wrapped:
        return lines
    if target.client and target.file.given != target.client.file:
        lines.append("Whoever shares this file needs Overspill in the same place, or write --command overspill.")
    return [*lines, f"To undo: {output.program()} unwrap {shlex.quote(target.spelled)}"]


def _describe_skipped(outcomes: Sequence[Outcome]) -> list[str]:
    told = [outcome for outcome in outcomes if outcome.change == "none" and outcome.reason != rewriting.NOT_WRAPPED]
    lines = [f"  {_name(outcome)}: {outcome.reason}." for outcome in told]
    return ["Left alone:", *lines] if lines else []


def _name(outcome: Outcome) -> str:
    return f"{outcome.server} (project {outcome.project})" if outcome.project else outcome.server
