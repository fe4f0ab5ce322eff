"""A running proxy, over standard input and output or over HTTP."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any

import anyio
from mcp.server.lowlevel.server import Server as Protocol

from overspill.mcp.client import Client
from overspill.mcp.proxy.client_request import Exchange
from overspill.mcp.proxy.options import Options
from overspill.mcp.proxy.proxy import FindScope, Proxy
from overspill.mcp.proxy.served_client import ClientScope
from overspill.mcp.proxy.served_clients import ClientKey, ClientScopes
from overspill.mcp.proxy.stdio import stdio_streams
from overspill.models.endpoints import Endpoint
from overspill.settings import Settings


def protocol(find_scope: FindScope) -> Protocol[Any]:
    """The SDK's server with nothing in it but our middleware."""
    server: Protocol[Any] = Protocol("overspill")
    server.middleware = [Proxy(find_scope)]
    return server


@asynccontextmanager
async def open_scopes(
    settings: Settings, options: Options, endpoints: Mapping[str, Endpoint], log: Callable[[str], None]
) -> AsyncGenerator[ClientScopes]:
    async with anyio.create_task_group() as group:
        scopes = ClientScopes(group, settings, options, endpoints, log)
        try:
            yield scopes
        finally:
            with anyio.CancelScope(shield=True):
                await scopes.close_all()
            group.cancel_scope.cancel()


async def serve_stdio(scopes: ClientScopes, told: anyio.Event, source: int = 0, target: int = 1) -> None:
    """Until the client closes its end, or we are told to end."""
    owner = ClientKey("local", "stdio")

    async def find(_: Exchange, client: Client) -> ClientScope:
        return await scopes.find(owner, client)

    async def end() -> None:
        await told.wait()
        group.cancel_scope.cancel()

    server = protocol(find)
    async with anyio.create_task_group() as group, stdio_streams(source, target) as streams:
        group.start_soon(end)
        await server.run(*streams, server.create_initialization_options())
        group.cancel_scope.cancel()
