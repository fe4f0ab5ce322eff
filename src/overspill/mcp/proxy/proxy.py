"""Answer each request of a client here, or forward it to the right server. Unknown requests are forwarded too, and measured."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any, TypeAlias

import mcp_types
from mcp.server.context import CallNext, HandlerResult
from mcp.server.lowlevel.server import Server as Protocol
from mcp.shared.exceptions import MCPError
from mcp.shared.inbound import validate_mcp_param_headers
from mcp_types.methods import CLIENT_REQUESTS, INPUT_REQUIRED_METHODS, SPEC_CLIENT_METHODS

from overspill.errors import OverspillError, ServerError
from overspill.mcp.client.connection import ClientIdentity, Raw, as_mapping
from overspill.mcp.client.handshake import merge_freshness
from overspill.mcp.client.server import Server
from overspill.mcp.client.tasks import knows_tasks
from overspill.mcp.proxy import outputs
from overspill.mcp.proxy.catalog import ask_each
from overspill.mcp.proxy.client_request import ClientRequest, Context
from overspill.mcp.proxy.served_client import ServedClient
from overspill.mcp.proxy.versions import ROUTED_IN, adapt_result, discover_result, initialize_result, offers_tasks, require_tasks
from overspill.record.logs import carry_trace
from overspill.tool_search.search import SEARCH_TOOLS

FindClient: TypeAlias = Callable[[ClientRequest, ClientIdentity], Awaitable[ServedClient]]
_DISCOVER_WAIT = 5.0  # seconds; the official client waits 10 for its first answer, including the start of the proxy
_LIST_KEYS = {"prompts/list": "prompts", "resources/list": "resources", "resources/templates/list": "resourceTemplates"}


def build_protocol_server(find_client: FindClient) -> Protocol[Any]:
    """An empty server of the SDK, which speaks the protocol, with middleware that decides what to answer."""

    async def answer(ctx: Context, call_next: CallNext) -> HandlerResult:
        request = ClientRequest(ctx)
        if ctx.request_id is None:
            await call_next(ctx)
            # A client of the newer protocol notifies only of cancellations, and the SDK handles those.
            if not request.is_modern and request.method != "notifications/cancelled" and _may_speak(request):
                client = await find_client(request, _identify(request))
                client.greeted.set()
                if request.method != "notifications/initialized":
                    await client.notify_servers(request.method, request.params)
            return None
        if not _may_speak(request):
            return await call_next(ctx)
        client = await find_client(request, _identify(request))
        try:
            with client.answering():
                result = await RequestRouter(client).answer(request, ctx)
                return request.make_sendable(await client.answers.hide(request.method, result))
        except MCPError as error:
            refusal = await client.answers.shorten(error, request)
            raise MCPError(refusal.code, *request.make_sendable([refusal.message, refusal.data])) from None
        except OverspillError as problem:
            raise MCPError(mcp_types.INTERNAL_ERROR, request.make_sendable(str(problem))) from None
        finally:
            request.is_answered |= request.ask_later is None

    server: Protocol[Any] = Protocol("overspill")
    server.middleware = [answer]
    return server


def _may_speak(request: ClientRequest) -> bool:
    """Whether the proxy answers. Before the handshake, and for methods of the other protocol, the SDK answers."""
    if request.method in SPEC_CLIENT_METHODS and (request.method, request.version) not in CLIENT_REQUESTS:
        return False
    return request.is_modern or request.method == "initialize" or request.connection.initialize_accepted


def _identify(request: ClientRequest) -> ClientIdentity:
    if request.method == "initialize":
        params = request.params
        return ClientIdentity(params.get("clientInfo") or {}, params.get("capabilities") or {})
    meta = request.meta
    info = meta.get(mcp_types.CLIENT_INFO_META_KEY) or {"name": "unknown", "version": ""}
    return ClientIdentity(info, meta.get(mcp_types.CLIENT_CAPABILITIES_META_KEY) or {}, is_modern=request.is_modern)


class RequestRouter:
    def __init__(self, client: ServedClient) -> None:
        self._client = client

    async def answer(self, request: ClientRequest, ctx: Context) -> Raw:
        client, method, params = self._client, request.method, request.params
        if method != "initialize":
            client.greeted.set()
        if method.startswith("tasks/"):
            tasks = client.tasks if request.is_modern else client.routed_tasks
            answer = await tasks.answer(request)
            await client.announce_tools()
            return self._adapt(request, answer)
        match method:
            case "initialize":
                client.channel = request
                result = initialize_result(params, await client.find_handshakes(client.options.first_wait))
                client.catalog.routes_tasks = "tasks" in result["capabilities"]
                return result
            case "server/discover":
                return discover_result(await client.find_handshakes(min(client.options.first_wait, _DISCOVER_WAIT)))
            case "ping" if not request.is_modern:
                return {}
            case "tools/list":
                return await self._list_tools(request)
            case "tools/call":
                with carry_trace(request.meta):
                    return await self._call_tool(request)
            case "resources/read" if outputs.is_output_uri(params.get("uri")):
                return await self._read_output(request)
            case "logging/setLevel":
                level = str(params.get("level"))
                for server in [each for each in client.servers.values() if not each.rest.is_on]:
                    with suppress(ServerError):  # a server that is down gets the level when it is up
                        await client.set_level(level, await server.connect())
                client.level = level
                return {}
            case "resources/subscribe" | "resources/unsubscribe":
                server = await self._find_owner(request)
                result = await client.subscriptions.set(server, str(params.get("uri")), on=method == "resources/subscribe")
                return await client.answers.gate(request, server.name, result)
            case "subscriptions/listen":
                return await self._listen(request, ctx)
            case _ if method in _LIST_KEYS:
                return await self._list(request, _LIST_KEYS[method])
            case _:
                return await self._forward(request)

    def _adapt(self, request: ClientRequest, result: Raw) -> Raw:
        return adapt_result(result, request.method, modern=request.is_modern)

    async def _list_tools(self, request: ClientRequest) -> Raw:
        search = self._client.tool_search
        if search.offered is None:
            result = await self._list_all_tools(request)
            is_whole, was_decided = "nextCursor" not in result, search.is_decided or "cursor" in request.params
            if was_decided or await search.decide(has_listed=is_whole) is None:
                # To decide, the catalog has listed all pages. Now it follows the client's pages again.
                return result if is_whole or was_decided else await self._list_all_tools(request)
        return self._adapt(request, {"tools": search.offered})

    async def _list_all_tools(self, request: ClientRequest) -> Raw:
        catalog, only = self._client.catalog, self._client.only_server
        if only is not None:
            with suppress(ServerError):
                page = await self._list_from(request, only, "tools")
                result = await catalog.extend_page(only, page, first="cursor" not in request.params)
                # The retrieval tools may come and go, for this client alone, so nothing may cache the list.
                return {**result, **({} if catalog.is_steady or not request.is_modern else {"ttlMs": 0, "cacheScope": "private"})}
        return self._adapt(request, {"tools": await catalog.list(), **self._find_freshness("tools")})

    async def _call_tool(self, request: ClientRequest) -> Raw:
        client, name, arguments = self._client, request.params.get("name"), request.params.get("arguments")
        client.note_call(request)
        if not isinstance(name, str) or not isinstance(arguments, dict | None):  # some server might answer, past the gate
            raise MCPError(mcp_types.INVALID_PARAMS, "A tool call needs a name, and arguments that are an object.")
        own = await client.tool_search.find_own(name) or await client.catalog.find_own(name)
        if own == "call_tool":
            result = await client.tool_search.call(request, self._call_tool)
            return result if "resultType" in result else self._adapt(request, result)
        require_tasks(not request.asks_for_task or (own is None and request.version == ROUTED_IN))
        if own in SEARCH_TOOLS:
            return self._adapt(request, await client.tool_search.answer(own, as_mapping(arguments)))
        if own is not None:
            return self._adapt(request, await client.calls.call_own(request, own, as_mapping(arguments)))
        server, theirs = client.catalog.find(name) or (None, "")
        if server is None or not server.config.allows(theirs):
            raise MCPError(mcp_types.INVALID_PARAMS, f"Unknown tool: {name}")
        require_tasks(not request.asks_for_task or offers_tasks((await server.connect()).handshake))
        await self._check_headers(request, server, theirs)
        result = await self._allow_input(request, server, lambda: client.calls.call_server(request, server, theirs))
        if request.started_task is not None:
            return await client.answers.gate(request, server.name, request.started_task)
        await client.announce_tools()
        return result if "resultType" in result else self._adapt(request, result)

    async def _check_headers(self, request: ClientRequest, server: Server, name: str) -> None:
        """Headers must repeat the arguments, because a gateway in front of the proxy may have routed by them."""
        if not request.is_modern or request.http_request is None or request.is_wrapped:
            return
        schema = (await self._client.catalog.describe(server, name)).get("inputSchema")
        arguments = as_mapping(request.params.get("arguments"))
        if schema and (wrong := validate_mcp_param_headers(schema, arguments, request.http_request.headers)):
            raise MCPError(wrong.code, wrong.message)

    async def _listen(self, request: ClientRequest, ctx: Context) -> Raw:
        wanted = mcp_types.SubscriptionsListenRequestParams.model_validate(request.params, by_name=False)
        uris = wanted.notifications.resource_subscriptions or []
        async with self._client.subscriptions.listen([(await self._find_server(uri), uri) for uri in uris]) as heard:
            wanted.notifications.resource_subscriptions = heard
            if "taskIds" in (wanted.notifications.model_extra or {}):
                result = await self._client.tasks.listen(ctx, request, wanted, self._client.listen)
            else:
                result = await self._client.listen(ctx, wanted)
        return result.model_dump(by_alias=True, mode="json", exclude_none=True)

    async def _list(self, request: ClientRequest, key: str) -> Raw:
        client = self._client
        if client.only_server is not None:
            page = await self._list_from(request, client.only_server, key)
            result = {**page, key: client.only_server.select_usable([page.get(key)], key)}
        else:
            found = await ask_each(client.servers.values(), lambda server: server.list_entries(request.method, key))
            every = [(server, entry) for server in client.servers for entry in found.get(server, [])]
            if key == "prompts":
                named = [{**entry, "name": client.catalog.public_name(server, entry["name"])} for server, entry in every]
            else:
                named = [entry for _, entry in every]
            result = self._adapt(request, {key: named, **self._find_freshness(key)})
        if key == "resources" and client.options.list_outputs and "nextCursor" not in result:
            never = {"ttlMs": 0} if "ttlMs" in result else {}
            result = {**result, key: [*result[key], *map(outputs.describe, client.session.kept())], **never}
        return result

    def _find_freshness(self, key: str) -> Raw:
        """Return how long the combined list of all servers may be kept."""
        found = [found for server in self._client.servers.values() if (found := server.lists.freshness(key)) is not None]
        return merge_freshness(found) if key != "tools" or self._client.catalog.is_steady else {}

    async def _list_from(self, request: ClientRequest, server: Server, key: str) -> Raw:
        if key != "prompts" and not await server.has_capability(request.method):
            return self._adapt(request, {key: []})  # the proxy announces tools and resources on its behalf
        if (is_first := "cursor" not in request.params) and await server.recall() and (known := server.lists.give(key)):
            return self._adapt(request, {key: known.entries, **known.left})
        page = await self._client.forward(request, server, request.params)
        await server.lists.note_page(key, page, is_first=is_first)
        return page

    async def _forward(self, request: ClientRequest) -> Raw:
        """Pass a request on to its server, using the server's own names."""
        server, params = await self._find_owner(request), request.params
        prefix = self._client.catalog.public_name(server.name, "")
        if isinstance(params.get("name"), str):
            params = {**params, "name": params["name"].removeprefix(prefix)}
        reference = as_mapping(params.get("ref"))
        if isinstance(reference.get("name"), str):
            params = {**params, "ref": {**reference, "name": reference["name"].removeprefix(prefix)}}
        result = await self._allow_input(request, server, lambda: self._client.forward(request, server, params))
        gated = await self._client.answers.gate(request, server.name, result)
        if gated is not result:
            await self._client.announce_tools()
        return gated

    async def _read_output(self, request: ClientRequest) -> Raw:
        """Read a stored output. If this proxy does not have it, its only server may, which can be another proxy."""
        client = self._client
        try:
            return self._adapt(request, await outputs.read(client.session, request.params["uri"]))
        except MCPError:
            with suppress(MCPError, ServerError):
                if client.only_server is not None and await client.only_server.has_capability("resources"):
                    return await self._forward(request)
            raise

    async def _find_owner(self, request: ClientRequest) -> Server:
        client, params = self._client, request.params
        if client.only_server is not None:
            return client.only_server
        reference = as_mapping(params.get("ref"))
        name = params.get("name") or reference.get("name")
        if isinstance(name, str) and (found := client.catalog.find(name)):
            return found[0]
        uri = params.get("uri") or reference.get("uri")
        if isinstance(uri, str):
            return await self._find_server(uri)
        raise MCPError(mcp_types.METHOD_NOT_FOUND, "Method not found", request.method)

    async def _find_server(self, uri: str) -> Server:
        """Find the server that lists the URI or has a template for it; else the first one with resources."""
        if self._client.only_server is not None:
            return self._client.only_server

        async def lists(server: Server) -> bool:
            if uri in [entry.get("uri") for entry in await server.list_entries("resources/list", "resources")]:
                return True
            entries = await server.list_entries("resources/templates/list", "resourceTemplates")
            templates = [str(entry.get("uriTemplate", "")) for entry in entries]
            return uri in templates or any(uri.startswith(start.split("{")[0]) for start in templates if "{" in start)

        servers = self._client.servers
        found = await ask_each(servers.values(), lists)
        able = await ask_each(servers.values(), lambda server: server.has_capability("resources"))
        candidates = [name for name in servers if found.get(name)] or [name for name in servers if able.get(name)]
        if not candidates:
            raise MCPError(mcp_types.INVALID_PARAMS, f"No server has the resource {uri}.")
        return servers[candidates[0]]

    async def _allow_input(self, request: ClientRequest, server: Server, work: Callable[[], Awaitable[Raw]]) -> Raw:
        """Run `work`, and pause it when an older server or a task asks a client that can answer only between two calls."""
        if not request.is_modern or not self._client.can_be_asked or request.method not in INPUT_REQUIRED_METHODS:
            return await work()
        handshake = (await server.connect()).handshake
        if handshake.is_modern and not (request.knows_tasks or knows_tasks(handshake.capabilities)):
            return await work()
        if "requestState" in request.params and not (handshake.is_modern and not self._client.paused_calls.knows(request)):
            return await self._client.paused_calls.resume(request)
        return await self._client.paused_calls.start(request, work)
