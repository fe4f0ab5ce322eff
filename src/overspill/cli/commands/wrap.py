"""`overspill wrap` and `overspill unwrap`: run a client's servers through the proxy, or no longer."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from overspill.cli import client_files, output, terminal
from overspill.cli.client_files import FilePlan, HookFiles
from overspill.cli.launching import parse_launch
from overspill.cli.terminal import inform, warn
from overspill.errors import BadRequest, OverspillError
from overspill.hub.unit import make_unit
from overspill.mcp.host_configs import clients, entries, rewriting
from overspill.mcp.host_configs.hub_clients import HubAddress
from overspill.mcp.host_configs.rewriting import RewriteOutcome
from overspill.text import jsonc
from overspill.text.humanize import escape_line

_ONE_ENTRY = "runs them all, and holds their original entries"
_EXAMPLE_PORT = 8850
_UNREMARKABLE = {rewriting.NOT_WRAPPED, entries.OWN_SERVER}


@click.command()
@click.argument("file", required=False, shell_complete=client_files.complete_clients)
@click.option("--server", "servers", multiple=True, metavar="NAME", help="Only this server. Can be repeated.")
@click.option(
    "--command", metavar="WORDS", help="The command with which the client starts Overspill. [default: the path of this program]"
)
@click.option("--hooks", is_flag=True, help="Also put built-in tools through Overspill: claude-code and gemini-cli.")
@click.option("--each", is_flag=True, help="Offer the retrieval tools with each server, not once in an entry `overspill`.")
@click.option("--one", is_flag=True, help="Write one entry `servers` for all servers. Tool names then begin with the server's.")
@click.option(
    "--hub-http", is_flag=True, help="Like --one, but the entry is the address of the hub. Needs `overspill hub install`."
)
@click.option("--all", "every", is_flag=True, help="Every client on this machine, without asking.")
@click.option(
    "--print",
    "dry",
    is_flag=True,
    help="Show what would change, and write nothing. Without FILE and --all, show what to write for any other client.",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def wrap(
    file: str | None,
    servers: tuple[str, ...],
    command: str | None,
    hooks: bool,
    each: bool,
    one: bool,
    hub_http: bool,
    every: bool,
    dry: bool,
    as_json: bool,
) -> None:
    """Run a client's MCP servers through Overspill.

    FILE is the path of a config file, such as a project's .mcp.json, or the name of a client, for your own servers in it:
    claude-code, claude-desktop, cline, codex, cursor, gemini-cli, goose, opencode, vscode, windsurf or zed. Without FILE,
    overspill wrap finds the clients on this machine, shows what it would do, and asks. overspill alone also adds hooks.

    \b
    overspill wrap cursor --print
    overspill wrap claude-code --hooks
    overspill wrap claude-code --server github --server filesystem
    overspill wrap .vscode/mcp.json --command overspill

    A copy of the file is kept beside it, and overspill unwrap undoes everything. The exit code is 1 if a server that you named
    cannot be wrapped.
    """
    way = _choose_way([way for way, is_on in (("one", one), ("hub-http", hub_http), ("each", each)) if is_on], file, hooks=hooks)
    launch = parse_launch(command)
    if file is None and dry and not every:
        output.print_json(clients.example_entries(launch)) if as_json else click.echo(clients.instructions(launch))
        return
    if file is None:
        if servers or as_json:
            raise click.UsageError(f"--server and --json need a client or a file.{_list_clients()}")
        sys.exit(_wrap_installed(launch, way, hooks=hooks, dry=dry, ask=not every and not dry))
    if every:
        raise click.UsageError("Use --all or name a client, not both.")
    target = client_files.find_hook_files(file) if hooks else client_files.find_target(file)
    if target is None:
        able = [name for name, client in client_files.clients().items() if client.hooks]
        raise BadRequest(f"Overspill knows no hooks of {file}. --hooks works with {' and '.join(able)}. Leave it out.")
    plan = client_files.plan_wrap(target, launch, servers, way=way)
    _finish(plan, dry=dry, as_json=as_json)
    refused = any(outcome.change == "none" and outcome.reason != rewriting.ALREADY_WRAPPED for outcome in plan.servers.outcomes)
    sys.exit(1 if servers and refused else 0)


def _choose_way(chosen: Sequence[str], file: str | None, *, hooks: bool) -> client_files.WrapWay:
    """Return the way that the options choose. Raises UsageError if they do not go together."""
    way = chosen[0] if chosen else "grouped"
    if way in ("one", "hub-http") and file is None:
        raise click.UsageError(f"--{way} needs a client: overspill wrap claude-code --{way}.")
    if len(chosen) > 1 or (hooks and way in ("one", "hub-http")):
        raise click.UsageError(f"--{way} works without --{(*chosen, 'each')[1]}, and --hooks is a second command.")
    return _find_hub() if way == "hub-http" else "one" if way == "one" else "each" if chosen else "grouped"


def _find_hub() -> HubAddress:
    port = make_unit(os.environ, sys.platform, ["overspill"]).find_port()
    if port is None:
        raise BadRequest(
            "--hub-http needs a hub that is always there, on a fixed port. To install one: "
            f"{output.program()} hub install --port {_EXAMPLE_PORT}"
        )
    return HubAddress.make(port)


@click.command()
@click.argument("file", shell_complete=client_files.complete_clients)
@click.option("--server", "servers", multiple=True, metavar="NAME", help="Only this server. Can be repeated.")
@click.option("--print", "dry", is_flag=True, help="Show what would change, and write nothing.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def unwrap(file: str, servers: tuple[str, ...], dry: bool, as_json: bool) -> None:
    """Undo overspill wrap: run a client's MCP servers without Overspill.

    FILE is the same as for overspill wrap. Entries are restored, even if the file has changed since. What --hooks added is
    removed too, unless you name servers. The exit code is 1 if an entry runs through Overspill in a way that cannot be undone.
    """
    hooked = None if servers else client_files.find_hook_files(file)
    plan = client_files.plan_unwrap(hooked if hooked and hooked.launch else client_files.find_target(file), servers)
    _finish(plan, dry=dry, as_json=as_json)
    sys.exit(1 if any(outcome.reason == rewriting.NO_ORIGINAL for outcome in plan.servers.outcomes) else 0)


def _wrap_installed(launch: Sequence[str], way: client_files.WrapWay, *, hooks: bool, dry: bool, ask: bool) -> int:
    """Wrap all clients on this machine, and return the exit code. A client that fails does not stop the others."""
    plans: list[FilePlan] = []
    for target in client_files.find_installed(hooks=hooks):
        try:
            plans.append(client_files.plan_wrap(target, launch, way=way))
        except OverspillError as problem:
            warn(f"{problem} Skipping it.")
    if not plans:
        raise BadRequest(f"There is nothing to wrap on this machine.{_list_clients()} `overspill --help` lists all commands.")
    changed = [plan for plan in plans if plan.changed]
    if not changed:
        inform(f"Nothing to change in {', '.join(plan.files.title for plan in plans)}. To check a client: overspill doctor NAME")
    elif ask:
        for plan in changed:
            click.echo("\n  ".join(map(escape_line, [f"{plan.files.title}:", *_summarize(plan)])))
        if not terminal.can_ask():
            raise BadRequest("Nothing was written, because there is no terminal to ask you on. Use --all, or name a client.")
        if not terminal.confirm():
            inform("Nothing was written.")
            return 130
    code = 0
    for plan in changed:
        try:
            _finish(plan, dry=dry, as_json=False)
        except OverspillError as problem:
            code = terminal.report_failure(problem)
    return code


def _summarize(plan: FilePlan) -> list[str]:
    """Summarize what would change, without lines of the files, which may hold secrets."""
    at, lines = plan.files, list[str]()
    where = f", in {at.real(at.servers)}"
    wrapped, regrouped = (
        ", ".join(_name_server(outcome) for outcome in plan.changed_servers if outcome.change == change)
        for change in ("wrapped", "regrouped")
    )
    lines += [f"run {wrapped} through Overspill{where}"] if wrapped else []
    lines += [f"change whether {regrouped} offer the tools that read their outputs{where}"] if regrouped else []
    lines += [f"add the server overspill, which reads what they store{where}"] if plan.servers.group else []
    if isinstance(at, HookFiles):
        if not lines or not at.place.find_hook(at.text(at.hooks), str(at.hooks)):
            lines.append(f"add a hook that stores large outputs of {', '.join(at.place.tools)}, in {at.real(at.hooks)}")
        if not at.place.find_server(at.text(at.servers), str(at.servers)):
            lines.append(f"add the server that reads them back, in {at.real(at.servers)}")
    return lines


def _list_clients() -> str:
    known = client_files.clients()
    installed = [name for name, client in known.items() if os.path.exists(client.file)]
    here = f" On this machine: {', '.join(installed)}." if installed else ""
    return f" Name a client ({', '.join(known)}) or a file.{here} For another one, `overspill wrap --print` shows what to write."


def _name_server(outcome: RewriteOutcome) -> str:
    return f"{outcome.server} (project {outcome.project})" if outcome.project else outcome.server


def _finish(plan: FilePlan, *, dry: bool, as_json: bool) -> None:
    """Write what is planned, unless it is `dry`, and say so."""
    copies = {} if dry else client_files.write(plan)
    if as_json:
        output.print_json(_list_facts(plan, copies))
        return
    for line in _render(plan) if dry else _describe(plan, copies):
        click.echo(escape_line(line))


def _list_facts(plan: FilePlan, copies: Mapping[Path, Path | None]) -> dict[str, Any]:
    at = plan.files

    def list_file(path: Path) -> dict[str, Any]:
        copy, real = copies.get(path), at.real(path)
        return {"file": str(real), "written": path in copies, "copy": str(copy) if copy else None}

    keys = ("server", "project", "change", "reason")
    servers = [{key: getattr(outcome, key) for key in keys} for outcome in plan.servers.outcomes]
    hooks = {"hooks": list_file(at.hooks)} if isinstance(at, HookFiles) else {}
    return {**list_file(at.servers), "client": at.client and at.client.name, "servers": servers, **hooks}


def _render(plan: FilePlan) -> list[str]:
    """Describe what would change. Of hooks, shows only our own entries, because lines around them may hold secrets."""
    at, lines = plan.files, list[str]()
    if isinstance(at, HookFiles):
        sign, texts = ("-", {path: at.text(path) for path in plan.texts}) if plan.is_undo else ("+", plan.texts)
        words = at.place.find_hook(texts[at.hooks], str(at.hooks), at.place.find_server(texts[at.servers], str(at.servers)))
        if at.hooks in plan.changed:
            hooks = (f"{sign} hooks.{event}: {matched}: {shlex.join(words)}" for event, matched in at.place.events.items())
            lines += [f"{at.hooks}", *hooks, ""]
        if at.servers in plan.changed:
            lines += [f"{at.servers}", f"{sign} mcpServers.overspill: {shlex.join([*words[:-2], 'serve', at.place.client])}", ""]
    if plan.servers.group:
        lines += [f"{'+' if plan.servers.is_grouped else '-'} overspill: serve {plan.servers.group}", ""]
    if plan.servers.one:
        how = "the address of the hub, with a token" if plan.servers.tokens else f"proxy --config-env {entries.SERVERS_VARIABLE}"
        lines += [f"{'-' if plan.is_undo else '+'} {plan.servers.one}: {how}", ""]
    for outcome in plan.changed_servers:
        lines += [_name_server(outcome), *rewriting.diff_entry(outcome), ""]
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
        lines.append(f"Outputs of these built-in tools {verb} through Overspill: {', '.join(hooked.place.tools)}.")
    if changed := plan.changed_servers:
        way = "leave {} to the server overspill" if plan.servers.is_grouped else "offer {}"
        way = way.format("the tools that read their outputs")
        now = {"wrapped": "now run through Overspill", "unwrapped": "no longer run through Overspill"}
        now["regrouped"] = f"already ran through Overspill, and now {way}"
        for change, verb in now.items():
            names = [f"  {_name_server(outcome)}" for outcome in changed if outcome.change == change]
            lines += [f"These servers {verb}:", *names] if names else []
        if plan.servers.group:
            verb = "offers the tools that read what they store" if plan.servers.is_grouped else "is removed"
            lines.append(f"The server overspill {verb}.")
        if plan.servers.ungrouped:
            lines.append(f"Each of them offers the tools that read what it stores, because {plan.servers.ungrouped}.")
        if plan.servers.one:
            how = "is the address of the hub, which runs them all" if any(plan.servers.tokens.values()) else _ONE_ENTRY
            verb = "is removed" if plan.is_undo else how
            lines.append(f"The entry {plan.servers.one} {verb}.")
        if names := [outcome.server for outcome in changed if entries.may_need_login(jsonc.scan(outcome.before, "").value)]:
            lines.append(f"Each of these may need one login: {', '.join(names)}. To log in: {output.program()} login NAME")
    lines += skipped
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
    lines = [f"  {_name_server(outcome)}: {outcome.reason}." for outcome in skipped]
    return ["Not changed:", *lines] if lines else []


def _describe_file(plan: FilePlan, path: Path, copy: Path | None) -> list[str]:
    if not plan.texts[path]:
        return [f"Removed {path}, which Overspill had made."]
    if path not in plan.files.found:
        return [f"Made {path}."]
    file = plan.files.found[path]
    link = f" {file.given} is still a link to it." if file.is_symlink else ""
    original = f"The original is in {copy}, secrets included. Remove it when you no longer need it."
    return [f"Changed {file.path}.{link}", original if copy else "It is the same as before, so its copies are removed."]
