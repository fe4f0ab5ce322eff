"""What `overspill proxy` does: sits between an MCP client and its servers until the client leaves or a signal ends it."""

from __future__ import annotations

import os
import secrets
import signal
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from typing import Any

import anyio

from overspill import handles
from overspill.cli.logs import show_log
from overspill.cli.models import endpoints
from overspill.cli.settings import lasting_store, load_settings
from overspill.cli.stderr import inform
from overspill.errors import SettingsError
from overspill.mcp.client import ServerConfig, parse_host, read_servers, server_configs
from overspill.mcp.proxy import PROXY_DEFAULTS, ListenOptions, ProxyOptions, ServedClients, open_clients, serve_http, serve_stdio
from overspill.settings import Layer, Settings
from overspill.store.open import open_store

_OWN_PREFIX = "OVERSPILL_"
_TOKEN_VARIABLE = "OVERSPILL_PROXY_TOKEN"  # noqa: S105
_OPTION_USES = {
    "chosen": (("file",), "--server chooses among the servers of --config FILE. To name a single server, use --name."),
    "headers": (("url", "url_env"), "--header-env works only with a URL. A command reads its own environment."),
    "name": (
        ("command", "url", "url_env"),
        "--name works only for a single server. The servers of --config FILE already have names.",
    ),
}
"""For each option, which ways to name a server it works with, and the error for the others."""


def serve(given: Mapping[str, Any]) -> None:
    """Run the proxy with the options of `overspill proxy`, by name."""
    store = Layer("proxy", {"storeDir": lasting_store()})
    # Forgiving: the working directory, and with it the settings file, is chance, and clients show only that a server failed.
    settings = load_settings(
        given["preset"], given["settings"], given["assignments"], usual=[PROXY_DEFAULTS, store], forgiving=True
    ).settings
    log = _make_log(given["quiet"])
    environ = {
        name: value for name, value in os.environ.items() if not name.startswith(_OWN_PREFIX) and name not in given["tokens"]
    }
    options = ProxyOptions(
        servers=_check_commands(_find_servers(given, os.environ), environ, log),
        environ=environ,
        tools_always=given["tools"] == "always",
        dry_run=given["dry_run"],
        list_outputs=given["list_outputs"],
    )
    served = endpoints(settings, os.environ)
    _check_store(settings)
    listen = _read_listen_options(given, os.environ) if given["address"] else None
    listener = listen.open_socket() if listen is not None else None
    if listen is not None and listener is not None:
        _announce(given, listen, listen.address(listener))

    async def run() -> None:
        async with open_clients(settings, options, served, log) as clients:
            await _serve_until_signal(partial(speak, clients))

    async def speak(clients: ServedClients, stop: anyio.Event) -> None:
        if listen is None or listener is None:
            await serve_stdio(clients, stop)
        else:
            await serve_http(clients, listen, listener, stop)

    with nullcontext() if given["quiet"] else show_log():
        anyio.run(run)


def _check_store(settings: Settings) -> None:
    """Fail now if the store does not work: you can fix it, while later only the client would see the error."""
    open_store(settings.store_dir, run_bytes=settings.max_run_bytes).open_shelf(handles.new()).close()


async def _serve_until_signal(serve: Callable[[anyio.Event], Awaitable[None]]) -> None:
    """End servers and close the store on the first signal. A second signal ends without waiting."""
    stop = anyio.Event()
    with anyio.open_signal_receiver(signal.SIGTERM, signal.SIGINT) as signals:
        async with anyio.create_task_group() as group:

            async def listen() -> None:
                async for _ in signals:
                    if stop.is_set():
                        group.cancel_scope.cancel()
                    stop.set()

            group.start_soon(listen)
            await serve(stop)
            group.cancel_scope.cancel()


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
    url = given["url"] or _read_variable(given["url_env"], environ)
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
            raise SettingsError(f"That file has no server {name!r}. It has {', '.join(servers) or 'none'}.")
    found = {name: server for name, server in servers.items() if not names or name in names}
    if not found:
        raise SettingsError("That file lists no servers.")
    return found


def _parse_header(assignment: str, environ: Mapping[str, str]) -> tuple[str, str]:
    name, equals, variable = assignment.partition("=")
    if not equals:
        raise SettingsError(f"--header-env {assignment} has no variable. Write --header-env {assignment}=VARIABLE.")
    return name, _read_variable(variable, environ)


def _read_variable(name: str, environ: Mapping[str, str]) -> str:
    if not environ.get(name):
        raise SettingsError(f"The environment variable {name} is not set.")
    return environ[name]


def _read_listen_options(given: Mapping[str, Any], environ: Mapping[str, str]) -> ListenOptions:
    address: str = given["address"]
    host, colon, port = address.rpartition(":")
    if not colon or not host or not port.isdecimal() or int(port) > 65535:
        raise SettingsError(f"--http {address} is not HOST:PORT, for example 127.0.0.1:8850.")
    tokens = tuple(_read_variable(name, environ) for name in given["tokens"]) or (
        environ.get(_TOKEN_VARIABLE) or secrets.token_urlsafe(32),
    )
    return ListenOptions(
        host.strip("[]"), int(port), tokens, given["hosts"], given["tls_cert"], given["tls_key"], plain=given["insecure"]
    )


def _announce(given: Mapping[str, Any], listen: ListenOptions, address: str) -> None:
    inform(f"serving at {address}")
    if not given["tokens"] and not os.environ.get(_TOKEN_VARIABLE):
        inform(f"the token, shown only once: {listen.tokens[0]}")


def _make_log(quiet: bool) -> Callable[[str], None]:
    return (lambda _: None) if quiet else inform
