"""Ask servers without waiting too long for one that is down or slow. No answer of the proxy may take more than 45 seconds."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress
from typing import TypeVar

import anyio
import mcp_types
from mcp.shared.exceptions import MCPError

from overspill.errors import ServerError
from overspill.mcp.client.connection import Raw, ServerConnection
from overspill.mcp.client.server import Server
from overspill.text.humanize import quote_line

_FAILED_WAIT = 3.0
_STARTING_WAIT = 30.0
_LIST_SECONDS = 10.0

T = TypeVar("T")


async def wait_for_server(server: Server, failed: float = _FAILED_WAIT) -> ServerConnection:
    """Wait longer for a server that is starting than for one that has failed and will restart."""
    return await server.wait_until_connected(failed if server.problem else _STARTING_WAIT)


async def has_capability(server: Server, method: str) -> bool:
    return method.split("/")[0] in (await wait_for_server(server, failed=0)).handshake.capabilities


async def list_all(server: Server, method: str, key: str) -> list[Raw]:
    """Fetch all usable entries of a list. Raises ServerError if the server is too slow, MCPError if it refuses."""
    if not await has_capability(server, method):
        return []
    try:
        with anyio.fail_after(_LIST_SECONDS):
            return await server.list_entries(method, key)
    except TimeoutError:
        problem = f"The server {server.name} did not answer {method} within {_LIST_SECONDS:g} s, so the list is without it."
        server.log(problem)
        raise ServerError(problem) from None
    except MCPError as refusal:
        if refusal.code != mcp_types.METHOD_NOT_FOUND:  # a server with resources may have no templates
            server.log_once(f"The server {server.name} did not list its {key}: {quote_line(refusal.message)}")
        raise


async def ask_each(servers: Iterable[Server], ask: Callable[[Server], Awaitable[T]]) -> dict[str, T]:
    """Ask all servers together, by name. A server that is down, refuses or is late is left out."""
    answers: dict[str, T] = {}

    async def one(server: Server) -> None:
        with suppress(MCPError, ServerError):
            answers[server.name] = await ask(server)

    async with anyio.create_task_group() as group:
        for server in servers:
            group.start_soon(one, server)
    return answers
