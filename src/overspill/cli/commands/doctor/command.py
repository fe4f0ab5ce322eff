"""`overspill doctor`: what works, what does not, and what to do about it."""

from __future__ import annotations

import contextlib
import io
import json
import os
import sys
from collections.abc import Sequence
from typing import Any

import click
from msgspec import to_builtins

from overspill.cli import output
from overspill.cli.client_files import clients, complete_clients, find_target
from overspill.cli.commands.doctor import checks
from overspill.cli.commands.doctor.checks import DoctorReport, Finding
from overspill.cli.settings import command_line, lasting_store, settings_options, user_config_dir
from overspill.cli.signals import run_until_done
from overspill.errors import MissingPackage
from overspill.mcp.host_configs import rewriting
from overspill.mcp.host_configs.documents import ConfigText
from overspill.settings import Settings
from overspill.settings.opening import store_place
from overspill.text.humanize import count_noun, escape_line


@click.command()
@click.argument("file", required=False, shell_complete=complete_clients)
@click.option("--server", "chosen", multiple=True, metavar="NAME", help="Only this server. Can be repeated.")
@click.option(
    "--timeout",
    type=click.FloatRange(0.1, 3600),
    default=30,
    metavar="SECONDS",
    show_default=True,
    help="How long to wait for a server.",
)
@output.json_options()
@settings_options
def doctor(file: str | None, chosen: tuple[str, ...], timeout: float, as_json: bool, as_lines: bool, **options: Any) -> None:
    """Check your settings, models, stores and servers.

    Without FILE, doctor checks the servers in your settings. FILE is a client or the path of its file, as for overspill wrap.
    Servers are started, pinged and asked for their tools, but no tool is called. Nothing is sent to models.

    \b
    overspill doctor
    overspill doctor cursor
    overspill doctor .mcp.json --server github --json

    --jsonl prints a line for each finding, with what a server offers. The exit code is 1 if anything is wrong.
    """
    cli = command_line(options["preset"], options["assignments"])
    findings, settings = checks.check_settings(cli, options["config"], user_config_dir())
    findings += checks.check_models(settings)
    # Without a setting there are two stores: programs use the temporary directory, the proxy uses a folder that lasts.
    urls = [place] if (place := store_place(settings)) else [None, lasting_store()]
    findings += [finding for url in urls for finding in checks.check_store(url, settings)]
    findings += checks.check_hub()
    findings += [*checks.check_hooks(file), *checks.check_programs(file, settings)] if file else []
    findings += checks.check_tool_search(settings)
    if chosen and file is None and not settings.mcp_servers:
        raise click.UsageError("--server needs FILE, because your settings have no servers.")
    reports = list(map(DoctorReport, findings))
    try:
        reports += _check_servers(file, settings, chosen, timeout) if file or settings.mcp_servers else []
    except MissingPackage as problem:
        reports.append(DoctorReport(Finding("servers", "wrong", str(problem))))
    if as_lines:
        output.print_records(({**to_builtins(each.finding), "server": each.probe} for each in reports), as_lines=True)
    elif as_json:
        probes = [each.probe for each in reports if each.probe]
        output.print_json({"findings": [each.finding for each in reports], "servers": probes})
    else:
        _print(reports, lists_clients=not file)
    sys.exit(1 if any(each.finding.level == "wrong" for each in reports) else 0)


def _check_servers(file: str | None, settings: Settings, chosen: Sequence[str], timeout: float) -> list[DoctorReport]:
    # Imported late, because it takes a second, and settings and stores are checked without it.
    try:
        from overspill.cli.commands.doctor.servers import ServerChecks
    except ImportError as missing:
        raise MissingPackage("Checking servers", "mcp") from missing
    if file is None:
        source, expands = ConfigText(json.dumps({"mcpServers": settings.mcp_servers}), "your settings"), True
    else:
        target = find_target(file)
        expands = target.client is None or target.client.name != "claude-desktop"
        source = ConfigText(target.text(target.servers), file, target.dialect)
    servers = rewriting.select_servers(rewriting.list_servers(source), source.name, chosen)

    checking = ServerChecks(source.name, os.environ, expands, timeout, settings.model, settings.login)
    # Hide what servers write to standard error: a finding quotes it where that matters.
    with contextlib.redirect_stderr(io.TextIOWrapper(io.BytesIO())):
        return run_until_done(lambda: checking.run(servers))


def _print(reports: Sequence[DoctorReport], *, lists_clients: bool) -> None:
    """Print the findings. With `lists_clients`, also list the clients whose servers you can check."""
    lines: list[str] = []
    for report in reports:
        found = report.finding
        lines += [f"{found.level:<5}  {found.about}: {found.text}", *([f"       {found.advice}"] if found.advice else [])]
        tools = sorted(report.probe.tools, key=lambda tool: -tool.bytes) if report.probe else []
        lines += [f"{tool.bytes:>20,} bytes {tool.tokens:>7,} tokens  {tool.name}" for tool in tools]
    wrong = sum(report.finding.level == "wrong" for report in reports)
    verdict = f"Found {count_noun(wrong, 'problem')}." if wrong else "No problems found."
    others = {name: client for name, client in clients().items() if os.path.exists(client.file)} if lists_clients else {}
    check = f"To check them: {output.program()} doctor"
    lines += [f"{client.title} has servers in {client.file}. {check} {name}" for name, client in others.items()]
    for line in [*lines, verdict]:
        click.echo(escape_line(line))
