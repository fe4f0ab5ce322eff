"""`overspill wrap` and `overspill unwrap`: run a client's servers through the proxy, or no longer."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

import click

from overspill.cli import output
from overspill.cli.client_files.launching import parse_launch
from overspill.cli.client_files.outcomes import finish, name_server
from overspill.cli.client_files.plans import FilePlan, plan_unwrap, plan_wrap
from overspill.cli.client_files.target import HookFiles, clients, complete_clients, find_hook_files, find_installed, find_target
from overspill.cli.stderr import warn
from overspill.errors import BadRequest, OverspillError
from overspill.mcp.host_configs import display, rewriting
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
    plan = plan_wrap(_find_hooks(file) if hooks else find_target(file), launch, servers)
    finish(plan, dry=dry, as_json=as_json)
    refused = any(outcome.change == "none" and outcome.reason != rewriting.ALREADY_WRAPPED for outcome in plan.servers.outcomes)
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
    hooked = None if servers else find_hook_files(file)
    plan = plan_unwrap(hooked if hooked and hooked.launch else find_target(file), servers)
    finish(plan, dry=dry, as_json=as_json)
    sys.exit(1 if any(outcome.reason == rewriting.NO_ORIGINAL for outcome in plan.servers.outcomes) else 0)


def _find_hooks(file: str) -> HookFiles:
    found = find_hook_files(file)
    if found is None:
        able = [name for name, client in clients().items() if client.hooks]
        raise BadRequest(f"Overspill knows no hooks of {file}. --hooks works with {' and '.join(able)}. Leave it out.")
    return found


def _wrap_all(launch: Sequence[str], *, dry: bool, ask: bool) -> None:
    plans: list[FilePlan] = []
    for target in find_installed():
        try:
            plans.append(plan_wrap(target, launch))
        except OverspillError as problem:
            warn(f"{problem} Skipping it.")
    changed = [plan for plan in plans if plan.changed]
    if not changed:
        raise BadRequest(f"There is nothing to wrap on this machine.{_list_clients()}")
    if ask:
        for plan in changed:
            names = ", ".join(name_server(outcome) for outcome in plan.servers.outcomes if outcome.change == "wrapped")
            click.echo(escape_line(f"{plan.files.given}: {names} ({plan.files.servers})"))
        _confirm()
    for plan in changed:
        finish(plan, dry=dry, as_json=False)


def _confirm() -> None:
    if not (sys.stdin and sys.stdin.isatty()):
        raise BadRequest("Nothing was written, because there is no terminal to ask you on. Use --all, or name a client.")
    click.confirm("Run these servers through Overspill?", abort=True, err=True)


def _list_clients() -> str:
    known = clients()
    installed = [name for name, client in known.items() if os.path.exists(client.file)]
    here = f" On this machine: {', '.join(installed)}." if installed else ""
    return f" Name a client ({', '.join(known)}) or a file.{here} For any other client, `--print` shows what to write."
