"""`overspill proxy`: what it can be told. What it then does is in `serving`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from overspill.errors import MissingPackage
from overspill.settings import PRESETS


@click.command(context_settings={"allow_interspersed_args": False})
@click.argument("command", nargs=-1, type=click.UNPROCESSED)
@click.option("--url", help="A server that speaks streamable HTTP.")
@click.option("--url-env", metavar="VARIABLE", help="The same from a variable, for an address with a secret in it.")
@click.option("--header-env", "headers", multiple=True, metavar="NAME=VARIABLE", help="A header for it, from a variable.")
@click.option("--config", "file", type=click.Path(path_type=Path), metavar="FILE", help="The servers of an mcpServers file.")
@click.option("--server", "chosen", multiple=True, metavar="NAME", help="Only this one of them; may be repeated.")
@click.option("--name", help="What the one server is called in settings and messages; else by its command or host.")
@click.option("--http", "address", metavar="HOST:PORT", help="Serve streamable HTTP instead of standard input and output.")
@click.option(
    "--token-env",
    "tokens",
    multiple=True,
    metavar="VARIABLE",
    help="A token to let in; else OVERSPILL_PROXY_TOKEN, or a new one.",
)
@click.option("--allow-host", "hosts", multiple=True, metavar="NAME[:PORT]", help="A name by which clients may call the address.")
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
def proxy(**given: Any) -> None:
    """Run MCP servers behind Overspill: large results are kept whole, slow calls go on in the background.

    \b
    overspill proxy -- npx -y @modelcontextprotocol/server-filesystem /data
    overspill proxy --url https://example.com/mcp --header-env Authorization=MY_TOKEN
    overspill proxy --config mcp.json --http 127.0.0.1:8850

    `overspill wrap` puts this into a client's configuration for you.
    """
    # Takes a second to import, which nobody needs who only asks for help.
    try:
        from overspill.cli.serving import serve
    except ImportError as missing:
        raise MissingPackage("`overspill proxy`", "mcp") from missing
    serve(given)
