"""The hub's clients over HTTP: the token of each says which servers it gets, with which folder and environment."""

from __future__ import annotations

import os
import socket
from collections.abc import Mapping
from pathlib import Path

import anyio
import anyio.abc
import anyio.to_thread

from overspill.cli.hub_tokens import find_hub_clients
from overspill.cli.hubbed import find_refusal
from overspill.cli.program import prepare
from overspill.cli.serving import Prepared
from overspill.cli.settings import endpoints
from overspill.cli.surroundings import Surroundings
from overspill.cli.terminal import inform
from overspill.errors import OverspillError
from overspill.hub.process import Hub, ServedEntry
from overspill.mcp.client.shared_servers import SharedServers
from overspill.mcp.host_configs.entries import SERVERS_VARIABLE
from overspill.mcp.host_configs.hub_clients import HubClient
from overspill.mcp.proxy.guard import Principals
from overspill.mcp.proxy.http import ListenOptions, serve_http
from overspill.mcp.proxy.options import ProxyOptions
from overspill.mcp.proxy.served_clients import ServedClients, open_clients
from overspill.web.server import USED_UP, open_listener

_HOST = "127.0.0.1"
_ADVICE = " If another program has this port, install the hub with another --port, and run overspill wrap --hub-http again."
_SECONDS_BETWEEN_CHECKS = 0.5
_WORDS = ["proxy", "--config-env", SERVERS_VARIABLE, "--set", "repeats=full"]  # conversations share the session of their token


def open_port(port: int) -> socket.socket:
    return open_listener(_HOST, port, _ADVICE)


class _TokenHolder:
    """What is served for one token, as long as its clients or their jobs need it."""

    def __init__(self, stamp: object) -> None:
        self.stamp = stamp
        self.problem: OverspillError | None = None
        self.is_opened, self.has_ended = anyio.Event(), anyio.Event()


class TokenHolders(Principals):
    """The principals of a hub: each has its own servers, session and settings, and may come and go."""

    def __init__(self, hub: Hub) -> None:
        super().__init__(inform, ProxyOptions({}, {}).gone_after, {})
        self._hub = hub
        self._known = find_hub_clients()
        self._stamps: Mapping[str, object] = {}
        self._problem = ""
        self._open: dict[str, _TokenHolder] = {}
        self._group: anyio.abc.TaskGroup

    async def serve(self, listener: socket.socket, stop: anyio.Event) -> None:
        listen = ListenOptions(_HOST, listener.getsockname()[1], ())
        async with anyio.create_task_group() as group:
            self._group = group
            await self._look()
            group.start_soon(self._keep_looking)
            await serve_http(self, listen, listener, stop)
            group.cancel_scope.cancel()

    @property
    def names(self) -> list[str]:
        return list(self._stamps)

    async def open(self, principal: str) -> ServedClients:
        if (holder := self._open.get(principal)) is None:
            holder = self._open[principal] = _TokenHolder(self._stamps.get(principal))
            self._group.start_soon(self._serve_holder, principal, holder)
        await holder.is_opened.wait()
        if (clients := self.served.get(principal)) is None:
            raise holder.problem or OverspillError("The hub cannot serve this token; its log says why.")
        return clients

    async def _keep_looking(self) -> None:
        while True:
            await anyio.sleep(_SECONDS_BETWEEN_CHECKS)
            await self._look()

    async def _look(self) -> None:
        """Note which tokens there are. End what is served for tokens that were revoked or changed, or have no clients."""
        before, self._problem = self._problem, ""
        try:
            self._stamps = await anyio.to_thread.run_sync(self._known.stamps)
        except (OSError, OverspillError) as problem:
            if isinstance(problem, OSError) and problem.errno in USED_UP:
                return  # for want of a descriptor or memory, which says nothing about tokens
            self._stamps = {}
            self._problem = str(problem)
            if self._problem != before:
                inform(f"no token is let in: {problem}")
        for principal, holder in list(self._open.items()):
            is_known, clients = holder.stamp == self._stamps.get(principal), self.served.get(principal)
            if not is_known or not (clients is None or clients.is_used or self.requests[principal]):
                self._end(principal, holder)
            if not is_known:
                self.hang_up(principal)

    def _end(self, principal: str, holder: _TokenHolder) -> None:
        if self._open.get(principal) is holder:
            del self._open[principal]
            self.served.pop(principal, None)
        holder.has_ended.set()

    async def _serve_holder(self, principal: str, holder: _TokenHolder) -> None:
        try:
            client = await anyio.to_thread.run_sync(self._known.read, principal)
            if client is not None:
                with self._hub.counting(ServedEntry(over_http=client.file)) as entry:
                    await self._serve(principal, client, holder, entry)
        except (OSError, OverspillError) as problem:
            holder.problem = OverspillError(str(problem))
        except Exception as problem:  # one client's failure must not affect another
            inform(f"serving a token failed: {type(problem).__name__}")
        finally:
            self._end(principal, holder)
            holder.is_opened.set()

    async def _serve(self, principal: str, client: HubClient, holder: _TokenHolder, entry: ServedEntry) -> None:
        environ = {**os.environ, "PATH": client.path, SERVERS_VARIABLE: client.servers}
        around = Surroundings(environ, Path(client.folder), is_served=True)
        prepared = await anyio.to_thread.run_sync(prepare, _WORDS, around)  # a file may be on a disk that hangs
        if not isinstance(prepared, Prepared):
            raise OverspillError("The hub cannot run the servers of this token; its log says why.")
        if why := find_refusal(prepared):
            raise OverspillError(f"The hub cannot serve this token, because {why}.")
        settings, options, log = prepared.settings, prepared.options, prepared.log
        servers = SharedServers()  # for the conversations of this token
        served = endpoints(settings, environ)
        async with open_clients(settings, options, served, log, servers=servers, principals=[principal]) as found:
            entry.describe = found[principal].describe_servers
            if self._open.get(principal) is holder:  # else the token was revoked meanwhile
                self.served[principal] = found[principal]
            holder.is_opened.set()
            await holder.has_ended.wait()
