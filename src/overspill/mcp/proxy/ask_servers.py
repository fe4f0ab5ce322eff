"""How long a request waits for a server that is not up or does not answer. Nothing of ours may take longer than 45 seconds."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress
from typing import TypeVar

import anyio
from mcp.shared.exceptions import MCPError

from overspill.errors import ServerError
from overspill.mcp.client import Link, Server
from overspill.mcp.client.connection import Raw

_BRIEFLY = 3.0
_LONG = 30.0
_LIST = 10.0

T = TypeVar("T")


async def reach(server: Server, failed: float = _BRIEFLY) -> Link:
    """One that is starting is waited for longer than one that has failed and will be started again."""
    return await server.link(failed if server.problem else _LONG)


async def has(server: Server, method: str) -> bool:
    return method.split("/")[0] in (await reach(server, failed=0)).greeting.capabilities


async def list_all(server: Server, method: str, key: str) -> list[Raw]:
    """All pages of what it lists; ServerError where it does not say in time."""
    if not await has(server, method):
        return []
    try:
        with anyio.fail_after(_LIST):
            return await server.pages(method, key)
    except TimeoutError:
        problem = f"The server {server.name} did not answer {method} within {_LIST:g} s, so it is left out of that list."
        server.log(problem)
        raise ServerError(problem) from None


async def each(servers: Iterable[Server], ask: Callable[[Server], Awaitable[T]]) -> dict[str, T]:
    """What all of them say, side by side. One that is down, refuses or is late must not hide the others: it is left out."""
    said: dict[str, T] = {}

    async def one(server: Server) -> None:
        with suppress(MCPError, ServerError):
            said[server.name] = await ask(server)

    async with anyio.create_task_group() as group:
        for server in servers:
            group.start_soon(one, server)
    return said
