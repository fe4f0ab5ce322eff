"""`overspill login` and `overspill logout`: servers that want a person to log in."""

from __future__ import annotations

import json
import os
import webbrowser
from collections.abc import Iterator
from contextlib import suppress

import anyio
import click

from overspill.cli import output, tables
from overspill.cli.client_files import find_installed
from overspill.cli.settings import load_settings, read_variable
from overspill.cli.signals import run_until_done
from overspill.cli.terminal import inform, lacks_mcp, warn
from overspill.errors import BadRequest, OverspillError
from overspill.mcp.client.config import ServerConfig, parse_host
from overspill.mcp.client.login.storage import Login, LoginStore, normalize
from overspill.mcp.host_configs import rewriting
from overspill.mcp.host_configs.documents import ConfigText, ConfiguredServer
from overspill.mcp.host_configs.entries import may_hold_secret
from overspill.mcp.host_configs.hub_clients import identify_token
from overspill.settings import Settings
from overspill.text.humanize import escape_line, suggest_nearest

_MAX_PASTED_BYTES = 16 * 1024
_token_option = click.option(
    "--token-env",
    metavar="VARIABLE",
    help="Use the login of the proxy client whose token is in this environment variable.",
)


@click.command()
@click.argument("server", required=False)
@click.option("--no-browser", is_flag=True, help="Print the address, and take the answer that you paste.")
@click.option("--scope", default="", metavar="SCOPES", help="Ask for these scopes, too.")
@_token_option
@click.option("--list", "lists", is_flag=True, help="List the logins.")
@click.option("--json", "as_json", is_flag=True, help="With --list, print JSON.")
def login(server: str | None, no_browser: bool, scope: str, token_env: str | None, lists: bool, as_json: bool) -> None:
    """Log in to an MCP server, in your browser.

    SERVER is the name of a server in your settings or in a client's configuration, or its URL.

    \b
    overspill login linear
    overspill login https://mcp.example.com/mcp --no-browser
    overspill login --list

    Running proxies use the login from their next call. On another machine, open the printed address in any browser, and paste
    the address of the page where you end up, even if that page does not load.
    """
    if lists == bool(server):
        raise click.UsageError("Name a server, or use --list." if not lists else "Use --list without a server.")
    store = _open_store(token_env)
    if server is None:
        logins = [_describe(each) for each in store.list()]
        headings = ["Server", "Scopes", "Expires"]
        output.print_json(logins) if as_json else tables.print_table("Logins", headings, [[*each.values()] for each in logins])
        return
    try:
        from overspill.mcp.client.login.flow import log_in
    except ImportError as missing:
        raise lacks_mcp("login") from missing
    config = _find_server(server)

    async def show(url: str) -> None:
        opened = not no_browser and webbrowser.open(url)
        inform(f"{'Your browser opens' if opened else 'Open'} this address to log in:")
        click.echo(url, err=True)
        if no_browser:
            inform("Paste the address of the page that it ends on:")

    done = run_until_done(lambda: log_in(config, store, show, _read_line if no_browser else None, scope))
    click.echo(escape_line(f"Logged in to {config.name}. Scopes: {done.scope or 'not stated'}."))
    if not done.in_keyring:
        inform("The tokens are in a file that only you can read, because the system's keyring cannot be used.")


@click.command()
@click.argument("server")
@_token_option
def logout(server: str, token_env: str | None) -> None:
    """Delete the login at an MCP server, and ask the server to revoke it.

    SERVER is the same as for overspill login.
    """
    try:
        from overspill.mcp.client.login.keeper import revoke
    except ImportError as missing:
        raise lacks_mcp("logout") from missing
    config, store = _find_server(server), _open_store(token_env)
    is_revoked = run_until_done(lambda: revoke(config, store))
    rest = "" if is_revoked else " The server did not revoke the tokens, so they work until they expire."
    click.echo(escape_line(f"Logged out of {config.name}.{rest}"))


def _open_store(token_env: str | None) -> LoginStore:
    return LoginStore(os.environ, identify_token(read_variable(token_env, os.environ).encode()) if token_env else "")


async def _read_line(problem: str) -> str:
    """Read a line; empty at the end of standard input. Does not use a thread, because nothing could interrupt it."""
    if problem:
        inform(problem)
    fd, line, byte = output.standard_input().fileno(), b"", b" "
    while byte not in (b"", b"\n") and len(line) < _MAX_PASTED_BYTES:
        with suppress(PermissionError):  # a file or /dev/null, which is always readable
            await anyio.wait_readable(fd)
        byte = os.read(fd, 1)
        line += byte
    return line.decode(errors="replace")


def _describe(login: Login) -> dict[str, str]:
    shown = f"{parse_host(login.server)}/…" if may_hold_secret(login.server) else login.server
    expires = "" if login.expires_at is None else output.format_time(int(login.expires_at * 1000))
    return {"server": shown, "scopes": login.scope, "expires": expires}


def _find_server(given: str) -> ServerConfig:
    """Find a server by its URL, or by its name in the user's own files. Files in the working directory are not trusted."""
    from overspill.cli.commands.doctor.servers import Variables, read_config

    settings = load_settings(None, None, ()).settings
    if host := parse_host(given):
        return ServerConfig(host, url=given, login=settings.login)
    if "//" in given:
        raise BadRequest(f"{given} is not the address of a server. Use one like https://example.com/mcp.")
    found, names = dict[str, ServerConfig](), set[str]()
    for where, server in _list_configured(settings):
        config = read_config(server, where, os.environ, Variables(os.environ))
        if isinstance(config, ServerConfig) and config.url:
            names.add(server.name)
            found |= {normalize(config.url): config} if server.name == given else {}
    if len(found) == 1:
        return next(iter(found.values()))
    if found:
        raise BadRequest(f"Several servers are called {given}. Use the URL of one of them.")
    hint = suggest_nearest(given, names) or (f" Servers with a URL: {', '.join(sorted(names))}." if names else "")
    raise BadRequest(
        f"Neither your settings nor your clients have a server {given!r} with a URL.{hint} You can also use its URL."
    )


def _list_configured(settings: Settings) -> Iterator[tuple[str, ConfiguredServer]]:
    own = ConfigText(json.dumps({"mcpServers": settings.mcp_servers or {}}), "your settings")
    for source in (own, *(ConfigText(at.text(at.servers), at.given, at.dialect) for at in find_installed())):
        try:
            yield from ((source.name, server) for server in rewriting.list_servers(source))
        except OverspillError as problem:
            warn(f"{problem} Skipping it.")
