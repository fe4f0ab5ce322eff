"""`overspill proxy`: stands between an MCP client and its servers."""

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
import click

from overspill.cli.config import lasting_store, load_settings
from overspill.cli.logged import logged
from overspill.cli.models import endpoints
from overspill.errors import SettingsError
from overspill.mcp_client import ServerConfig, read_servers
from overspill.proxy import USUAL, Listening, Options, Scopes, open_scopes, serve_http, serve_stdio
from overspill.settings import PRESETS, Layer

_TOKEN = "OVERSPILL_PROXY_TOKEN"  # noqa: S105
_OURS = "OVERSPILL_"


@click.command(context_settings={"allow_interspersed_args": False})
@click.argument("command", nargs=-1, type=click.UNPROCESSED)
@click.option("--url", help="A server that speaks streamable HTTP.")
@click.option("--url-env", metavar="VARIABLE", help="The same from a variable, for an address with a secret in it.")
@click.option("--header-env", "headers", multiple=True, metavar="NAME=VARIABLE", help="A header for it, from a variable.")
@click.option("--config", "file", type=click.Path(path_type=Path), metavar="FILE", help="The servers of an mcpServers file.")
@click.option("--server", "chosen", multiple=True, metavar="NAME", help="Only this one of them; may be repeated.")
@click.option("--name", help="What the one server is called in settings and messages.")
@click.option("--http", "address", metavar="HOST:PORT", help="Serve streamable HTTP instead of standard input and output.")
@click.option("--token-env", "tokens", multiple=True, metavar="VARIABLE", help=f"A token to let in; else {_TOKEN}, or a new one.")
@click.option("--allow-host", "hosts", multiple=True, metavar="NAME", help="A name by which clients may call the address.")
@click.option("--tls-cert", type=click.Path(exists=True, dir_okay=False), metavar="FILE", help="Certificate for --http.")
@click.option("--tls-key", type=click.Path(exists=True, dir_okay=False), metavar="FILE", help="Its key.")
@click.option("--insecure", is_flag=True, help="Let --http be reached from other machines without TLS.")
@click.option(
    "--tools",
    type=click.Choice(["when-needed", "always"]),
    default="when-needed",
    show_default=True,
    help="List the retrieval tools from the first kept output on, or always.",
)
@click.option("--list-outputs", is_flag=True, help="List kept outputs among the resources.")
@click.option("--dry-run", is_flag=True, help="Pass everything on and report what would have been kept.")
@click.option("--quiet", is_flag=True, help="Report nothing on standard error.")
@click.option("--set", "assignments", multiple=True, metavar="KEY=VALUE", help="Set one key, e.g. toolResponseMaxBytes=20000.")
@click.option("--settings", type=click.Path(path_type=Path), metavar="FILE", help="Read settings from this file only.")
@click.option("--preset", type=click.Choice(list(PRESETS)), help="The values to start from.")
def proxy(
    command: tuple[str, ...],
    address: str | None,
    tools: str,
    list_outputs: bool,
    dry_run: bool,
    quiet: bool,
    assignments: tuple[str, ...],
    settings: Path | None,
    preset: str | None,
    **given: Any,
) -> None:
    """Stand between an MCP client and its servers: large results are kept whole, slow calls go on in the background.

    \b
    overspill proxy -- npx -y @modelcontextprotocol/server-filesystem /data
    overspill proxy --url https://example.com/mcp --header-env Authorization=MY_TOKEN
    overspill proxy --config mcp.json --http 127.0.0.1:8850

    `overspill wrap` puts this into a client's configuration for you.
    """
    store = Layer("proxy", {"storeDir": lasting_store()})
    loaded = load_settings(preset, settings, assignments, usual=[USUAL, store]).settings
    options = Options(
        servers=_servers(command, given, os.environ),
        environ={name: value for name, value in os.environ.items() if not name.startswith(_OURS)},
        tools_always=tools == "always",
        dry_run=dry_run,
        list_outputs=list_outputs,
    )
    listening = _listening(address, given, os.environ) if address else None
    listener = listening.open() if listening is not None else None
    if listening is not None and listener is not None:
        _announce(given, listening, listening.address(listener))

    async def run() -> None:
        async with open_scopes(loaded, options, endpoints(loaded, os.environ), _log(quiet)) as scopes:
            await _until_told(partial(serve, scopes))

    async def serve(scopes: Scopes, told: anyio.Event) -> None:
        if listening is None or listener is None:
            await serve_stdio(scopes, told)
        else:
            await serve_http(scopes, listening, listener, told)

    with nullcontext() if quiet else logged():
        anyio.run(run)


async def _until_told(serve: Callable[[anyio.Event], Awaitable[None]]) -> None:
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


def _servers(command: Sequence[str], given: Mapping[str, Any], environ: Mapping[str, str]) -> dict[str, ServerConfig]:
    ways = [bool(command), bool(given["url"] or given["url_env"]), bool(given["file"])]
    if sum(ways) != 1:
        raise SettingsError("Name the server in one way: `-- COMMAND ARGS…`, --url URL, or --config FILE.")
    if given["file"]:
        return _chosen(read_servers(given["file"], environ), given["chosen"])
    if command:
        name = given["name"] or Path(command[0]).stem
        return {name: ServerConfig(name, command=command[0], args=tuple(command[1:]))}
    url = given["url"] or _variable(given["url_env"], environ)
    name = given["name"] or "server"
    headers = dict(_header(each, environ) for each in given["headers"])
    return {name: ServerConfig(name, url=url, headers=headers)}


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


def _listening(address: str, given: Mapping[str, Any], environ: Mapping[str, str]) -> Listening:
    host, colon, port = address.rpartition(":")
    if not colon or not host or not port.isdecimal() or int(port) > 65535:
        raise SettingsError(f"--http {address} is not HOST:PORT, for example 127.0.0.1:8850.")
    tokens = tuple(_variable(name, environ) for name in given["tokens"]) or (environ.get(_TOKEN) or secrets.token_urlsafe(32),)
    return Listening(
        host.strip("[]"), int(port), tokens, given["hosts"], given["tls_cert"], given["tls_key"], plain=given["insecure"]
    )


def _announce(given: Mapping[str, Any], listening: Listening, address: str) -> None:
    click.echo(f"overspill: serving at {address}", err=True)
    if not given["tokens"] and not os.environ.get(_TOKEN):
        click.echo(f"overspill: the token, shown this once: {listening.tokens[0]}", err=True)


def _log(quiet: bool) -> Callable[[str], None]:
    return (lambda _: None) if quiet else (lambda text: click.echo(f"overspill: {text}", err=True))
