"""`overspill view`: look at sessions and stored outputs in a browser."""

from __future__ import annotations

import os
import webbrowser
from importlib.util import find_spec
from typing import Any

import anyio
import click

from overspill.cli import stores
from overspill.cli.commands.hub import list_facts
from overspill.cli.settings import load_settings, settings_options
from overspill.cli.signals import serve_until_signal
from overspill.cli.terminal import inform, warn
from overspill.errors import MissingPackage, SettingsError
from overspill.redaction.policy import Redaction

_PACKAGES = ("jinja2", "markdown_it", "starlette", "uvicorn")
_UNNAMED = ("0.0.0.0", "::", "")  # noqa: S104  # refused
_ANYONE = (
    "{host} can be reached from other machines, and nothing is encrypted: anyone on the network can listen in. Leave out "
    "--host and forward the port over SSH, or pass --insecure if something else encrypts the connection."
)


@click.command()
@click.option(
    "--port", type=click.IntRange(0, 65535), default=0, metavar="N", help="The port to listen on; default: any that is free."
)
@click.option("--host", default="127.0.0.1", show_default=True, metavar="ADDRESS", help="The address to listen on.")
@click.option("--insecure", is_flag=True, help="Serve other machines without encryption.")
@click.option("--open", "opens", is_flag=True, help="Open the page in your browser.")
@settings_options
def view(port: int, host: str, insecure: bool, opens: bool, **options: Any) -> None:
    """Look at sessions, stored outputs and savings in a browser.

    \b
    overspill view --open
    overspill view --port 8900 --store ~/agents/store

    The page is read-only and served to this machine only. The link works once, in one browser. Ctrl-C ends it.
    """
    if any(find_spec(package) is None for package in _PACKAGES):
        raise MissingPackage("`overspill view`", "view")
    from overspill.text.urls import is_loopback
    from overspill.view.serve import Address, Viewer, hold_start_file

    if host in _UNNAMED:
        raise SettingsError(f"{host!r} is not an address a browser can reach. Use 127.0.0.1 or one of this machine's addresses.")
    if not is_loopback(host) and not insecure:
        raise SettingsError(_ANYONE.format(host=host))
    settings = load_settings(**options).settings
    archive = stores.open_archive(settings, Redaction(settings, os.environ))
    viewer = Viewer(archive, Address(host, port), prices=settings.prices, list_facts=list_facts)

    async def run(stop: anyio.Event) -> None:
        if not opens:
            inform(f"open this link, which works once: {viewer.link}")
            await viewer.serve_until(stop)
            return
        with hold_start_file(viewer.link) as file:
            if not await anyio.to_thread.run_sync(webbrowser.open, file.as_uri()):
                warn(f"no browser could be started. Open this link, which works once: {viewer.link}")
            inform(f"serving at {viewer.address.origin}. Ctrl-C ends it.")
            await viewer.serve_until(stop)

    serve_until_signal(run)
