"""The clients of one principal: one per session of the older protocol; in the newer, one per kind of client.

A principal owns outputs and jobs, so all of its clients share one session. Calls that run in the background outlive their client:
its servers run until those calls have ended.
"""

from __future__ import annotations

import math
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import AbstractContextManager, asynccontextmanager, nullcontext
from functools import partial
from typing import Any

import anyio
import anyio.abc
import anyio.to_thread
from msgspec import Struct, field

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

LOCAL = "local"
"""The principal of a proxy that serves the one client that started it."""
_MAX_KINDS = 8  # of clients kept for a principal of the newer protocol; a client that was dropped starts anew when it returns


class ServedClients(Struct, eq=False):
    """Each client is served in a separate task, from its first request on. The newer protocol has no sessions."""

    principal: str
    group: anyio.abc.TaskGroup
    settings: Settings
    options: ProxyOptions
    endpoints: Mapping[str, Endpoint]
    log: Callable[[str], None]
    shared_sessions: Sessions
    store: WaitingStore
    shared_servers: SharedServers | None = None
    sessions: int = 0
    """How many sessions of the older protocol are open, including those whose jobs are still running."""
    _open_clients: dict[tuple[str, bytes], ServedClient] = {}
    _shared: SharedSession | None = None
    _serving: int = 0
    _ended: anyio.Event = field(default_factory=anyio.Event)
    _opening: anyio.Lock = field(default_factory=anyio.Lock)

    async def find(self, session: str, identity: ClientIdentity, *, outlived_by_jobs: bool = True) -> ServedClient:
        """Find or open a client. `outlived_by_jobs`: whether its jobs keep running when the client has gone."""
        key = session, b"" if session else dumps((identity.info, identity.capabilities))
        client = self._open_clients.pop(key, None)
        if client is not None:
            self._open_clients[key] = client  # moves it to the end: the order is that of the last use
            return client
        async with self._opening:
            return self._open_clients.get(key) or await self._open(key, identity, outlived_by_jobs)

    async def check_store(self) -> None:
        """If nothing can be stored, log why before the first client finds out, and even if it leaves before that."""
        with anyio.CancelScope(shield=True):
            await anyio.to_thread.run_sync(self.store.check)

    def describe_servers(self) -> list[dict[str, Any]]:
        servers = [server for client in self._open_clients.values() for server in client.servers.values()]
        return [{"name": server.name, "pid": server.pid, "state": server.state} for server in servers]

    @property
    def is_used(self) -> bool:
        """Whether any client is served, or its jobs are running."""
        return self._serving > 0

    def has(self, session: str) -> bool:
        return (session, b"") in self._open_clients

    def connected(self, session: str) -> AbstractContextManager[None]:
        client = self._open_clients.get((session, b""))
        return client.connected() if client else nullcontext()

    def leave(self, session: str) -> None:
        for key in [key for key in self._open_clients if key[0] == session]:
            self._open_clients.pop(key).left.set()

    async def finish_jobs(self) -> None:
        """Wait for the jobs that are still running, as long as the options allow, except in a session that others share."""
        if self._shared is not None and self.shared_sessions.withdraw(self._shared):
            with anyio.move_on_after(self.options.grace_seconds):
                await self._shared.session.stop()

    async def close(self) -> None:
        """End everything, including jobs that are still running, unless others share their session."""
        if self._shared is not None:
            await self.shared_sessions.give_back(self._shared)

    async def outlast(self, session: str) -> None:
        """After the client has gone, wait until its jobs have ended too."""
        if self._shared is not None:
            self._shared.connected -= 1
        self.leave(session)
        while self.sessions:
            await self._ended.wait()

    async def _open(self, key: tuple[str, bytes], identity: ClientIdentity, outlived_by_jobs: bool) -> ServedClient:
        mine = [each for each in self._open_clients if each[0] == key[0]]
        idle = [each for each in mine if not self._open_clients[each].is_busy]
        for each in idle[: max(0, len(mine) - _MAX_KINDS + 1)]:
            self._open_clients.pop(each).left.set()
        is_new = False
        if self._shared is None:
            family, secrets = self.options.family(self.principal), self.options.secrets
            make = partial(self._make_session, family, secrets)
            found = await self.shared_sessions.borrow(f"{family}/{self.options.conversation}", self.settings, secrets, make)
            self._shared, is_new = found
        client: ServedClient = await self.group.start(self._serve, key[0], self._shared.session, identity, outlived_by_jobs)
        if is_new:
            await client.resume_tasks()
        self._open_clients[key] = client
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

    def _share(self) -> Connect:
        """Return how to connect to servers. Those of other principals, settings or secrets are never shared."""
        if self.shared_servers is None:
            return connect_alone
        secrets = {name: value for name, value in without_session(self.options.secrets).items() if name not in PASSING}
        return partial(self.shared_servers.connect, (self.principal, self.settings, secrets))

    async def _serve(
        self,
        name: str,
        session: Session,
        identity: ClientIdentity,
        outlived_by_jobs: bool,
        *,
        task_status: anyio.abc.TaskStatus[ServedClient],
    ) -> None:
        self.sessions += bool(name)
        self._serving += 1
        try:
            async with anyio.create_task_group() as group:
                connect = self._share()
                client = ServedClient(
                    self.options, session, identity, group, self.log, connect, outlived_by_jobs=outlived_by_jobs
                )
                shown = one_line(str(identity.info.get("name") or ""), 80)
                session.note(ConversationOpened(now_ms(), client=shown, servers=tuple(client.servers)))
                task_status.started(client)
                try:
                    await client.wait_until_gone(math.inf if name else self.options.stateless_gone_after)
                finally:
                    client.tool_search.stop_learning()
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
            self.sessions -= bool(name)
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
    *,
    principals: Sequence[str] = (LOCAL,),
) -> AsyncGenerator[dict[str, ServedClients]]:
    """Serve clients until this is left, by principal. `sessions` and `servers` are those of all proxies in this process."""
    async with anyio.create_task_group() as group:
        store, shared = WaitingStore(open_configured_store(settings), log), sessions or Sessions()
        clients = {
            each: ServedClients(each, group, settings, options.of(each), endpoints, log, shared, store, servers)
            for each in principals
        }
        group.start_soon(clients[principals[0]].check_store)
        try:
            yield clients
            async with anyio.create_task_group() as ending:
                for each in clients.values():
                    ending.start_soon(each.finish_jobs)
        finally:
            with anyio.CancelScope(shield=True):
                for each in clients.values():
                    await each.close()
            group.cancel_scope.cancel()
