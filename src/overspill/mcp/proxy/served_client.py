"""What one client has to itself: its servers, its session, and what those servers say to it."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import asynccontextmanager, contextmanager, suppress

import anyio
import anyio.abc
import mcp_types
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler
from mcp.shared.exceptions import MCPError
from mcp.shared.subscriptions import SUBSCRIPTION_ID_META_KEY, event_from_wire

from overspill.errors import ServerError, Unheard
from overspill.mcp.client import Client, Link, Server
from overspill.mcp.client.connection import Raw, mapping
from overspill.mcp.proxy.ask_servers import reach
from overspill.mcp.proxy.catalog import Catalog
from overspill.mcp.proxy.client_request import Exchange, Voice
from overspill.mcp.proxy.options import Options
from overspill.mcp.proxy.paused_calls import Parking
from overspill.mcp.proxy.subscriptions import CHANGES, Subscriptions
from overspill.mcp.proxy.tool_calls import ToolCalls
from overspill.mcp.proxy.versions import adapt_result, ask_for_input, wants_input
from overspill.session.session import Session

_ASKING = ("elicitation", "sampling", "roots")


class ClientScope:
    """Entered by `open_scope`. Hears its servers as their peer; `voice` is where its client hears what belongs to no request."""

    def __init__(
        self, options: Options, session: Session, client: Client, group: anyio.abc.TaskGroup, log: Callable[[str], None]
    ) -> None:
        self.options = options
        self.session = session
        self.client = client
        self.voice: Voice | None = None
        self.servers = {
            name: Server(config, options.environ, client, self, log=log, up=self._up) for name, config in options.servers.items()
        }
        self.catalog = Catalog(self.servers, session, always=options.tools_always)
        self.calls = ToolCalls(session, self.catalog, self.forward, dry_run=options.dry_run, log=log)
        self.parking = Parking(group)
        self.subscriptions = Subscriptions(group)
        self.level: str | None = None
        """Of messages that a client of the older protocol wants to hear."""
        self.greeted = anyio.Event()
        """Set once the client knows what it was greeted with; it is told and asked nothing before."""
        self._bus = InMemorySubscriptionBus()
        self.listen = ListenHandler(self._bus)
        self._flights: dict[str, list[Exchange]] = {name: [] for name in self.servers}
        self._missed: set[str] = set()
        """Servers that were not there when the client was greeted."""
        self._answering = 0
        self._levels: dict[Link, str] = {}
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

    @property
    def busy(self) -> bool:
        """Whether anybody waits for something here, or will come back for it."""
        return bool(self._answering or self.parking.waiting or any(self._flights.values()))

    @contextmanager
    def answering(self) -> Generator[None]:
        self._answering += 1
        try:
            yield
        finally:
            self._answering -= 1

    async def links(self, within: float) -> dict[str, Link | ServerError]:
        """Every server's connection, or why there is none yet."""
        found: dict[str, Link | ServerError] = {}

        async def one(server: Server) -> None:
            try:
                found[server.name] = await server.link(within)
            except ServerError as problem:
                self._missed.add(server.name)
                found[server.name] = problem

        async with anyio.create_task_group() as group:
            for server in self.servers.values():
                group.start_soon(one, server)
        return {name: found[name] for name in self.servers}

    async def forward(self, exchange: Exchange, server: Server, method: str, params: Raw) -> Raw:
        try:
            return await self._forward(exchange, server, method, params)
        except Unheard:  # it never arrived, so asking again does nothing twice
            return await self._forward(exchange, server, method, params)

    async def _forward(self, exchange: Exchange, server: Server, method: str, params: Raw) -> Raw:
        link = await reach(server)
        if exchange.log_level is not None and self._levels.get(link) != exchange.log_level:
            with suppress(MCPError):  # a level it does not take; the request itself may well be answered
                await self.set_level(exchange.log_level, link)
        if self.level is not None and link.greeting.modern and not exchange.modern:
            params = {**params, "_meta": {mcp_types.LOG_LEVEL_META_KEY: self.level, **mapping(params.get("_meta"))}}

        async def ask(given: Raw) -> Raw:
            progress = exchange.progress if "progressToken" in exchange.meta else None
            return await link.request(method, given, progress=progress)

        with self._in_flight(server.name, exchange):
            result = await ask(params)
            if wants_input(result) and not exchange.modern:
                result = await ask_for_input(result, params, ask=exchange.ask, again=ask)
        return adapt_result(result, method, modern=exchange.modern, greeting=link.greeting)

    async def set_level(self, level: str, link: Link) -> None:
        """For a server of the older protocol; a newer one is told with each request."""
        if not link.greeting.modern and "logging" in link.greeting.capabilities:
            await link.request("logging/setLevel", {"level": level})
            self._levels = {link: level} | {each: known for each, known in self._levels.items() if not each.ended.is_set()}

    async def offer(self) -> None:
        """Tell the client, once, that there are tools now to read what is kept."""
        if not self._offered and self.catalog.ours():
            self._offered = True
            if not self.options.tools_always:
                await self._say("notifications/tools/list_changed", {})

    async def on_request(self, server: str, method: str, params: Raw) -> Raw:
        if method == "ping":
            return {}
        # Of several requests, the newest is the likeliest to be what the server asks for.
        for exchange in reversed(self._flights[server]):
            if exchange.can_ask:
                return await exchange.ask(method, params)
        if self.voice is not None:
            await self.greeted.wait()
            return await self.voice.ask(method, params)
        raise MCPError(mcp_types.INVALID_REQUEST, "The client can be asked only while one of its requests is being answered.")

    async def on_notification(self, server: str, method: str, params: Raw) -> None:
        if method == "notifications/subscriptions/acknowledged":
            return
        if event_from_wire(method, params) is not None:
            await self._say(method, params)
            return
        exchange = next((each for each in reversed(self._flights[server]) if not each.over), None)
        if exchange is None:
            await self._say(method, params)
        elif method != "notifications/message" or not exchange.modern or exchange.log_level is not None:
            await exchange.notify(method, params or None)

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
        meta = {key: value for key, value in mapping(params.get("_meta")).items() if key != SUBSCRIPTION_ID_META_KEY}
        params = {**{key: value for key, value in params.items() if key != "_meta"}, **({"_meta": meta} if meta else {})}
        if self.voice is not None:
            await self.greeted.wait()
            await self.voice.notify(method, params)
        if (event := event_from_wire(method, params)) is not None:
            await self._bus.publish(event)

    async def _up(self, link: Link) -> None:
        """Whatever a server knew of its client before it was started again, and what its client could not know of it."""
        server = self.servers[link.config.name]
        if self.level is not None:
            with suppress(MCPError):
                await self.set_level(self.level, link)
        await self.subscriptions.restore(link)
        if server.starts > 1 or server.name in self._missed:
            for capability, (method, _) in CHANGES.items():
                if capability in link.greeting.capabilities:
                    await self._say(method, {})

    @contextmanager
    def _in_flight(self, server: str, exchange: Exchange) -> Generator[None]:
        self._flights[server].append(exchange)
        try:
            yield
        finally:
            self._flights[server].remove(exchange)


@asynccontextmanager
async def open_scope(
    options: Options, session: Session, client: Client, log: Callable[[str], None]
) -> AsyncGenerator[ClientScope]:
    async with anyio.create_task_group() as group:
        try:
            yield ClientScope(options, session, client, group, log)
        finally:
            group.cancel_scope.cancel()
