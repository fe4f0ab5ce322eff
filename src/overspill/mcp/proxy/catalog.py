"""The tools that a client sees, and the server that each belongs to."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from itertools import chain
from typing import TypeVar

import anyio
from mcp.shared.exceptions import MCPError

from overspill.errors import ServerError
from overspill.gate.intent import add_argument, asks
from overspill.mcp.client.connection import Raw
from overspill.mcp.client.server import Server
from overspill.mcp.proxy.options import ProxyOptions
from overspill.mcp.proxy.outputs import widen_schema
from overspill.mcp.proxy.programs import ProgramCalls
from overspill.mcp.proxy.versions import drop_task_support, offers_tasks
from overspill.retrieval.definitions import TOOLS, definition, offered_tools
from overspill.session.session import Session
from overspill.text.humanize import one_line
from overspill.text.names import assign_prefixes

_PREFIX = "overspill_"
_WAIT_FOR_NAMES, _WAIT_FOR_SCHEMAS = 3.0, 1.0  # seconds, only for a client that calls a tool it has not listed

T = TypeVar("T")


async def ask_each(servers: Iterable[Server], ask: Callable[[Server], Awaitable[T]]) -> dict[str, T]:
    """Ask all servers together. Returns answers by name, without servers that are down, refuse or are late."""
    answers: dict[str, T] = {}

    async def one(server: Server) -> None:
        with suppress(MCPError, ServerError):
            answers[server.name] = await ask(server)

    async with anyio.create_task_group() as group:
        for server in servers:
            group.start_soon(one, server)
    return answers


class Catalog:
    """Prefixes tool names with the server's name if there are several servers."""

    def __init__(self, servers: Mapping[str, Server], session: Session, options: ProxyOptions, programs: ProgramCalls) -> None:
        self._servers, self._programs = servers, programs
        self._prefixes = assign_prefixes(servers) if len(servers) > 1 else dict.fromkeys(servers, "")
        self._session = session
        self._offers_own = options.offers_own_tools
        self.own = offered_tools(session.settings) if self._offers_own else []
        """The retrieval tools that this proxy offers."""
        self.is_steady = (options.tools_always and not options.dry_run) or not self._offers_own
        """Whether the retrieval tools are listed from the beginning, and not only once there is something to read."""
        self.routes_tasks = False  # whether the client may ask servers for tasks
        self._known: dict[str, dict[str, Raw]] = {}
        """By server, the tools that it listed last."""
        self.changes = 0  # how often a list of tools arrived
        self._whole: set[str] = set()
        """Servers whose whole list is known. Changes show when the client lists the tools again."""

    async def list(self) -> list[Raw]:
        """List all tools of all servers. A server that is down or late counts with the tools that it listed before."""
        await ask_each(self._servers.values(), self._fetch_tools)
        return [*self.list_theirs(), *self.list_own()]

    def list_theirs(self) -> list[Raw]:
        """The tools that the servers listed last, as a client sees them."""
        shown = (self._present(server, [*self._known.get(name, {}).values()]) for name, server in self._servers.items())
        return [*chain.from_iterable(shown)]

    async def extend_page(self, server: Server, result: Raw, *, first: bool) -> Raw:
        """One page of the only server's list. The last page ends with the retrieval tools."""
        is_last = "nextCursor" not in result
        taken = {} if first else self._known.get(server.name, {})
        listed = server.select_usable([result.get("tools")], "tools", taken)
        tools = await self._remember(server, listed, before=taken, is_whole=is_last)
        return {**result, "tools": [*self._present(server, tools), *(self.list_own() if is_last else ())]}

    def list_own(self) -> list[Raw]:
        if not self.is_steady and not self._session.has_outputs:
            return []
        return [self.rename(definition(own, "mcp", self._session.settings.wording)) for own in self.own]

    def rename(self, tool: Raw) -> Raw:
        """Return a tool of ours under a name that no server uses."""
        own = tool["name"]
        if (name := self._own_name(own)) == own:
            return tool
        why = f"{own} of Overspill, renamed because the server has a tool with that name."
        return {**tool, "name": name, "description": f"{why} {tool['description']}"}

    @property
    def rename_note(self) -> str:
        """Return a sentence to add to replies that name retrieval tools; empty unless some of them have other names here."""
        renamed = [f"{name} is {self._own_name(name)}" for name in TOOLS if self._own_name(name) != name]
        return f"Some tools of Overspill have other names here: {', '.join(renamed)}." if renamed and self._offers_own else ""

    async def find_own(self, name: str) -> str | None:
        """The retrieval tool with this name, if there is one."""
        if not self._offers_own or not name.endswith(tuple(TOOLS)):
            return None
        if len(self._servers) == 1:  # with several servers, every other tool has a prefix
            await self._fetch_missing(self._servers.values(), _WAIT_FOR_NAMES)
        return next((own for own in TOOLS if self._own_name(own) == name), None)

    def find(self, name: str) -> tuple[Server, str] | None:
        """The server that has the tool, and the tool's name there."""
        owners = [each for each, prefix in self._prefixes.items() if name.startswith(prefix)]
        if not owners:
            return None
        owner = max(owners, key=lambda each: len(self._prefixes[each]))
        return self._servers[owner], name.removeprefix(self._prefixes[owner])

    def find_server(self, name: str) -> Server | None:
        return self._servers.get(name)

    def public_name(self, server: str, name: str) -> str:
        return self._prefixes[server] + name

    async def describe(self, server: Server, name: str) -> Raw:
        """Return the tool as its server lists it; empty if the server is too slow."""
        await self._fetch_missing([server], _WAIT_FOR_SCHEMAS)
        return self.describe_if_known(server, name)

    def describe_if_known(self, server: Server, name: str) -> Raw:
        return self._known.get(server.name, {}).get(name, {})

    async def list_known(self) -> list[tuple[Server, Raw]]:
        """The tools of all servers, without waiting long for one that is busy or down."""
        await self._fetch_missing(self._servers.values(), _WAIT_FOR_NAMES)
        return [(self._servers[server], tool) for server, tools in self._known.items() for tool in tools.values()]

    def knows_all_of(self, server: Server) -> bool:
        return server.name in self._whole

    def note_change(self, server: str, method: str = "notifications/tools/list_changed") -> None:
        """Note that a server's list has changed. Its last list is used until the new one is fetched."""
        if method == "notifications/tools/list_changed":
            self._whole.discard(server)

    async def _fetch_missing(self, servers: Iterable[Server], within: float) -> None:
        """List tools that are still unknown, without waiting long for a server that is busy or down."""
        with anyio.move_on_after(within):
            await ask_each([server for server in servers if server.name not in self._whole], self._fetch_tools)

    async def _fetch_tools(self, server: Server) -> Sequence[Raw]:
        return await self._remember(server, await server.list_entries("tools/list", "tools"), before={}, is_whole=True)

    async def _remember(self, server: Server, listed: list[Raw], *, before: Mapping[str, Raw], is_whole: bool) -> list[Raw]:
        """Store the tools that a server has listed. Returns those that the settings allow."""
        connection = server.connection
        handshake = connection.handshake if connection else await server.find_handshake(0)
        routed = self.routes_tasks and offers_tasks(handshake)
        tools = [tool if routed else drop_task_support(tool) for tool in listed if server.config.allows(tool["name"])]
        self._known[server.name] = {**before, **{tool["name"]: tool for tool in tools}}
        self.changes += 1
        self._whole.add(server.name) if is_whole else self._whole.discard(server.name)
        return tools

    def _present(self, server: Server, tools: Sequence[Raw]) -> list[Raw]:
        """Describe tools for the client. Drops those whose name leads to another server: `a__b__c` may mean `a` or `a__b`."""
        shown: list[Raw] = []
        for tool in tools:
            name = self.public_name(server.name, tool["name"])
            found = self.find(name)
            if found is None or found[0] is not server:
                server.log_once(f"The tool {one_line(name)} of the server {server.name} is left out: another one has this name.")
                continue
            asked = {"inputSchema": add_argument(tool["inputSchema"])} if self.asks(server, tool) else {}
            whole = self._programs.is_always_whole(tool["name"], server.name)
            shown.append((dict if whole else widen_schema)({**tool, **asked, "name": name}))
        return shown

    def asks(self, server: Server, tool: Raw) -> bool:
        """Whether the argument `looking_for` is added to this tool. It depends on nothing but the settings and the tool."""
        settings = self._session.settings.for_tool(tool["name"], server.name)
        return asks(settings, tool.get("inputSchema"), strict=tool.get("strict"))

    def _own_name(self, own: str) -> str:
        """Return the name of a retrieval tool, with a prefix if a server's tool already has that name."""
        theirs = {self.public_name(server, name) for server, tools in self._known.items() for name in tools}
        name = own
        while name in theirs:
            name = _PREFIX + name
        return name
