"""How `overspill proxy` begins: with its servers. They start while what speaks to them is imported."""

from __future__ import annotations

import gc
import os
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import anyio

from overspill.cli import ending
from overspill.cli.logs import find_observers, show_log
from overspill.cli.settings import load_settings, read_variable
from overspill.cli.signals import run_until_signal
from overspill.cli.stderr import inform, is_quiet, with_uvx
from overspill.cli.unread_stderr import unread_stderr_allowed
from overspill.errors import MissingPackage, SettingsError
from overspill.mcp.client.config import ServerConfig, parse_host, read_servers, server_configs
from overspill.mcp.client.launch import start_early
from overspill.mcp.proxy.options import PROXY_DEFAULTS, ProxyOptions
from overspill.text.humanize import escape_line

_OWN_PREFIX = "OVERSPILL_"
_OPTION_USES = {
    "chosen": (("file",), "--server chooses among the servers of --config FILE. To name a single server, use --name."),
    "headers": (("url", "url_env"), "--header-env works only with a URL. A command reads its own environment."),
    "name": (
        ("command", "url", "url_env"),
        "--name works only for a single server. The servers of --config FILE already have names.",
    ),
}
"""For each option, which ways to name a server it works with, and the error for the others."""


def start(given: Mapping[str, Any]) -> None:
    """Run the proxy with the options of `overspill proxy`, by name."""
    if not given["address"]:
        ending.require_output()
    # Forgiving: the working directory, and with it the settings file, is chance, and clients show only that a server failed.
    settings = load_settings(
        given["preset"], given["settings"], given["assignments"], [PROXY_DEFAULTS], lasting="proxy", forgiving=True
    ).settings
    quiet = given["quiet"] or is_quiet()
    log: Callable[[str], None] = (lambda _: None) if quiet else inform
    environ = {
        name: value for name, value in os.environ.items() if not name.startswith(_OWN_PREFIX) and name not in given["tokens"]
    }
    servers = _check_commands(_find_servers(given, os.environ), environ, log)

    async def run(stop: anyio.Event) -> None:
        # Over HTTP, each client has servers of its own, from its first request on.
        started = servers if given["address"] else await start_early(servers, environ)
        options = ProxyOptions(
            servers=started,
            environ=environ,
            tools_always=given["tools"] == "always",
            dry_run=given["dry_run"],
            list_outputs=given["list_outputs"],
            grace_seconds=given["grace"],
            observers=find_observers(),
        )
        await _load_serve()(given, settings, options, log, stop)

    with unread_stderr_allowed(), nullcontext() if quiet else show_log():
        anyio.run(run_until_signal, run)


def serve_outputs(family: str) -> None:
    """Serve the retrieval tools for what sessions of this family have stored, without any server."""
    ending.require_output()
    settings = load_settings(None, None, ("async=false",), [PROXY_DEFAULTS], lasting="serve", forgiving=True).settings
    options = ProxyOptions(servers={}, environ={}, shared_family=family)

    async def run(stop: anyio.Event) -> None:
        await _load_serve()({"address": None}, settings, options, inform, stop)

    with unread_stderr_allowed(), show_log():
        anyio.run(run_until_signal, run)


def _load_serve() -> Callable[..., Awaitable[None]]:
    gc.disable()  # as for commands
    try:
        from overspill.cli.serving import serve
    except ImportError as missing:
        raise MissingPackage("`overspill proxy`", "mcp", with_uvx("proxy")) from missing
    finally:
        gc.enable()
    return serve


def _find_servers(given: Mapping[str, Any], environ: Mapping[str, str]) -> dict[str, ServerConfig]:
    ways = [way for way in ("command", "url", "url_env", "file") if given[way]]
    if len(ways) != 1:
        raise SettingsError(
            "Give exactly one of `-- COMMAND ARGS…`, --url URL, --url-env VARIABLE or --config FILE. "
            "For a settings file, use --settings."
        )
    for option, (fitting, use) in _OPTION_USES.items():
        if given[option] and ways[0] not in fitting:
            raise SettingsError(use)
    if given["file"]:
        return _select(read_servers(given["file"], environ), given["chosen"])
    if command := given["command"]:
        name = given["name"] or Path(command[0]).stem
        return {name: ServerConfig(name, command=command[0], args=tuple(command[1:]))}
    url = given["url"] or read_variable(given["url_env"], environ)
    if not (host := parse_host(url)):
        where = "--url" if given["url"] else f"The address in {given['url_env']}"
        raise SettingsError(f"{where} is not the address of a server. Use one like https://example.com/mcp.")
    headers = dict(_parse_header(each, environ) for each in given["headers"])
    return server_configs({given["name"] or host: {"url": url, "headers": headers}}, "on the command line")


def _check_commands(
    servers: dict[str, ServerConfig], environ: Mapping[str, str], log: Callable[[str], None]
) -> dict[str, ServerConfig]:
    """Log commands that are missing; they may appear later. If all are missing, fail with the reasons."""
    problems = [problem for server in servers.values() if (problem := server.find_problem(environ))]
    if len(problems) == len(servers):
        raise SettingsError(" ".join(problems))
    for problem in problems:
        log(problem)
    return servers


def _select(servers: dict[str, ServerConfig], names: Sequence[str]) -> dict[str, ServerConfig]:
    for name in names:
        if name not in servers:
            raise SettingsError(f"That file has no server {name!r}. It has {', '.join(map(escape_line, servers)) or 'none'}.")
    found = {name: server for name, server in servers.items() if not names or name in names}
    if not found:
        raise SettingsError("That file lists no servers.")
    return found


def _parse_header(assignment: str, environ: Mapping[str, str]) -> tuple[str, str]:
    name, equals, variable = assignment.partition("=")
    if not equals:
        raise SettingsError(f"--header-env {assignment} has no variable. Write --header-env {assignment}=VARIABLE.")
    return name, read_variable(variable, environ)
