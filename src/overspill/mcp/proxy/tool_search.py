"""A search that one client is offered in place of all tools. Decided at the client's first `tools/list` and never changed."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import suppress

import anyio
import anyio.to_thread
from mcp.shared.exceptions import MCPError
from msgspec import structs

from overspill.errors import BadRequest, ServerError
from overspill.mcp.client.connection import Raw, as_mapping
from overspill.mcp.client.server import Server
from overspill.mcp.proxy.catalog import Catalog
from overspill.mcp.proxy.client_request import ClientRequest
from overspill.mcp.proxy.known_clients import find_known_client
from overspill.mcp.proxy.tool_calls import ToolCalls, make_failure
from overspill.retrieval.definitions import render_definition
from overspill.session.session import Session
from overspill.tool_search.offered import SearchRule, read_definition
from overspill.tool_search.search import SEARCH_TOOLS, ToolSearch, read_call
from overspill.tool_search.words import SearchedTool
from overspill.types import Output
from overspill.wording import tool_search as wording


class ServedToolSearch:
    def __init__(self, catalog: Catalog, calls: ToolCalls, session: Session, info: Raw, *, dry_run: bool) -> None:
        self._catalog, self._calls, self._session = catalog, calls, session
        self._settings = session.settings.for_client(info.get("name"))
        known = find_known_client(info)
        self._defers = known is not None and known.defers_tools
        self.is_decided = dry_run or not self._may_search()
        self._deciding = anyio.Lock()
        self.offered: list[Raw] | None = None
        """The whole list, if tools are searched for."""
        self.names: dict[str, str] = {}
        """The names of our tools, by their names in that list."""
        self._rule = SearchRule(self._settings)
        self._search: ToolSearch | None = None
        self._searched = -1  # the state of the catalog when it was last indexed

    async def decide(self, *, has_listed: bool = False) -> list[Raw] | None:
        """Return the tools to offer; None offers all. `has_listed`: whether the catalog has just listed all tools."""
        async with self._deciding:
            if not self.is_decided:
                if not has_listed:
                    await self._catalog.list()
                theirs = self._catalog.list_theirs()
                read = [*map(self._read, theirs)]
                if not self._defers:
                    self._rule = await anyio.to_thread.run_sync(self._rule.decide, read)
                if any(map(self._rule.hides, read)):
                    self._freeze([tool for tool, each in zip(theirs, read, strict=True) if not self._rule.hides(each)])
            self.is_decided = True
            return self.offered

    def _may_search(self) -> bool:
        rules = [*self._settings.servers.values(), *self._settings.truncation.overrides.values()]
        return any(mode in ("on", "auto") for mode in (self._settings.tool_search, *(rule.tool_search for rule in rules)))

    def _freeze(self, direct: list[Raw]) -> None:
        self._catalog.is_steady = True
        ours = [self._catalog.rename(render_definition(tool, "mcp")) for tool in SEARCH_TOOLS.values()]
        ours += self._catalog.list_own()
        self.names = dict(zip((tool["name"] for tool in ours), (*SEARCH_TOOLS, *self._catalog.own), strict=True))
        self.offered = [*direct, *ours]

    def _read(self, tool: Raw) -> SearchedTool:
        found = self._catalog.find(tool["name"])
        assert found is not None  # the catalog listed it
        return structs.replace(read_definition(tool), server=found[0].name, own_name=found[1])

    async def find_own(self, name: str) -> str | None:
        """Find the tool of ours with this name, even if the client knows the list from an earlier proxy."""
        if name.endswith(tuple(SEARCH_TOOLS)):
            await self.decide()
        return self.names.get(name)

    async def answer(self, own: str, args: Raw) -> Raw:
        """Answer `find_tools` and `describe_tools` with a result like that of any tool."""
        search = await self._open()

        async def run(**given: object) -> Output:
            return await anyio.to_thread.run_sync(search.answer, own, given)

        return self._calls.render({}, await self._session.call(own, args, run, background=False))

    async def _open(self) -> ToolSearch:
        await self._catalog.list_known()
        if self._search is None or self._searched != self._catalog.changes:
            self.stop_learning()
            self._searched = self._catalog.changes
            shown = {own: name for name, own in self.names.items()}
            tools = [tool for tool in map(self._read, self._catalog.list_theirs()) if self._rule.hides(tool)]
            self._search = await anyio.to_thread.run_sync(ToolSearch, tools, shown)
            self._search.learn_apart(self._settings)
        return self._search

    def stop_learning(self) -> None:
        """Call this when the client has left: learning what thousands of tools mean takes minutes."""
        if self._search is not None:
            self._search.is_wanted = False

    async def call(self, request: ClientRequest, call: Callable[[ClientRequest], Awaitable[Raw]]) -> Raw:
        """Make the call that `call_tool` wraps, as if the client had made it. Explains a failure if possible."""
        search = await self._open()
        try:
            name, args = read_call(as_mapping(request.params.get("arguments")))
            server, theirs = self._find_behind(search, name)
        except BadRequest as problem:
            return make_failure(str(problem))
        request.params, request.is_wrapped = {**request.params, "name": name, "arguments": args}, True
        try:
            result = await call(request)
        except MCPError as refusal:
            if why := await self._explain(server, theirs, name, args):
                return make_failure(f"{refusal.message}\n{why}")
            raise
        if result.get("isError") is True and (why := await self._explain(server, theirs, name, args)):
            return {**result, "content": [*result.get("content", ()), {"type": "text", "text": why}]}
        return result

    def _find_behind(self, search: ToolSearch, name: str) -> tuple[Server, str]:
        found = self._catalog.find(name)
        is_listed = found is not None and bool(self._catalog.describe_if_known(*found))
        if name in self.names or (is_listed and name not in search.tools):
            raise BadRequest(wording.own_tool(name))
        if found is None or (not is_listed and self._catalog.knows_all_of(found[0])):
            raise BadRequest(search.explain_unknown(name))
        return found

    async def _explain(self, server: Server, theirs: str, name: str, args: Raw) -> str:
        """Say what is wrong with a call that failed: the tool has gone, or its arguments do not fit."""
        self._catalog.note_change(server.name)
        with suppress(MCPError, ServerError):
            tool = await self._catalog.describe(server, theirs)
            search = await self._open()
            if not tool:
                return search.explain_unknown(name)
            if name in search.tools:
                return await anyio.to_thread.run_sync(search.explain, name, args)
        return ""
