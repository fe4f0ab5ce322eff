"""All clients of the proxy: one per session of the older protocol; in the newer, one per principal and kind of client."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import anyio
import anyio.abc
from msgspec import Struct

from overspill.mcp.client import ClientIdentity
from overspill.mcp.proxy.options import ProxyOptions
from overspill.mcp.proxy.served_client import ServedClient, open_client
from overspill.models.endpoints import Endpoint
from overspill.session.session import Session
from overspill.settings import Settings
from overspill.text.lenient_json import dumps

_MAX_KINDS = 8  # of clients that a principal of the newer protocol keeps; one that comes back later starts anew


class ClientKey(Struct, frozen=True):
    """Who owns handles. Not a connection, because the newer protocol has none."""

    principal: str
    session: str = ""


class _OpenClient(Struct):
    client: ServedClient
    done: anyio.Event


class ServedClients:
    """Each client is served in a separate task, from its first request on."""

    def __init__(
        self,
        group: anyio.abc.TaskGroup,
        settings: Settings,
        options: ProxyOptions,
        endpoints: Mapping[str, Endpoint],
        log: Callable[[str], None],
    ) -> None:
        self._group = group
        self._settings = settings
        self._options = options
        self._endpoints = endpoints
        self._log = log
        self._open_clients: dict[tuple[ClientKey, bytes], _OpenClient] = {}
        self._sessions: dict[ClientKey, Session] = {}
        self._opening = anyio.Lock()

    async def find(self, owner: ClientKey, identity: ClientIdentity) -> ServedClient:
        kind = b"" if owner.session else dumps((identity.info, identity.capabilities))
        entry = self._open_clients.pop((owner, kind), None)
        if entry is not None:
            self._open_clients[owner, kind] = entry  # keep the order of last use
            return entry.client
        async with self._opening:
            entry = self._open_clients.get((owner, kind)) or await self._open(owner, kind, identity)
        return entry.client

    def count_sessions(self, principal: str) -> int:
        """How many sessions a principal has open."""
        return sum(owner.principal == principal for owner in self._sessions)

    async def close(self, owner: ClientKey) -> None:
        for key in [key for key in self._open_clients if key[0] == owner]:
            self._open_clients.pop(key).done.set()
        if session := self._sessions.pop(owner, None):
            await session.close()

    async def close_all(self) -> None:
        for owner in list(self._sessions):
            await self.close(owner)

    async def _open(self, owner: ClientKey, kind: bytes, identity: ClientIdentity) -> _OpenClient:
        mine = [key for key in self._open_clients if key[0] == owner]
        idle = [key for key in mine if not self._open_clients[key].client.is_busy]
        for key in idle[: max(0, len(mine) - _MAX_KINDS + 1)]:
            self._open_clients.pop(key).done.set()
        session = self._sessions.get(owner)
        if session is None:
            family = self._options.family(owner.principal)
            session = Session(self._settings, family=family, endpoints=self._endpoints, notice=False, preload=False)
            await session.begin()
            self._sessions[owner] = session
        entry: _OpenClient = await self._group.start(self._serve, session, identity)
        self._open_clients[owner, kind] = entry
        return entry

    async def _serve(self, session: Session, identity: ClientIdentity, *, task_status: anyio.abc.TaskStatus[_OpenClient]) -> None:
        async with open_client(self._options, session, identity, self._log) as client:
            entry = _OpenClient(client, anyio.Event())
            task_status.started(entry)
            await entry.done.wait()
