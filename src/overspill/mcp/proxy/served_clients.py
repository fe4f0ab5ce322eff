"""All clients of the proxy: one per session of the older protocol; in the newer, one per principal and kind of client.

A principal owns outputs and jobs, so all of its clients share one session. Calls that run in the background outlive their client:
its servers run until those calls have ended.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import AbstractContextManager, asynccontextmanager, nullcontext
from functools import partial
from typing import Any

import anyio
import anyio.abc
import anyio.to_thread
from msgspec import Struct, field
from msgspec.structs import replace

from overspill.mcp.client.connection import ClientIdentity, Connect, connect_alone
from overspill.mcp.client.own_files import PASSING, without_session
from overspill.mcp.client.shared_servers import SharedServers
from overspill.mcp.proxy.options import ProxyOptions
from overspill.mcp.proxy.served_client import ServedClient
from overspill.models.endpoints import Endpoint
from overspill.record.events import ConversationOpened, now_ms
from overspill.session.session import Session
from overspill.session.sharing import Sessions, SharedSession
from overspill.settings import Settings
from overspill.settings.opening import open_configured_store
from overspill.store.away import WaitingStore
from overspill.text.humanize import one_line
from overspill.text.lenient_json import dumps
from overspill.wording import slow_tools as wording

_MAX_KINDS = 8  # of clients kept for a principal of the newer protocol; a client that was dropped starts anew when it returns


class ClientKey(Struct, frozen=True):
    """Whose client it is, and its session in the older protocol. The newer protocol has no sessions."""

    principal: str
    session: str = ""


class ServedClients(Struct, eq=False):
    """Each client is served in a separate task, from its first request on."""

    group: anyio.abc.TaskGroup
    settings: Settings
    options: ProxyOptions
    endpoints: Mapping[str, Endpoint]
    log: Callable[[str], None]
    shared_sessions: Sessions
    store: WaitingStore
    shared_servers: SharedServers | None = None
    _open_clients: dict[tuple[ClientKey, bytes], ServedClient] = {}
    _sessions: dict[str, SharedSession] = {}
    _served: Counter[str] = field(default_factory=Counter[str])
    _serving: int = 0
    _ended: anyio.Event = field(default_factory=anyio.Event)
    _opening: anyio.Lock = field(default_factory=anyio.Lock)

    async def find(self, owner: ClientKey, identity: ClientIdentity, *, outlived_by_jobs: bool = True) -> ServedClient:
        """Find or open a client. `outlived_by_jobs`: whether its jobs keep running when the client has gone."""
        kind = b"" if owner.session else dumps((identity.info, identity.capabilities))
        client = self._open_clients.pop((owner, kind), None)
        if client is not None:
            self._open_clients[owner, kind] = client  # moves it to the end: the order is that of the last use
            return client
        async with self._opening:
            return self._open_clients.get((owner, kind)) or await self._open(owner, kind, identity, outlived_by_jobs)

    async def check_store(self) -> None:
        """If nothing can be stored, log why before the first client finds out, and even if it leaves before that."""
        with anyio.CancelScope(shield=True):
            await anyio.to_thread.run_sync(self.store.check)

    async def has_store(self) -> bool:
        return await anyio.to_thread.run_sync(self.store.answers)

    def count_sessions(self, principal: str) -> int:
        """How many sessions a principal has open, including those whose jobs are still running."""
        return self._served[principal]

    def describe_servers(self) -> list[dict[str, Any]]:
        servers = [server for client in self._open_clients.values() for server in client.servers.values()]
        return [{"name": server.name, "pid": server.pid, "state": server.state} for server in servers]

    @property
    def is_used(self) -> bool:
        """Whether any client is served, or its jobs are running."""
        return self._serving > 0

    def has(self, owner: ClientKey) -> bool:
        return (owner, b"") in self._open_clients

    def connected(self, owner: ClientKey) -> AbstractContextManager[None]:
        client = self._open_clients.get((owner, b""))
        return client.connected() if client else nullcontext()

    def leave(self, owner: ClientKey) -> None:
        for key in [key for key in self._open_clients if key[0] == owner]:
            self._open_clients.pop(key).left.set()

    async def finish_jobs(self) -> None:
        """Wait for the jobs that are still running, as long as the options allow, except in sessions that others share."""
        with anyio.move_on_after(self.options.grace_seconds):
            async with anyio.create_task_group() as group:
                for shared in self._sessions.values():
                    if self.shared_sessions.withdraw(shared):
                        group.start_soon(shared.session.stop)

    async def close_all(self) -> None:
        """End everything, including jobs that are still running, unless others share their session."""
        while self._sessions:
            await self.shared_sessions.give_back(self._sessions.popitem()[1])

    async def outlast(self, owner: ClientKey) -> None:
        """After the owner's client has gone, wait until its jobs have ended too."""
        for shared in self._sessions.values():
            shared.connected -= 1
        self.leave(owner)
        while self._served[owner.principal]:
            await self._ended.wait()

    async def _open(self, owner: ClientKey, kind: bytes, identity: ClientIdentity, outlived_by_jobs: bool) -> ServedClient:
        mine = [key for key in self._open_clients if key[0] == owner]
        idle = [key for key in mine if not self._open_clients[key].is_busy]
        for key in idle[: max(0, len(mine) - _MAX_KINDS + 1)]:
            self._open_clients.pop(key).left.set()
        is_new = False
        if owner.principal not in self._sessions:
            family, secrets = self.options.family(owner.principal), self.options.secrets
            make = partial(self._make_session, family, secrets)
            found = await self.shared_sessions.borrow(f"{family}/{self.options.conversation}", self.settings, secrets, make)
            self._sessions[owner.principal], is_new = found
        session = self._sessions[owner.principal].session
        client: ServedClient = await self.group.start(self._serve, owner, session, identity, outlived_by_jobs)
        if is_new:
            await client.resume_tasks()
        self._open_clients[owner, kind] = client
        return client

    def _make_session(self, family: str, secrets: Mapping[str, str]) -> Session:
        return Session(
            self.settings,
            name=self.options.conversation,
            family=family,
            # Other proxies of the conversation, or replicas, use the same store.
            shared=bool(self.options.conversation or (self.settings.store and not self.options.shared_family)),
            store=self.store,
            endpoints=self.endpoints,
            notice=False,
            preload=False,
            observers=self.options.observers,
            secrets=secrets,
        )

    def _share(self, principal: str) -> Connect:
        """Return how to connect to servers. Those of other principals, settings or secrets are never shared."""
        if self.shared_servers is None:
            return connect_alone
        secrets = {name: value for name, value in without_session(self.options.secrets).items() if name not in PASSING}
        return partial(self.shared_servers.connect, (principal, self.settings, secrets))

    async def _serve(
        self,
        owner: ClientKey,
        session: Session,
        identity: ClientIdentity,
        outlived_by_jobs: bool,
        *,
        task_status: anyio.abc.TaskStatus[ServedClient],
    ) -> None:
        self._served[owner.principal] += bool(owner.session)
        self._serving += 1
        try:
            async with anyio.create_task_group() as group:
                options = replace(self.options, servers=self.options.servers_of(owner.principal))
                connect = self._share(owner.principal)
                client = ServedClient(options, session, identity, group, self.log, connect, outlived_by_jobs=outlived_by_jobs)
                name = one_line(str(identity.info.get("name") or ""), 80)
                session.note(ConversationOpened(now_ms(), client=name, servers=tuple(client.servers)))
                task_status.started(client)
                await client.wait_until_gone(math.inf if owner.session else self.options.stateless_gone_after)
                self._open_clients = {key: each for key, each in self._open_clients.items() if each is not client}
                limit, requester = self.options.max_job_seconds_alone, client.requester
                with anyio.move_on_after(limit):
                    await requester.wait_for_jobs()
                for job in requester.jobs:
                    if math.isinf(job.may_take):
                        job.time_out(wording.left_too_long(limit))
                await requester.wait_for_jobs()
                group.cancel_scope.cancel()
        finally:
            self._served[owner.principal] -= bool(owner.session)
            self._serving -= 1
            ended, self._ended = self._ended, anyio.Event()
            ended.set()


@asynccontextmanager
async def open_clients(
    settings: Settings,
    options: ProxyOptions,
    endpoints: Mapping[str, Endpoint],
    log: Callable[[str], None],
    sessions: Sessions | None = None,
    servers: SharedServers | None = None,
) -> AsyncGenerator[ServedClients]:
    """Serve clients until this is left. `sessions` and `servers` are those of all proxies in this process."""
    async with anyio.create_task_group() as group:
        store = WaitingStore(open_configured_store(settings), log)
        clients = ServedClients(group, settings, options, endpoints, log, sessions or Sessions(), store, servers)
        group.start_soon(clients.check_store)
        try:
            yield clients
            await clients.finish_jobs()
        finally:
            with anyio.CancelScope(shield=True):
                await clients.close_all()
            group.cancel_scope.cancel()
