"""Run the proxy over standard input and output, and open what clients share."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any

import anyio
from mcp.server.lowlevel.server import Server as Protocol

from overspill.mcp.client.connection import ClientIdentity
from overspill.mcp.proxy.client_request import ClientRequest
from overspill.mcp.proxy.options import ProxyOptions
from overspill.mcp.proxy.proxy import FindClient, Proxy
from overspill.mcp.proxy.served_client import ServedClient
from overspill.mcp.proxy.served_clients import ClientKey, ServedClients
from overspill.mcp.proxy.stdio import stdio_streams
from overspill.models.endpoints import Endpoint
from overspill.settings import Settings


def build_protocol_server(find_client: FindClient) -> Protocol[Any]:
    """An empty server of the SDK, with the proxy as its middleware."""
    server: Protocol[Any] = Protocol("overspill")
    server.middleware = [Proxy(find_client)]
    return server


@asynccontextmanager
async def open_clients(
    settings: Settings, options: ProxyOptions, endpoints: Mapping[str, Endpoint], log: Callable[[str], None]
) -> AsyncGenerator[ServedClients]:
    async with anyio.create_task_group() as group:
        clients = ServedClients(group, settings, options, endpoints, log)
        group.start_soon(clients.check_store)
        try:
            yield clients
            await clients.finish_jobs()
        finally:
            with anyio.CancelScope(shield=True):
                await clients.close_all()
            group.cancel_scope.cancel()


async def serve_stdio(clients: ServedClients, stop: anyio.Event, source: int = 0, target: int = 1) -> None:
    """Serve until the client closes its end or `stop` is set."""
    owner = ClientKey("local", "stdio")

    async def find(_: ClientRequest, identity: ClientIdentity) -> ServedClient:
        return await clients.find(owner, identity, outlived_by_jobs=False)

    async def end() -> None:
        await stop.wait()
        group.cancel_scope.cancel()

    server = build_protocol_server(find)
    async with anyio.create_task_group() as group, stdio_streams(source, target) as streams:
        group.start_soon(end)
        await server.run(*streams, server.create_initialization_options())
        group.cancel_scope.cancel()
