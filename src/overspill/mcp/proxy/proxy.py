"""Every request of a client: answered here, or handed to the server that can. What it does not know it hands on."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import TypeAlias

import mcp_types
from mcp.server.context import CallNext, HandlerResult
from mcp.shared.exceptions import MCPError
from mcp.shared.inbound import validate_mcp_param_headers
from mcp_types.methods import CLIENT_REQUESTS, SPEC_CLIENT_METHODS

from overspill.errors import ServerError
from overspill.mcp.client import Client, Server
from overspill.mcp.client.connection import Raw, mapping
from overspill.mcp.proxy import handshake, outputs
from overspill.mcp.proxy.ask_servers import each, has, list_all, reach
from overspill.mcp.proxy.client_request import Context, Exchange, Voice
from overspill.mcp.proxy.served_client import ClientScope
from overspill.mcp.proxy.versions import INPUT_METHODS, adapt_result

FindScope: TypeAlias = Callable[[Exchange, Client], Awaitable[ClientScope]]
_PROBED = 5.0  # seconds: the official client gives the first question 10, our own start included, and gives up at the second try
_LISTS = {"prompts/list": "prompts", "resources/list": "resources", "resources/templates/list": "resourceTemplates"}


class Proxy:
    """Middleware round an empty server: the SDK speaks the protocol, this decides what is said."""

    def __init__(self, find_scope: FindScope) -> None:
        self._find_scope = find_scope

    async def __call__(self, ctx: Context, call_next: CallNext) -> HandlerResult:
        exchange = Exchange(ctx)
        if ctx.request_id is None:
            await call_next(ctx)
            await self._on_notification(exchange)
            return None
        if not self._may_speak(exchange):
            return await call_next(ctx)
        scope = await self._find_scope(exchange, _client(exchange))
        try:
            with scope.answering():
                return exchange.sendable(await Routes(scope).answer(exchange, ctx))
        except MCPError as refusal:
            said = [refusal.message, refusal.data]
            if (spoken := exchange.sendable(said)) is said:
                raise
            raise MCPError(refusal.code, *spoken) from None
        except ServerError as problem:
            raise MCPError(mcp_types.INTERNAL_ERROR, exchange.sendable(str(problem))) from None
        finally:
            exchange.over |= exchange.parked is None

    async def _on_notification(self, exchange: Exchange) -> None:
        # A client of the newer protocol notifies of nothing but what it cancels, and of that the SDK takes care.
        if exchange.modern or exchange.method == "notifications/cancelled" or not self._may_speak(exchange):
            return
        scope = await self._find_scope(exchange, _client(exchange))
        scope.greeted.set()
        if exchange.method != "notifications/initialized":
            await scope.hear_from_client(exchange.method, exchange.params)

    def _may_speak(self, exchange: Exchange) -> bool:
        """Before it has said hello, a client of the older protocol gets the SDK's own answers; whoever asks for what only the
        other protocol has gets them too."""
        if exchange.method in SPEC_CLIENT_METHODS and (exchange.method, exchange.version) not in CLIENT_REQUESTS:
            return False
        return exchange.modern or exchange.method == "initialize" or exchange.connection.initialize_accepted


def _client(exchange: Exchange) -> Client:
    if exchange.method == "initialize":
        given = exchange.params
        return Client(given.get("clientInfo") or {}, given.get("capabilities") or {})
    meta = exchange.meta
    info = meta.get(mcp_types.CLIENT_INFO_META_KEY) or {"name": "unknown", "version": ""}
    return Client(info, meta.get(mcp_types.CLIENT_CAPABILITIES_META_KEY) or {}, modern=exchange.modern)


class Routes:
    def __init__(self, scope: ClientScope) -> None:
        self._scope = scope

    async def answer(self, exchange: Exchange, ctx: Context) -> Raw:
        scope, method, params = self._scope, exchange.method, exchange.params
        if method != "initialize":
            scope.greeted.set()
        match method:
            case "initialize":
                scope.voice = Voice(exchange)
                return handshake.initialize_result(params, await scope.links(scope.options.first_wait))
            case "server/discover":
                return handshake.discover_result(await scope.links(min(scope.options.first_wait, _PROBED)))
            case "ping" if not exchange.modern:
                return {}
            case "tools/list":
                return await self._tools(exchange)
            case "tools/call":
                return await self._call(exchange)
            case "resources/read" if outputs.is_ours(params.get("uri")):
                return self._ours(exchange, await outputs.read(scope.session, params["uri"]))
            case "logging/setLevel":
                return await self._level(exchange)
            case "resources/subscribe" | "resources/unsubscribe":
                server = await self._owner(exchange)
                return await scope.subscriptions.set(server, str(params.get("uri")), on=method == "resources/subscribe")
            case "subscriptions/listen":
                return await self._listen(exchange, ctx)
            case _ if method in _LISTS:
                return await self._list(exchange, _LISTS[method])
            case _:
                return await self._hand_on(exchange)

    def _ours(self, exchange: Exchange, result: Raw) -> Raw:
        return adapt_result(result, exchange.method, modern=exchange.modern)

    async def _tools(self, exchange: Exchange) -> Raw:
        catalog, only = self._scope.catalog, self._scope.only
        if only is None:
            return self._ours(exchange, {"tools": await catalog.list()})
        try:
            page = await self._list_of(exchange, only, "tools")
            result = await catalog.page(only, page, first="cursor" not in exchange.params)
        except ServerError:
            return self._ours(exchange, {"tools": await catalog.list()})
        # Ours come and go, and for one client only, so nobody shall hold on to the list.
        return {**result, "ttlMs": 0, "cacheScope": "private"} if exchange.modern else result

    async def _call(self, exchange: Exchange) -> Raw:
        scope, name = self._scope, exchange.params.get("name")
        if not isinstance(name, str):
            return await self._hand_on(exchange)
        own = await scope.catalog.own(name)
        if own is not None:
            return self._ours(exchange, await scope.calls.ours(own, exchange.params.get("arguments")))
        found = scope.catalog.find(name)
        if found is None or not found[0].config.allows(found[1]):
            raise MCPError(mcp_types.INVALID_PARAMS, f"Unknown tool: {name}")
        server, theirs = found
        await self._check_headers(exchange, server, theirs)
        result = await self._with_input(exchange, server, lambda: scope.calls.theirs(exchange, server, theirs))
        await scope.offer()
        return result if "resultType" in result else self._ours(exchange, result)

    async def _check_headers(self, exchange: Exchange, server: Server, name: str) -> None:
        """Whoever stands before us may have decided by the headers, so they must say what the arguments say."""
        if not exchange.modern or exchange.request is None:
            return
        schema = (await self._scope.catalog.describe(server, name)).get("inputSchema")
        arguments = mapping(exchange.params.get("arguments"))
        if schema and (wrong := validate_mcp_param_headers(schema, arguments, exchange.request.headers)):
            raise MCPError(wrong.code, wrong.message)

    async def _level(self, exchange: Exchange) -> Raw:
        level = str(exchange.params.get("level"))
        for server in self._scope.servers.values():
            with suppress(ServerError):  # it is told when it is up
                await self._scope.set_level(level, await reach(server))
        self._scope.level = level
        return {}

    async def _listen(self, exchange: Exchange, ctx: Context) -> Raw:
        wanted = mcp_types.SubscriptionsListenRequestParams.model_validate(exchange.params, by_name=False)
        uris = wanted.notifications.resource_subscriptions or []
        async with self._scope.subscriptions.listen([(await self._server_of(uri), uri) for uri in uris]) as heard:
            wanted.notifications.resource_subscriptions = heard
            result = await self._scope.listen(ctx, wanted)
        return result.model_dump(by_alias=True, mode="json", exclude_none=True)

    async def _list(self, exchange: Exchange, key: str) -> Raw:
        scope = self._scope
        if scope.only is not None:
            result = await self._list_of(exchange, scope.only, key)
        else:
            found = await each(scope.servers.values(), lambda server: list_all(server, exchange.method, key))
            every = [
                self._prefix(server, entry) if key == "prompts" else entry
                for server in scope.servers
                for entry in found.get(server, [])
            ]
            result = self._ours(exchange, {key: every})
        if key == "resources" and scope.options.list_outputs and "nextCursor" not in result:
            result = {**result, key: [*result.get(key, []), *map(outputs.describe, scope.session.kept())]}
        return result

    async def _list_of(self, exchange: Exchange, server: Server, key: str) -> Raw:
        if key != "prompts" and not await has(server, exchange.method):
            return self._ours(exchange, {key: []})  # we announce tools and resources for it
        return await self._scope.forward(exchange, server, exchange.method, exchange.params)

    def _prefix(self, server: str, entry: Raw) -> Raw:
        return {**entry, "name": self._scope.catalog.public_name(server, str(entry.get("name")))}

    async def _hand_on(self, exchange: Exchange) -> Raw:
        server = await self._owner(exchange)
        params = self._unprefix(server, exchange.params)
        work = lambda: self._scope.forward(exchange, server, exchange.method, params)  # noqa: E731
        return await self._with_input(exchange, server, work)

    async def _owner(self, exchange: Exchange) -> Server:
        """The server a request is for."""
        scope, params = self._scope, exchange.params
        if scope.only is not None:
            return scope.only
        reference = mapping(params.get("ref"))
        name = params.get("name") or reference.get("name")
        if isinstance(name, str) and (found := scope.catalog.find(name)):
            return found[0]
        uri = params.get("uri") or reference.get("uri")
        if isinstance(uri, str):
            return await self._server_of(uri)
        raise MCPError(mcp_types.METHOD_NOT_FOUND, "Method not found", exchange.method)

    async def _server_of(self, uri: str) -> Server:
        """Whichever lists it, or has a template that could make it; the first that has resources otherwise."""
        if self._scope.only is not None:
            return self._scope.only

        async def lists(server: Server) -> bool:
            if uri in [entry.get("uri") for entry in await list_all(server, "resources/list", "resources")]:
                return True
            entries = await list_all(server, "resources/templates/list", "resourceTemplates")
            templates = [str(entry.get("uriTemplate", "")) for entry in entries]
            return uri in templates or any(uri.startswith(start.split("{")[0]) for start in templates if "{" in start)

        servers = self._scope.servers
        found = await each(servers.values(), lists)
        able = await each(servers.values(), lambda server: has(server, "resources"))
        candidates = [name for name in servers if found.get(name)] or [name for name in servers if able.get(name)]
        if not candidates:
            raise MCPError(mcp_types.INVALID_PARAMS, f"No server has the resource {uri}.")
        return servers[candidates[0]]

    def _unprefix(self, server: Server, params: Raw) -> Raw:
        prefix = self._scope.catalog.public_name(server.name, "")
        if isinstance(params.get("name"), str):
            params = {**params, "name": params["name"].removeprefix(prefix)}
        reference = mapping(params.get("ref"))
        if isinstance(reference.get("name"), str):
            params = {**params, "ref": {**reference, "name": reference["name"].removeprefix(prefix)}}
        return params

    async def _with_input(self, exchange: Exchange, server: Server, work: Callable[[], Awaitable[Raw]]) -> Raw:
        """Where the server may ask the client something, and the client can be asked only between two calls."""
        scope = self._scope
        if not exchange.modern or not scope.asks or exchange.method not in INPUT_METHODS:
            return await work()
        if (await reach(server)).greeting.modern:
            return await work()
        if "requestState" in exchange.params:
            return await scope.parking.go_on(exchange)
        return await scope.parking.begin(exchange, work)
