"""How long a request waits for a server that is not up or does not answer. Nothing of ours may take longer than 45 seconds."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress
from typing import TypeVar

import anyio
from mcp.shared.exceptions import MCPError

from overspill.errors import ServerError
from overspill.mcp.client import Server, ServerConnection
from overspill.mcp.client.connection import Raw

_FAILED_WAIT = 3.0
_STARTING_WAIT = 30.0
_LIST_SECONDS = 10.0

T = TypeVar("T")


async def wait_for_server(server: Server, failed: float = _FAILED_WAIT) -> ServerConnection:
    """One that is starting is waited for longer than one that has failed and will be started again."""
    return await server.wait_until_connected(failed if server.problem else _STARTING_WAIT)


async def has_capability(server: Server, method: str) -> bool:
    return method.split("/")[0] in (await wait_for_server(server, failed=0)).handshake.capabilities


async def list_all(server: Server, method: str, key: str) -> list[Raw]:
    """All pages of what it lists; ServerError where it does not say in time."""
    if not await has_capability(server, method):
        return []
    try:
        with anyio.fail_after(_LIST_SECONDS):
            return await server.list_pages(method, key)
    except TimeoutError:
        problem = f"The server {server.name} did not answer {method} within {_LIST_SECONDS:g} s, so it is left out of that list."
        server.log(problem)
        raise ServerError(problem) from None


async def ask_each(servers: Iterable[Server], ask: Callable[[Server], Awaitable[T]]) -> dict[str, T]:
    """What all of them say, side by side. One that is down, refuses or is late must not hide the others: it is left out."""
    said: dict[str, T] = {}

    async def one(server: Server) -> None:
        with suppress(MCPError, ServerError):
            said[server.name] = await ask(server)

    async with anyio.create_task_group() as group:
        for server in servers:
            group.start_soon(one, server)
    return said
