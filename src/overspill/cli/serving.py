"""`overspill proxy` and `overspill serve`: sit between an MCP client and its servers until the client leaves or a signal arrives.

Servers start while the code that talks to them is imported, so the top of this module does not import it.
"""

from __future__ import annotations

import gc
import os
import secrets
from collections.abc import Awaitable, Callable, Mapping
from contextlib import nullcontext
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
import anyio.to_thread
from msgspec import Struct
from msgspec.structs import replace

from overspill.cli import terminal
from overspill.cli.logs import find_observers, show_log
from overspill.cli.settings import endpoints, lists_folder, load_settings, read_variable
from overspill.cli.signals import serve_until_signal
from overspill.cli.surroundings import Surroundings, find_surroundings
from overspill.cli.terminal import inform, is_quiet, lacks_mcp
from overspill.errors import SettingsError
from overspill.hooks.shapes import family_of, find_project
from overspill.mcp.client.config import ServerConfig, find_servers, parse_host, read_servers, server_configs, start_early
from overspill.mcp.proxy.options import PROXY_DEFAULTS, SHARED_DEFAULTS, ProxyOptions
from overspill.settings import Settings
from overspill.store.conversations import conversation_of
from overspill.text import jsonc
from overspill.text.humanize import escape_line

if TYPE_CHECKING:
    from overspill.mcp.client.shared_servers import SharedServers
    from overspill.mcp.proxy.http import ListenOptions
    from overspill.mcp.proxy.served_clients import ServedClients
    from overspill.session.sharing import Sessions

_OWN_PREFIX = "OVERSPILL_"
_TOKEN_VARIABLE = "OVERSPILL_PROXY_TOKEN"  # noqa: S105
_OPTION_USES = {
    "chosen": (
        ("file", "config_env"),
        "--server chooses among the servers of --config FILE. To name a single server, use --name.",
    ),
    "headers": (("url", "url_env"), "--header-env works only with a URL. A command reads its own environment."),
    "name": (
        ("command", "url", "url_env"),
        "--name works only for a single server. The servers of --config FILE already have names.",
    ),
}
"""For each option, the ways to name a server that it works with, and the error for the others."""


class Prepared(Struct, frozen=True):
    """What `overspill proxy` or `overspill serve` serves, from its options and the place where it was started."""

    given: Mapping[str, Any]
    settings: Settings
    options: ProxyOptions
    environ: Mapping[str, str]
    log: Callable[[str], None]


def serve_proxy(given: Mapping[str, Any]) -> Prepared | None:
    """Run the proxy with the options of `overspill proxy`, by name. A hub runs it itself."""
    prepared = prepare_proxy(given, find_surroundings())
    return _run(prepared, quiet=prepared.log is not inform)


def serve_outputs(family: str) -> Prepared | None:
    """Serve the retrieval tools for what sessions of this family have stored, without any server."""
    settings = load_settings(None, None, (), [PROXY_DEFAULTS, SHARED_DEFAULTS], lasting="serve", forgiving=True).settings
    around = find_surroundings()  # has values to hide in what others, such as hooks, have stored
    options = ProxyOptions(
        servers={},
        environ=around.environ,
        shared_family=family,
        conversation=_find_conversation(around),
        lists_folder=lists_folder(),
    )
    return _run(Prepared({"address": None}, settings, options, around.environ, inform), quiet=False)


def _run(prepared: Prepared, *, quiet: bool) -> Prepared | None:
    if find_surroundings().is_served:
        return prepared
    if not prepared.given["address"]:
        terminal.require_output()
    with nullcontext() if quiet else show_log():
        serve_until_signal(partial(serve, prepared))
    return None


def prepare_proxy(given: Mapping[str, Any], around: Surroundings) -> Prepared:
    # Forgiving: the settings file depends on an accidental working directory, and clients show only that a server failed.
    chosen = (("toolSearch", given["tool_search"]), ("directTools", given["direct"]), ("holdoutPercent", given["holdout"]))
    assigned = [*given["assignments"], *(f"{key}={value}" for key, value in chosen if value is not None)]
    assigned += [f"truncation.overrides.{tool}.toolSearch=off" for tool in given["pinned"]]
    usual = [PROXY_DEFAULTS, *([SHARED_DEFAULTS] if given["address"] else [])]
    load = partial(load_settings, given["preset"], given["settings"], usual=usual, lasting="proxy", forgiving=True)
    settings = load(assigned).settings
    group: str | None = given["group"]
    family = family_of(group, find_project(group, around.environ, around.folder)) if group else ""
    if family and "on" in _redactions(
        settings, "shown"
    ):  # other processes of the family do not know the secrets of this environment
        settings = load([*assigned, "redact.stored=on"]).settings
    stores_no_secret = "on" in _redactions(settings, "stored")
    log: Callable[[str], None] = (lambda _: None) if given["quiet"] or is_quiet() else inform
    environ = {
        name: value for name, value in around.environ.items() if not name.startswith(_OWN_PREFIX) and name not in given["tokens"]
    }
    servers = {
        name: replace(
            server,
            login=settings.login,
            cwd=_place(server.cwd, around),
            idle_minutes=server.idle_minutes if given["idle_minutes"] is None else given["idle_minutes"],
            share=server.share or given["share"],
        )
        for name, server in _find_servers(given, around).items()
    }
    problems = [problem for server in servers.values() if (problem := server.find_problem(environ))]
    if len(problems) == len(servers):
        raise SettingsError(" ".join(problems))
    for problem in problems:  # commands that are missing may appear later
        log(problem)
    options = ProxyOptions(
        servers=servers,
        environ=environ,
        tools_always=given["tools"] == "always",
        dry_run=given["dry_run"],
        list_outputs=given["list_outputs"],
        # A server may list other tools for each user of an address. Lists are written as they are, with any secrets in them.
        lists_folder="" if given["address"] or stores_no_secret else lists_folder(),
        shared_family=family,
        conversation=_find_conversation(around) if family else "",
        offers_own_tools=not family,
        grace_seconds=given["grace"],
        separates_logins=bool(given["address"]),
        observers=find_observers(),
    )
    return Prepared(given, settings, options, around.environ, log)


def _find_conversation(around: Surroundings) -> str:
    return around.conversation if around.is_served else conversation_of(os.getpid())


def _redactions(settings: Settings, place: str) -> list[str | None]:
    """Return the values of `redact.PLACE`: the general one, and those of servers and tools."""
    rules = (*settings.servers.values(), *settings.truncation.overrides.values())
    return [getattr(settings.redact, place), *(getattr(rule, f"redact_{place}") for rule in rules)]


def _place(folder: str | None, around: Surroundings) -> str | None:
    """Return the folder that a server starts in. If a hub starts the server, the folder is relative to the front's folder."""
    return str(around.folder / (folder or "")) if around.is_served else folder


class SharedParts:
    """What the fronts of a hub share. It is made once the code for it has been imported, which takes a second."""

    def __init__(self) -> None:
        self._made: tuple[Sessions, SharedServers] | None = None

    def expects(self, config: ServerConfig) -> bool:
        """Whether a server that is up may serve the client that this one is configured for."""
        return self._made is not None and self._made[1].expects(config)

    def make(self) -> tuple[Sessions, SharedServers]:
        if self._made is None:
            from overspill.mcp.client.shared_servers import SharedServers
            from overspill.session.sharing import Sessions

            self._made = Sessions(), SharedServers()
        return self._made


async def serve(
    prepared: Prepared,
    stop: anyio.Event,
    serve_client: Callable[[ServedClients, anyio.Event], Awaitable[None]] | None = None,
    shared: SharedParts | None = None,
) -> None:
    """Serve until `stop` is set. `serve_client` serves the client of a front, with what is `shared` in the hub."""
    given, settings, log = prepared.given, prepared.settings, prepared.log
    options = prepared.options
    if not given["address"]:  # over HTTP, each client gets separate servers with its first request
        needed = {name: each for name, each in options.servers.items() if not (shared and shared.expects(each))}
        options = replace(options, servers={**options.servers, **await start_early(needed, options.environ)})
    gc.disable()  # as for commands
    try:
        await anyio.to_thread.run_sync(import_module, "overspill.mcp.proxy.http")  # meanwhile, a hub gives first answers
        from overspill.mcp.client.process import end_unused
        from overspill.mcp.client.shared_servers import SharedServers
        from overspill.mcp.host_configs.hub_clients import identify_token
        from overspill.mcp.proxy.guard import Principals
        from overspill.mcp.proxy.http import serve_http
        from overspill.mcp.proxy.served_clients import LOCAL, open_clients
        from overspill.mcp.proxy.stdio import serve_stdio
    except ImportError as missing:
        raise lacks_mcp("proxy") from missing
    finally:
        gc.enable()
    try:
        served = endpoints(settings, prepared.environ)
        listen = _read_listen_options(given) if given["address"] else None
        listener = listen.open_socket() if listen is not None else None
        if listen is not None and listener is not None:
            inform(f"serving at {listen.address(listener)}")
            if not given["tokens"] and not os.environ.get(_TOKEN_VARIABLE):
                inform(f"the token, shown only once: {listen.tokens[0]}")
        sessions, servers = shared.make() if shared is not None else (None, None)
        if listen is not None:
            servers = SharedServers()  # among the clients of one token
        principals = [identify_token(token.encode()) for token in listen.tokens] if listen is not None else [LOCAL]
        async with open_clients(settings, options, served, log, sessions, servers, principals=principals) as clients:
            if serve_client is not None:
                await serve_client(clients[LOCAL], stop)
            elif listen is None or listener is None:
                await serve_stdio(clients[LOCAL], stop)
            else:
                await serve_http(Principals(log, options.gone_after, clients), listen, listener, stop)
    finally:
        with anyio.CancelScope(shield=True):
            await end_unused(options.servers.values())


def _read_listen_options(given: Mapping[str, Any]) -> ListenOptions:
    from overspill.mcp.proxy.http import ListenOptions

    address: str = given["address"]
    host, colon, port = address.rpartition(":")
    if not colon or not host or not port.isdecimal() or int(port) > 65535:
        raise SettingsError(f"--http {address} is not HOST:PORT, for example 127.0.0.1:8850.")
    tokens = tuple(read_variable(name, os.environ) for name in given["tokens"]) or (
        os.environ.get(_TOKEN_VARIABLE) or secrets.token_urlsafe(32),
    )
    return ListenOptions(
        host.strip("[]"), int(port), tokens, given["hosts"], given["tls_cert"], given["tls_key"], plain=given["insecure"]
    )


def _find_servers(given: Mapping[str, Any], around: Surroundings) -> dict[str, ServerConfig]:
    ways = [way for way in ("command", "url", "url_env", "file", "config_env") if given[way]]
    if len(ways) != 1:
        raise SettingsError(
            "Give exactly one of `-- COMMAND ARGS…`, --url URL, --url-env VARIABLE, --config FILE or --config-env VARIABLE. "
            "For a settings file, use --settings."
        )
    for option, (fitting, use) in _OPTION_USES.items():
        if given[option] and ways[0] not in fitting:
            raise SettingsError(use)
    if given["file"] or given["config_env"]:
        if variable := given["config_env"]:
            content = jsonc.scan(read_variable(variable, around.environ), variable).value
            servers = find_servers(content, variable, around.environ)
        else:
            servers = read_servers(around.folder / given["file"], around.environ)
        chosen = given["chosen"]
        for name in chosen:
            if name not in servers:
                raise SettingsError(f"That file has no server {name!r}. It has {', '.join(map(escape_line, servers)) or 'none'}.")
        if not servers:
            raise SettingsError("That file lists no servers.")
        return {name: server for name, server in servers.items() if not chosen or name in chosen}
    if command := given["command"]:
        name = given["name"] or Path(command[0]).stem
        return {name: ServerConfig(name, command=command[0], args=tuple(command[1:]))}
    url = given["url"] or read_variable(given["url_env"], around.environ)
    if not (host := parse_host(url)):
        where = "--url" if given["url"] else f"The address in {given['url_env']}"
        raise SettingsError(f"{where} is not the address of a server. Use one like https://example.com/mcp.")
    headers: dict[str, str] = {}
    for assignment in given["headers"]:
        name, equals, variable = assignment.partition("=")
        if not equals:
            raise SettingsError(f"--header-env {assignment} has no variable. Write --header-env {assignment}=VARIABLE.")
        headers[name] = read_variable(variable, around.environ)
    return server_configs({given["name"] or host: {"url": url, "headers": headers}}, "on the command line")
