"""Servers that serve several clients: those without sessions, and those whose entry says `share: true`."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from contextvars import Context, copy_context
from functools import partial
from typing import Any, TypeAlias

import anyio
from msgspec.structs import replace

from overspill.calls.tasks import TaskOwner
from overspill.mcp.client.config import ServerConfig
from overspill.mcp.client.connection import ServerConnection, open_server, use
from overspill.mcp.client.handshake import ClientIdentity, Handshake, as_mapping
from overspill.mcp.client.login.keeper import Log
from overspill.mcp.client.own_files import PASSING, without_session
from overspill.mcp.client.peer import ServerAccess
from overspill.mcp.client.process import end_unused
from overspill.mcp.client.running import RunningServer

Key: TypeAlias = tuple[Any, ...]
"""What clients must agree on to share a server. Holds secrets."""
_END_SECONDS = 1.0
_GREETING_SECONDS = 5.0
"""A server that takes longer to greet another client is busy: some work on one call at a time."""
_MAX_BUSY = 2  # servers that a client waits for before it gets another one
_CHANNEL = "claude/channel"
"""An ability to speak unprompted to the one conversation that a server belongs to."""


def find_key(owner: object, access: ServerAccess) -> Key:
    """`owner`: what else must be the same, such as the token and the settings."""
    config = access.config
    variables = {name: value for name, value in access.environ.items() if name not in PASSING}
    variables = without_session(variables) if config.share else variables
    # What a server speaks may depend on the handshake that comes first.
    return owner, _plain(config), variables, access.client.is_modern and not config.share


def _plain(config: ServerConfig) -> ServerConfig:
    """Drop what a client's own side of the connection does."""
    return replace(config, tools=None, idle_minutes=None, early=[])


class SharedServer:
    """A server that has started or is about to. Runs until its last user has left."""

    def __init__(self, key: Key) -> None:
        self.key = key
        self.users = 0
        self.running: RunningServer | None = None
        self.handshake: Handshake | None = None
        """Of the first client; None unless others may join."""
        self.has_sessions = False
        self.settled = anyio.Event()
        """Set once it is clear whether others may join."""
        self._failure: Exception | None = None
        self._owner, self._scope = TaskOwner(), anyio.CancelScope()
        self._opened = anyio.Event()
        self._closed: anyio.Event | None = None
        self._logs: list[tuple[Context, Log]] = []

    @property
    def may_be_joined(self) -> bool:
        """Whether other clients may use it, or may wait until that is clear."""
        return not self.settled.is_set() or bool(self.handshake and self.running and not self.running.ended.is_set())

    async def open(self, access: ServerAccess) -> None:
        """Start the server. It belongs to none of its users: the first one may be the first to leave."""
        await self._owner.open()
        self._closed = anyio.Event()
        own = ServerAccess(access.config, access.environ, log=self._log)
        self._owner.start(partial(self._run, own, self._closed))

    @asynccontextmanager
    async def connect(self, access: ServerAccess) -> AsyncGenerator[ServerConnection | None]:
        """Connect one user. None if the server, which others use, is too busy to greet it."""
        self._logs.append(mine := (copy_context(), access.log))
        try:
            await self._opened.wait()
            if self.running is None:
                assert self._failure is not None
                raise self._failure
            async with use(self.running, access) as connection:
                yield connection if await self._greet(connection, access.client) else None
        finally:
            self._logs.remove(mine)

    async def close(self) -> None:
        self.settled.set()
        self._scope.cancel()
        with anyio.CancelScope(shield=True):
            if self._closed is not None:
                await self._closed.wait()
            await self._owner.cancel(_END_SECONDS)

    async def _greet(self, connection: ServerConnection, client: ClientIdentity) -> bool:
        """Shake hands. Each client of the protocol without sessions gets the server's own answer to it."""
        known, running = self.handshake, self.running
        assert running is not None
        if known is not None and known.is_modern:
            with anyio.move_on_after(_GREETING_SECONDS) as greeting:
                await connection.discover()
            return not greeting.cancelled_caught
        if known is not None:
            connection.handshake = known
        else:
            # A question of a server with sessions does not say whom it is for, so none is invited.
            running.is_shared = connection.config.share
            await connection.shake_hands(ClientIdentity(is_modern=client.is_modern) if running.is_shared else None)
            found = connection.handshake
            self.has_sessions = not found.is_modern
            if running.is_shared and self.has_sessions:
                found = replace(
                    found, capabilities={name: each for name, each in found.capabilities.items() if name != "logging"}
                )
            if running.is_shared or (found.is_modern and _CHANNEL not in as_mapping(found.capabilities.get("experimental"))):
                running.is_shared = True
                self.handshake = connection.handshake = found
            self.settled.set()
        return True

    async def _run(self, access: ServerAccess, closed: anyio.Event) -> None:
        try:
            with self._scope:
                async with open_server(access) as self.running:
                    self._opened.set()
                    await anyio.sleep_forever()
        except Exception as failure:  # of the server, for its users
            self._failure = failure
        finally:
            if self.running is not None:
                self.running.ended.set()
            self._opened.set()
            closed.set()

    def _log(self, line: str) -> None:
        for context, log in self._logs:
            context.run(log, line)


class SharedServers:
    """The servers of all clients in this process."""

    def __init__(self) -> None:
        self._servers: list[SharedServer] = []

    def expects(self, config: ServerConfig) -> bool:
        """Whether a server that is up may serve this client too."""
        return any(each.may_be_joined and each.handshake and each.key[1] == _plain(config) for each in self._servers)

    @asynccontextmanager
    async def connect(self, owner: object, access: ServerAccess) -> AsyncGenerator[ServerConnection]:
        """Connect to a server, which others may use if its kind and all that `find_key` names allow it."""
        key, busy = find_key(owner, access), list[SharedServer]()
        while True:
            server = await self._find(key, busy)
            async with self._use(server, access) as connection:
                if connection is not None:
                    yield connection
                    return
            busy.append(server)

    @asynccontextmanager
    async def _use(self, server: SharedServer, access: ServerAccess) -> AsyncGenerator[ServerConnection | None]:
        server.users += 1
        try:
            if server.users > 1:
                with anyio.CancelScope(shield=True):
                    await end_unused([access.config])
            else:
                await server.open(access)
            async with server.connect(access) as connection:
                yield connection
        finally:
            server.users -= 1
            if not server.users:
                if server in self._servers:
                    self._servers.remove(server)
                await server.close()

    async def _find(self, key: Key, busy: Sequence[SharedServer]) -> SharedServer:
        """Return a server that is up, or a new one. Waits for one that is starting, which may turn out to be shared."""
        while len(busy) < _MAX_BUSY:
            fitting = (each for each in self._servers if each.key == key and each.may_be_joined and each not in busy)
            if (found := next(fitting, None)) is None:
                break
            if found.handshake is not None:
                return found
            await found.settled.wait()
            if found.has_sessions and found.handshake is None:
                return SharedServer(key)  # nobody needs to wait for this one
        self._servers.append(found := SharedServer(key))
        return found
