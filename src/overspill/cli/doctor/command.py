"""`overspill doctor`: what is right, what is not, and what to do about it."""

from __future__ import annotations

import contextlib
import io
import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
import click

from overspill.cli import output
from overspill.cli.config import command_line, lasting_store, settings_options, user_config_dir
from overspill.cli.doctor import Finding, config, models, store
from overspill.cli.models import endpoints
from overspill.cli.target import clients, target_of
from overspill.errors import MissingPackage, SettingsError
from overspill.mcp.host_configs import rewriting
from overspill.settings import Settings
from overspill.text.humanize import visible

if TYPE_CHECKING:
    from overspill.cli.doctor.servers import ServerReport


@click.command()
@click.argument("file", required=False)
@click.option("--server", "chosen", multiple=True, metavar="NAME", help="Only this server; repeat for more.")
@click.option("--timeout", type=click.FloatRange(0.1, 3600), default=30, show_default=True, help="Seconds a server may take.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@settings_options
def doctor(file: str | None, chosen: tuple[str, ...], timeout: float, as_json: bool, **options: Any) -> None:
    """Check settings, models, store and servers, and say what is wrong.

    Without FILE these are the servers in your own settings. FILE is claude-code, claude-desktop, cursor, vscode or the path of a
    file with mcpServers, as for overspill wrap. Servers are started, pinged and asked for their tools; none of these is called.
    To models nothing is sent.

    \b
    overspill doctor
    overspill doctor cursor
    overspill doctor .mcp.json --server github --json

    Exit code 1 if anything is wrong.
    """
    cli = command_line(options["preset"], options["assignments"])
    findings, settings = config.examine(cli, options["config"], Path.cwd(), user_config_dir())
    findings += [*_models(settings), *_stores(settings)]
    if chosen and file is None and not settings.mcp_servers:
        raise click.UsageError("--server needs FILE: whose servers?")
    looks: list[ServerReport] = []
    try:
        looks = _servers(file, settings, chosen, timeout) if file or settings.mcp_servers else []
    except MissingPackage as problem:
        findings.append(Finding("servers", "wrong", str(problem)))
    found = [*findings, *(each.finding for each in looks)]
    if as_json:
        output.print_json({"findings": found, "servers": [each.probe for each in looks if each.probe]})
    else:
        _print(findings, looks, [] if file else _unseen())
    sys.exit(1 if any(finding.level == "wrong" for finding in found) else 0)


def _stores(settings: Settings) -> list[Finding]:
    """Without a storeDir there are two: what a program stores lies elsewhere than what the proxy keeps."""
    urls = [settings.store_dir] if settings.store_dir else [None, lasting_store()]
    return [finding for url in urls for finding in store.examine(url, settings)]


def _models(settings: Settings) -> list[Finding]:
    try:
        served = endpoints(settings, os.environ)
    except SettingsError as problem:
        return [Finding("settings", "wrong", str(problem), "Set it where you start Overspill from, your client included.")]
    return models.examine(settings, served)


def _servers(file: str | None, settings: Settings, chosen: Sequence[str], timeout: float) -> list[ServerReport]:
    # Takes a second to import, which nobody needs who only asks about settings and store.
    try:
        from overspill.cli.doctor.servers import examine
    except ImportError as missing:
        raise MissingPackage("Looking at servers", "mcp") from missing
    if file is None:
        name, text, expands = "your settings", json.dumps({"mcpServers": settings.mcp_servers}), True
    else:
        target = target_of(file)
        name, text, expands = file, target.file.text, target.client is None or target.client.name != "claude-desktop"
    servers = rewriting.select_servers(rewriting.list_servers(text, name), name, chosen)

    async def run() -> list[ServerReport]:
        return await examine(
            servers, os.environ, name=name, folder=Path.cwd(), expands=expands, within=timeout, model=settings.model
        )

    # What servers say on standard error comes with their findings, where it matters.
    with contextlib.redirect_stderr(io.TextIOWrapper(io.BytesIO())):
        return anyio.run(run)


def _unseen() -> list[str]:
    """Clients whose servers could be looked at, too."""
    lines: list[str] = []
    for name, client in clients().items():
        if os.path.exists(client.file):
            lines.append(f"{client.title} has servers in {client.file}. Look at them: {output.program()} doctor {name}")
    return lines


def _print(findings: Sequence[Finding], looks: Sequence[ServerReport], unseen: Sequence[str]) -> None:
    lines = [line for finding in findings for line in _lines(finding)]
    for each in looks:
        lines += _lines(each.finding)
        tools = sorted(each.probe.tools, key=lambda tool: -tool.bytes) if each.probe else []
        lines += [f"{tool.bytes:>20,} bytes {tool.tokens:>7,} tokens  {tool.name}" for tool in tools]
    wrong = sum(finding.level == "wrong" for finding in (*findings, *(each.finding for each in looks)))
    verdict = "Nothing is wrong." if not wrong else f"{wrong} thing{' is' if wrong == 1 else 's are'} wrong."
    for line in [*lines, *unseen, verdict]:
        click.echo(visible(line))


def _lines(finding: Finding) -> list[str]:
    return [f"{finding.level:<5}  {finding.about}: {finding.text}", *([f"       {finding.advice}"] if finding.advice else [])]
