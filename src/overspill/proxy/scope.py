"""What one client has to itself: its servers, its session, and what those servers say to it."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Generator, Mapping
from contextlib import asynccontextmanager, contextmanager
from typing import Any

import anyio
import anyio.abc
import mcp_types
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler
from mcp.shared.dispatcher import Outbound
from mcp.shared.exceptions import MCPError
from mcp.shared.subscriptions import SUBSCRIPTION_ID_META_KEY, event_from_wire

from overspill.errors import ServerError
from overspill.mcp_client import Client, Link, Server
from overspill.mcp_client.link import Raw, mapping
from overspill.proxy.catalog import Catalog
from overspill.proxy.eras import fitted, satisfied, wants_input
from overspill.proxy.exchange import Exchange
from overspill.proxy.options import Options
from overspill.proxy.parking import Parking
from overspill.proxy.toolcalls import ToolCalls
from overspill.session import Session

_ASKING = ("elicitation", "sampling", "roots")
_CHANGES = {
    "notifications/tools/list_changed": ("tools", "toolsListChanged"),
    "notifications/prompts/list_changed": ("prompts", "promptsListChanged"),
    "notifications/resources/list_changed": ("resources", "resourcesListChanged"),
}
FIRST_WAIT = 20.0  # seconds a client waits for servers when it says hello; they go on starting after that


class Scope:
    """Entered by `open_scope`. Hears its servers as their peer; `voice` is where its client hears what belongs to no request."""

    def __init__(
        self, options: Options, session: Session, client: Client, group: anyio.abc.TaskGroup, log: Callable[[str], None]
    ) -> None:
        self.options = options
        self.session = session
        self.client = client
        self.voice: Outbound | None = None
        self.servers = {
            name: Server(config, options.environ, client, self, log=log, up=self._up) for name, config in options.servers.items()
        }
        self.catalog = Catalog(self.servers, session, always=options.tools_always)
        self.calls = ToolCalls(session, self.catalog, self.forward, dry_run=options.dry_run, log=log)
        self.parking = Parking(group)
        self._bus = InMemorySubscriptionBus()
        self.listen = ListenHandler(self._bus)
        self._group = group
        self._flights: dict[str, list[Exchange]] = {name: [] for name in self.servers}
        self._level: str | None = None
        self._subscribed: dict[str, set[str]] = {name: set() for name in self.servers}
        self._offered = False
        for server in self.servers.values():
            group.start_soon(server.run)

    @property
    def only(self) -> Server | None:
        """The one server, where there is but one."""
        return None if self.options.several else next(iter(self.servers.values()))

    @property
    def asks(self) -> bool:
        """Whether its client can be asked anything by a server."""
        return any(name in self.client.capabilities for name in _ASKING)

    async def links(self) -> dict[str, Link | ServerError]:
        """Every server's connection, or why there is none yet."""
        found: dict[str, Link | ServerError] = {}

        async def one(server: Server) -> None:
            try:
                found[server.name] = await server.link(FIRST_WAIT)
            except ServerError as problem:
                found[server.name] = problem

        async with anyio.create_task_group() as group:
            for server in self.servers.values():
                group.start_soon(one, server)
        return {name: found[name] for name in self.servers}

    async def forward(self, exchange: Exchange, server: Server, method: str, params: Raw) -> Raw:
        link = await server.link()
        if exchange.log_level is not None and not link.greeting.modern:
            await self.set_level(exchange.log_level, link)
        if self._level is not None and link.greeting.modern and not exchange.modern:
            params = {**params, "_meta": {mcp_types.LOG_LEVEL_META_KEY: self._level, **params.get("_meta", {})}}

        async def ask(given: Raw) -> Raw:
            progress = exchange.progress if "progressToken" in exchange.meta else None
            return await link.request(method, given, progress=progress)

        with self._in_flight(server.name, exchange):
            result = await ask(params)
            if wants_input(result) and not exchange.modern:
                result = await satisfied(result, params, ask=exchange.ask, again=ask)
        return fitted(result, method, modern=exchange.modern, greeting=link.greeting)

    async def set_level(self, level: str, link: Link) -> None:
        """For a server of the older protocol; a newer one is told with each request."""
        self._level = level
        if not link.greeting.modern and "logging" in link.greeting.capabilities:
            await link.request("logging/setLevel", {"level": level})

    async def subscribe(self, server: Server, uri: str, *, on: bool = True) -> Raw:
        link = await server.link()
        subscribed = self._subscribed[server.name]
        subscribed.add(uri) if on else subscribed.discard(uri)
        if not link.greeting.modern:
            return await link.request("resources/subscribe" if on else "resources/unsubscribe", {"uri": uri})
        if on:
            self._group.start_soon(self._hear, link, {"resourceSubscriptions": [uri]})
        return {}

    async def offer(self) -> None:
        """Tell the client, once, that there are tools now to read what is kept."""
        if not self._offered and self.catalog.ours():
            self._offered = True
            if not self.options.tools_always:
                await self._say("notifications/tools/list_changed", {})

    async def requested(self, server: str, method: str, params: Raw) -> Raw:
        if method == "ping":
            return {}
        flights = self._flights[server]
        if flights:
            return await flights[-1].ask(method, params)
        if self.voice is not None:
            return await self.voice.send_raw_request(method, params)
        raise MCPError(mcp_types.INVALID_REQUEST, "The client can be asked only while one of its requests is being answered.")

    async def notified(self, server: str, method: str, params: Raw) -> None:
        if method == "notifications/tools/list_changed":
            self.catalog.forget(server)
        if method == "notifications/message" and (flights := self._flights[server]):
            if not flights[-1].modern or flights[-1].log_level is not None:
                await flights[-1].notify(method, params)
        elif method != "notifications/subscriptions/acknowledged":
            await self._say(method, params)

    async def hear_from_client(self, method: str, params: Raw) -> None:
        """Servers that are up hear it; to the others it is no longer of use when they are."""
        for server in self.servers.values():
            try:
                link = await server.link(0)
            except ServerError:
                continue
            if not link.greeting.modern:
                await link.notify(method, params or None)

    async def _say(self, method: str, params: Raw) -> None:
        """To the client, where it hears what belongs to no request: its own channel, or the streams it listens on."""
        meta = {key: value for key, value in params.get("_meta", {}).items() if key != SUBSCRIPTION_ID_META_KEY}
        params = {**{key: value for key, value in params.items() if key != "_meta"}, **({"_meta": meta} if meta else {})}
        if self.voice is not None:
            await self.voice.notify(method, params or None)
        if (event := event_from_wire(method, params)) is not None:
            await self._bus.publish(event)

    async def _up(self, link: Link) -> None:
        """Whatever a server knew of its client before it was started again."""
        server = self.servers[link.config.name]
        if self._level is not None:
            await self.set_level(self._level, link)
        for uri in self._subscribed[server.name]:
            if not link.greeting.modern:
                await link.request("resources/subscribe", {"uri": uri})
        if link.greeting.modern:
            wanted = _listenable(link.greeting.capabilities) | _uris(self._subscribed[server.name])
            if wanted:
                self._group.start_soon(self._hear, link, wanted)
        if server.starts > 1:
            self.catalog.forget(server.name)
            for method, (capability, _) in _CHANGES.items():
                if capability in link.greeting.capabilities:
                    await self._say(method, {})

    async def _hear(self, link: Link, wanted: Raw) -> None:
        """As long as the link is up. A server that does not offer it is simply not heard."""
        try:
            await link.request("subscriptions/listen", {"notifications": wanted})
        except (MCPError, ServerError):
            return

    @contextmanager
    def _in_flight(self, server: str, exchange: Exchange) -> Generator[None]:
        self._flights[server].append(exchange)
        try:
            yield
        finally:
            self._flights[server].remove(exchange)


def _listenable(capabilities: Mapping[str, Any]) -> Raw:
    return {flag: True for capability, flag in _CHANGES.values() if mapping(capabilities.get(capability)).get("listChanged")}


def _uris(uris: set[str]) -> Raw:
    return {"resourceSubscriptions": sorted(uris)} if uris else {}


@asynccontextmanager
async def open_scope(options: Options, session: Session, client: Client, log: Callable[[str], None]) -> AsyncGenerator[Scope]:
    async with anyio.create_task_group() as group:
        try:
            yield Scope(options, session, client, group, log)
        finally:
            group.cancel_scope.cancel()
