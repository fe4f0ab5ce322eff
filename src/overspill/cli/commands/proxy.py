"""The options of `overspill proxy`. `serving` does the work."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Any

import click

from overspill.cli.common_options import grace_option, group_name
from overspill.cli.settings import store_option
from overspill.cli.terminal import lacks_mcp
from overspill.settings import PRESETS


@click.command(context_settings={"allow_interspersed_args": False})
@click.argument("command", nargs=-1, type=click.UNPROCESSED)
@click.option("--url", help="URL of a server that speaks streamable HTTP.")
@click.option("--url-env", metavar="VARIABLE", help="Take the URL from an environment variable, to keep it secret.")
@click.option("--header-env", "headers", multiple=True, metavar="NAME=VARIABLE", help="Send a header with a variable's value.")
@click.option("--config", "file", type=click.Path(path_type=Path), metavar="FILE", help="Run the servers of an mcpServers file.")
@click.option("--config-env", metavar="VARIABLE", help="Take such a file's text from a variable, as `wrap --one` writes it.")
@click.option("--server", "chosen", multiple=True, metavar="NAME", help="Run only this server of --config; may be repeated.")
@click.option("--name", help="Name of the server in settings and messages; default: its command or host.")
@click.option("--http", "address", metavar="HOST:PORT", help="Serve streamable HTTP instead of standard input and output.")
@click.option(
    "--token-env",
    "tokens",
    multiple=True,
    metavar="VARIABLE",
    help="Accept the token in this environment variable; default: OVERSPILL_PROXY_TOKEN, or a new token.",
)
@click.option("--allow-host", "hosts", multiple=True, metavar="NAME[:PORT]", help="Another host name that clients may use.")
@click.option("--tls-cert", type=click.Path(exists=True, dir_okay=False), metavar="FILE", help="Certificate for --http.")
@click.option("--tls-key", type=click.Path(exists=True, dir_okay=False), metavar="FILE", help="Key of the certificate.")
@click.option("--insecure", is_flag=True, help="Serve other machines over --http without TLS.")
@click.option(
    "--tools",
    type=click.Choice(["always", "when-needed"]),
    default="always",
    show_default=True,
    help="When to list the retrieval tools: always, or from the first stored output on, which breaks prompt caches.",
)
@click.option(
    "--group",
    type=group_name,
    metavar="NAME",
    help="Leave the retrieval tools to `overspill serve NAME`, which offers them once for this client's proxies with that name.",
)
@click.option(
    "--tool-search",
    type=click.Choice(["auto", "on", "off"]),
    help="Offer a search in place of all tools; auto: above 10,000 tokens of schemas. Default: the setting toolSearch.",
)
@click.option("--pin", "pinned", multiple=True, metavar="TOOL", help="Offer this tool beside the search; may be repeated.")
@click.option("--direct", type=click.Choice(["destructive"]), help="Also list tools marked as destructive.")
@click.option("--hub/--no-hub", "hub", help="Share one process, the hub; default: OVERSPILL_HUB or `overspill hub on|off`.")
@click.option(
    "--idle-minutes",
    type=click.FloatRange(0),
    metavar="MINUTES",
    help="Stop a server idle this long until its next request. 0: never. Default: 5 if its protocol has no sessions.",
)
@click.option("--share", is_flag=True, help="Let one server serve all conversations of a hub, even if its protocol has sessions.")
@click.option("--holdout", type=click.IntRange(0, 50), metavar="PERCENT", help="Leave this share of conversations untouched.")
@click.option("--list-outputs", is_flag=True, help="List stored outputs as resources.")
@grace_option(0.0)
@click.option("--dry-run", is_flag=True, help="Pass everything on and report what would be stored.")
@click.option("-q", "--quiet", is_flag=True, help="Write nothing to standard error.")
@store_option
@click.option("--set", "assignments", multiple=True, metavar="KEY=VALUE", help="Set one key, e.g. toolResponseMaxBytes=20000.")
@click.option("--settings", type=click.Path(path_type=Path), metavar="FILE", help="Read settings from this file only.")
@click.option("--preset", type=click.Choice(list(PRESETS)), help="The preset to start from.")
def proxy(**given: Any) -> object:
    """Run MCP servers behind Overspill: it stores large results and keeps slow calls running in the background.

    \b
    overspill proxy -- npx -y @modelcontextprotocol/server-filesystem /data
    overspill proxy --url https://example.com/mcp --header-env Authorization=MY_TOKEN
    overspill proxy --config mcp.json --http 127.0.0.1:8850

    `overspill wrap` puts this into a client's configuration for you.
    """
    # Imported late: `--help` does not need it.
    from overspill.cli.serving import serve_proxy

    if find_spec("mcp") is None:
        raise lacks_mcp("proxy")
    return serve_proxy(given)
