"""What `overspill proxy` does: stands between an MCP client and its servers until either is told to end."""

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
from overspill.cli.config import lasting_store, load_settings
from overspill.cli.log_lines import show_log
from overspill.cli.messages import say
from overspill.cli.models import endpoints
from overspill.errors import SettingsError
from overspill.mcp.client import ServerConfig, host_of, read_servers, server_configs
from overspill.mcp.proxy import USUAL, ClientScopes, Listening, Options, open_scopes, serve_http, serve_stdio
from overspill.settings import Layer, Settings
from overspill.store.files.store import file_store

_OURS = "OVERSPILL_"
_TOKEN = "OVERSPILL_PROXY_TOKEN"  # noqa: S105
_USES = {
    "chosen": (("file",), "--server chooses among the servers of --config FILE. What the one server is called: --name."),
    "headers": (("url", "url_env"), "--header-env is for a server with a URL. A command has its own environment."),
    "name": (("command", "url", "url_env"), "--name is for one server. Those of --config FILE have their names there."),
}
"""With which ways to name a server an option goes, and what to say elsewhere."""


def serve(given: Mapping[str, Any]) -> None:
    """`given` are the options of `overspill proxy`, by name."""
    store = Layer("proxy", {"storeDir": lasting_store()})
    # Forgiving: a client shows its user only that a server failed, and whose file the working directory has is chance.
    settings = load_settings(
        given["preset"], given["settings"], given["assignments"], usual=[USUAL, store], forgiving=True
    ).settings
    log = _log(given["quiet"])
    environ = {name: value for name, value in os.environ.items() if not name.startswith(_OURS) and name not in given["tokens"]}
    options = Options(
        servers=_startable(_servers(given, os.environ), environ, log),
        environ=environ,
        tools_always=given["tools"] == "always",
        dry_run=given["dry_run"],
        list_outputs=given["list_outputs"],
    )
    served = endpoints(settings, os.environ)
    _check_store(settings)
    listening = _listening(given, os.environ) if given["address"] else None
    listener = listening.open() if listening is not None else None
    if listening is not None and listener is not None:
        _announce(given, listening, listening.address(listener))

    async def run() -> None:
        async with open_scopes(settings, options, served, log) as scopes:
            await _serve_until_signal(partial(speak, scopes))

    async def speak(scopes: ClientScopes, told: anyio.Event) -> None:
        if listening is None or listener is None:
            await serve_stdio(scopes, told)
        else:
            await serve_http(scopes, listening, listener, told)

    with nullcontext() if given["quiet"] else show_log():
        anyio.run(run)


def _check_store(settings: Settings) -> None:
    """Whoever starts the proxy can mend a store that does not work. Later only its client would hear of it."""
    file_store(settings.store_dir, settings.max_run_bytes).open_shelf(handles.new()).close()


async def _serve_until_signal(serve: Callable[[anyio.Event], Awaitable[None]]) -> None:
    """A signal ends our servers too, and what is kept is closed in order. A second one waits for nobody."""
    told = anyio.Event()
    with anyio.open_signal_receiver(signal.SIGTERM, signal.SIGINT) as signals:
        async with anyio.create_task_group() as group:

            async def listen() -> None:
                async for _ in signals:
                    if told.is_set():
                        group.cancel_scope.cancel()
                    told.set()

            group.start_soon(listen)
            await serve(told)
            group.cancel_scope.cancel()


def _servers(given: Mapping[str, Any], environ: Mapping[str, str]) -> dict[str, ServerConfig]:
    ways = [way for way in ("command", "url", "url_env", "file") if given[way]]
    if len(ways) != 1:
        raise SettingsError(
            "Name the server in one way: `-- COMMAND ARGS…`, --url URL, --url-env VARIABLE, or --config FILE. "
            "For settings use --settings."
        )
    for option, (fitting, use) in _USES.items():
        if given[option] and ways[0] not in fitting:
            raise SettingsError(use)
    if given["file"]:
        return _chosen(read_servers(given["file"], environ), given["chosen"])
    if command := given["command"]:
        name = given["name"] or Path(command[0]).stem
        return {name: ServerConfig(name, command=command[0], args=tuple(command[1:]))}
    url = given["url"] or _variable(given["url_env"], environ)
    if not (host := host_of(url)):
        where = "--url" if given["url"] else f"The address in {given['url_env']}"
        raise SettingsError(f"{where} is no address of a server. It looks like https://example.com/mcp.")
    headers = dict(_header(each, environ) for each in given["headers"])
    return server_configs({given["name"] or host: {"url": url, "headers": headers}}, "on the command line")


def _startable(
    servers: dict[str, ServerConfig], environ: Mapping[str, str], log: Callable[[str], None]
) -> dict[str, ServerConfig]:
    """All of them, for a command may be there later; only where none is there yet nobody would learn why."""
    problems = [problem for server in servers.values() if (problem := server.problem(environ))]
    if len(problems) == len(servers):
        raise SettingsError(" ".join(problems))
    for problem in problems:
        log(problem)
    return servers


def _chosen(servers: dict[str, ServerConfig], names: Sequence[str]) -> dict[str, ServerConfig]:
    for name in names:
        if name not in servers:
            raise SettingsError(f"There is no server {name!r} in that file. It has {', '.join(servers) or 'none'}.")
    found = {name: server for name, server in servers.items() if not names or name in names}
    if not found:
        raise SettingsError("That file lists no server to stand for.")
    return found


def _header(assignment: str, environ: Mapping[str, str]) -> tuple[str, str]:
    name, equals, variable = assignment.partition("=")
    if not equals:
        raise SettingsError(f"--header-env {assignment} names no variable. Write --header-env {assignment}=VARIABLE.")
    return name, _variable(variable, environ)


def _variable(name: str, environ: Mapping[str, str]) -> str:
    if not environ.get(name):
        raise SettingsError(f"The environment variable {name} is not set.")
    return environ[name]


def _listening(given: Mapping[str, Any], environ: Mapping[str, str]) -> Listening:
    address: str = given["address"]
    host, colon, port = address.rpartition(":")
    if not colon or not host or not port.isdecimal() or int(port) > 65535:
        raise SettingsError(f"--http {address} is not HOST:PORT, for example 127.0.0.1:8850.")
    tokens = tuple(_variable(name, environ) for name in given["tokens"]) or (environ.get(_TOKEN) or secrets.token_urlsafe(32),)
    return Listening(
        host.strip("[]"), int(port), tokens, given["hosts"], given["tls_cert"], given["tls_key"], plain=given["insecure"]
    )


def _announce(given: Mapping[str, Any], listening: Listening, address: str) -> None:
    say(f"serving at {address}")
    if not given["tokens"] and not os.environ.get(_TOKEN):
        say(f"the token, shown this once: {listening.tokens[0]}")


def _log(quiet: bool) -> Callable[[str], None]:
    return (lambda _: None) if quiet else say
