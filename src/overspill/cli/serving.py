"""What `overspill proxy` does: sits between an MCP client and its servers until the client leaves or a signal ends it."""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable, Mapping
from typing import Any

import anyio

from overspill.cli.models import endpoints
from overspill.cli.settings import read_variable
from overspill.cli.stderr import inform
from overspill.errors import SettingsError
from overspill.mcp.client.process import end_unused
from overspill.mcp.proxy.http import ListenOptions, serve_http
from overspill.mcp.proxy.options import ProxyOptions
from overspill.mcp.proxy.served_clients import open_clients
from overspill.mcp.proxy.stdio import serve_stdio
from overspill.settings import Settings

_TOKEN_VARIABLE = "OVERSPILL_PROXY_TOKEN"  # noqa: S105


async def serve(
    given: Mapping[str, Any], settings: Settings, options: ProxyOptions, log: Callable[[str], None], stop: anyio.Event
) -> None:
    """Serve with the options of `overspill proxy`, by name, until the client leaves or `stop` is set."""
    try:
        served = endpoints(settings, os.environ)
        listen = _read_listen_options(given, os.environ) if given["address"] else None
        listener = listen.open_socket() if listen is not None else None
        if listen is not None and listener is not None:
            _announce(given, listen, listen.address(listener))

        async with open_clients(settings, options, served, log) as clients:
            if listen is None or listener is None:
                await serve_stdio(clients, stop)
            else:
                await serve_http(clients, listen, listener, stop)
    finally:
        with anyio.CancelScope(shield=True):
            await end_unused(options.servers.values())


def _read_listen_options(given: Mapping[str, Any], environ: Mapping[str, str]) -> ListenOptions:
    address: str = given["address"]
    host, colon, port = address.rpartition(":")
    if not colon or not host or not port.isdecimal() or int(port) > 65535:
        raise SettingsError(f"--http {address} is not HOST:PORT, for example 127.0.0.1:8850.")
    tokens = tuple(read_variable(name, environ) for name in given["tokens"]) or (
        environ.get(_TOKEN_VARIABLE) or secrets.token_urlsafe(32),
    )
    return ListenOptions(
        host.strip("[]"), int(port), tokens, given["hosts"], given["tls_cert"], given["tls_key"], plain=given["insecure"]
    )


def _announce(given: Mapping[str, Any], listen: ListenOptions, address: str) -> None:
    inform(f"serving at {address}")
    if not given["tokens"] and not os.environ.get(_TOKEN_VARIABLE):
        inform(f"the token, shown only once: {listen.tokens[0]}")
