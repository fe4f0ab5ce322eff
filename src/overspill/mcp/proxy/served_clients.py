"""Who has which scope: one for each session of the older protocol, one for each kind of client of the newer, per principal."""

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

_MAX_KINDS = 8  # scopes that a principal of the newer protocol keeps; whoever comes back gets a new one


class ClientKey(Struct, frozen=True):
    """Whose handles are whose. Never a connection: the newer protocol has none."""

    principal: str
    session: str = ""


class _OpenClient(Struct):
    scope: ServedClient
    done: anyio.Event


class ServedClients:
    """Each scope lives in a task of its own, from when it is first needed."""

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
        self._places: dict[tuple[ClientKey, bytes], _OpenClient] = {}
        self._sessions: dict[ClientKey, Session] = {}
        self._opening = anyio.Lock()

    async def find(self, owner: ClientKey, client: ClientIdentity) -> ServedClient:
        kind = b"" if owner.session else dumps((client.info, client.capabilities))
        place = self._places.pop((owner, kind), None)
        if place is not None:
            self._places[owner, kind] = place  # the last is the one that was used last
            return place.scope
        async with self._opening:
            place = self._places.get((owner, kind)) or await self._open(owner, kind, client)
        return place.scope

    def count_sessions(self, principal: str) -> int:
        """Of the sessions that a principal has open."""
        return sum(owner.principal == principal for owner in self._sessions)

    async def close(self, owner: ClientKey) -> None:
        for key in [key for key in self._places if key[0] == owner]:
            self._places.pop(key).done.set()
        if session := self._sessions.pop(owner, None):
            await session.close()

    async def close_all(self) -> None:
        for owner in list(self._sessions):
            await self.close(owner)

    async def _open(self, owner: ClientKey, kind: bytes, client: ClientIdentity) -> _OpenClient:
        mine = [key for key in self._places if key[0] == owner]
        idle = [key for key in mine if not self._places[key].scope.is_busy]
        for key in idle[: max(0, len(mine) - _MAX_KINDS + 1)]:
            self._places.pop(key).done.set()
        session = self._sessions.get(owner)
        if session is None:
            family = self._options.family(owner.principal)
            session = Session(self._settings, family=family, endpoints=self._endpoints, notice=False)
            await session.begin()
            self._sessions[owner] = session
        place: _OpenClient = await self._group.start(self._serve, session, client)
        self._places[owner, kind] = place
        return place

    async def _serve(self, session: Session, client: ClientIdentity, *, task_status: anyio.abc.TaskStatus[_OpenClient]) -> None:
        async with open_client(self._options, session, client, self._log) as scope:
            place = _OpenClient(scope, anyio.Event())
            task_status.started(place)
            await place.done.wait()
