"""`overspill serve`: the retrieval tools alone, for the outputs that hooks have stored."""

from __future__ import annotations

from importlib.util import find_spec

import click

from overspill.cli.commands.hook import project_of
from overspill.cli.stderr import lacks_mcp
from overspill.hooks.shapes import HOOKS, Client


@click.command()
@click.argument("client", type=click.Choice(tuple(HOOKS)))
def serve(client: Client) -> None:
    """Serve the tools that read what `overspill hook` has stored, over MCP on standard input and output.

    It reads the outputs of this client in this project folder, and nothing else.
    """
    if find_spec("mcp") is None:
        raise lacks_mcp("serve")
    from overspill.cli.starting import serve_outputs
    from overspill.hooks.keeping import family_of

    serve_outputs(family_of(client, project_of(client)))
