"""Track what a client hears of changes: of lists, and of the resources that it subscribes to, in each server's own protocol."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, suppress

import anyio
import anyio.abc
from mcp.shared.exceptions import MCPError

from overspill.errors import ServerError
from overspill.mcp.client.connection import Raw, ServerConnection, as_mapping
from overspill.mcp.client.known_lists import LISTS
from overspill.mcp.client.server import Server
from overspill.mcp.proxy.catalog import Catalog

CHANGES = {
    "tools": ("notifications/tools/list_changed", "toolsListChanged"),
    "prompts": ("notifications/prompts/list_changed", "promptsListChanged"),
    "resources": ("notifications/resources/list_changed", "resourcesListChanged"),
}
"""By capability: the notification that a list changed, and the flag with which a client subscribes to it."""


class Subscriptions:
    def __init__(self, group: anyio.abc.TaskGroup, catalog: Catalog, notify: Callable[[str, Raw], Awaitable[None]]) -> None:
        self._group, self._catalog, self._notify = group, catalog, notify
        self.missed: set[str] = set()
        """Servers that were not up during the client's handshake."""
        self._wanted: dict[tuple[str, str], anyio.CancelScope] = {}
        """By server and URI, the scope of the stream on which a server of the newer protocol reports changes."""
        self._listeners: Counter[tuple[str, str]] = Counter()
        self._changing = anyio.Lock()

    async def set(self, server: Server, uri: str, *, on: bool) -> Raw:
        """Subscribe or unsubscribe. Returns the server's answer, if its protocol has one."""
        connection = await server.connect()
        answer: Raw = {}
        if not connection.handshake.is_modern:
            answer = await connection.subscribe(uri, on=on)
        if (server.name, uri) in self._wanted:
            self._wanted.pop((server.name, uri)).cancel()
        if on:
            self._remember(connection, uri)
        return answer

    def has_any(self, server: str) -> bool:
        return any(name == server for name, _ in self._wanted)

    @asynccontextmanager
    async def listen(self, wanted: Sequence[tuple[Server, str]]) -> AsyncGenerator[list[str]]:
        """Keep subscriptions while a client of the newer protocol listens. Yields the URIs that servers accepted."""
        accepted: list[tuple[Server, str]] = []
        try:
            for server, uri in wanted:
                with suppress(MCPError):
                    async with self._changing:
                        if not self._listeners[server.name, uri]:
                            await self.set(server, uri, on=True)
                        self._listeners[server.name, uri] += 1
                    accepted.append((server, uri))
            yield [uri for _, uri in accepted]
        finally:
            for each in accepted:
                self._group.start_soon(self._leave, *each)

    async def resume(self, server: Server, connection: ServerConnection) -> None:
        """Repeat the client's subscriptions to a server that has just started, and notify the client of lists that have changed,
        or may have."""
        for uri in [uri for name, uri in self._wanted if name == server.name]:
            self._remember(connection, uri)
            if not connection.handshake.is_modern:
                with suppress(MCPError):  # it may no longer have that resource
                    await connection.subscribe(uri, on=True)
        flags = {
            flag: True
            for capability, (_, flag) in CHANGES.items()
            if as_mapping(connection.handshake.capabilities.get(capability)).get("listChanged")
        }
        if connection.handshake.is_modern and flags:
            self._group.start_soon(connection.listen, flags, anyio.CancelScope())
        if server.name in self.missed:
            self.missed.discard(server.name)
            for method in [method for name, (method, _) in CHANGES.items() if name in connection.handshake.capabilities]:
                await self._notify(method, {})
        self._group.start_soon(self._compare, server, connection)  # in the background, so that the server's start need not wait

    async def _compare(self, server: Server, connection: ServerConnection) -> None:
        changed = await server.lists.find_changed(connection)
        for method in dict.fromkeys(CHANGES[LISTS[key].split("/")[0]][0] for key in changed):
            self._catalog.note_change(server.name, method)
            await self._notify(method, {})

    def _remember(self, connection: ServerConnection, uri: str) -> None:
        scope = self._wanted[connection.config.name, uri] = anyio.CancelScope()
        if connection.handshake.is_modern:
            self._group.start_soon(connection.listen, {"resourceSubscriptions": [uri]}, scope)

    async def _leave(self, server: Server, uri: str) -> None:
        async with self._changing:
            self._listeners[server.name, uri] -= 1
            if not self._listeners[server.name, uri]:
                with suppress(MCPError, ServerError):
                    await self.set(server, uri, on=False)
