"""The tools that a client sees, and the server that each belongs to."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import chain

import anyio

from overspill.gate.intent import add_argument, asks
from overspill.mcp.client.connection import Raw, ServerConnection
from overspill.mcp.client.server import Server
from overspill.mcp.proxy.ask_servers import ask_each, list_all, wait_for_server
from overspill.mcp.proxy.outputs import widen_schema
from overspill.mcp.proxy.tasks import drop_task_support
from overspill.retrieval.definitions import TOOLS, definition, offered_tools
from overspill.session.session import Session
from overspill.text.humanize import one_line
from overspill.text.names import assign_prefixes

_PREFIX = "overspill_"
_WAIT_FOR_NAMES, _WAIT_FOR_SCHEMAS = 3.0, 1.0  # seconds, only for a client that calls a tool it has not listed


class Catalog:
    """Prefixes tool names with the server's name if there are several servers."""

    def __init__(self, servers: Mapping[str, Server], session: Session, *, always: bool) -> None:
        self._servers = servers
        self._prefixes = assign_prefixes(servers) if len(servers) > 1 else dict.fromkeys(servers, "")
        self._session = session
        self.is_steady = always
        """Whether the retrieval tools are listed from the beginning, and not only once there is something to read."""
        self._known: dict[str, dict[str, Raw]] = {}
        """By server, the tools that it listed last."""
        self._whole: set[str] = set()
        """Servers whose whole list is known. Changes show when the client lists the tools again."""

    async def list(self) -> list[Raw]:
        """All tools of all servers. For a server that is down or late, those it listed before."""
        found = await ask_each(self._servers.values(), self._fetch_tools)
        known = {name: [*tools.values()] for name, tools in self._known.items()} | found
        shown = [self._present(server, known.get(name, [])) for name, server in self._servers.items()]
        return [*chain.from_iterable(shown), *self.list_own()]

    async def extend_page(self, server: Server, result: Raw, *, first: bool) -> Raw:
        """One page of the only server's list. The last page ends with the retrieval tools."""
        taken = () if first else self._known.get(server.name, ())
        tools = _filter_allowed(server, server.select_usable([result.get("tools")], "tools", taken))
        self._remember(await wait_for_server(server), tools, first=first, last="nextCursor" not in result)
        shown = self._present(server, tools)
        return {**result, "tools": shown if "nextCursor" in result else shown + self.list_own()}

    def list_own(self) -> list[Raw]:
        if not self.is_steady and not self._session.has_outputs:
            return []
        return [self._define_own(name) for name in offered_tools(self._session.settings)]

    @property
    def rename_note(self) -> str:
        """Goes with each reply that names retrieval tools, if some have other names here."""
        renamed = [f"{name} is {self._own_name(name)}" for name in TOOLS if self._own_name(name) != name]
        return f"Some tools of Overspill have other names here: {', '.join(renamed)}." if renamed else ""

    async def find_own(self, name: str) -> str | None:
        """The retrieval tool with this name, if there is one."""
        if not name.endswith(tuple(TOOLS)):
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

    def public_name(self, server: str, name: str) -> str:
        return self._prefixes[server] + name

    async def describe(self, server: Server, name: str) -> Raw:
        """The tool as its server lists it; empty if the server is too slow."""
        await self._fetch_missing([server], _WAIT_FOR_SCHEMAS)
        return self.describe_if_known(server, name)

    def describe_if_known(self, server: Server, name: str) -> Raw:
        """The same, without asking the server."""
        return self._known.get(server.name, {}).get(name, {})

    async def _fetch_missing(self, servers: Iterable[Server], within: float) -> None:
        """List tools that are still unknown, without waiting long for a server that is busy or down."""
        with anyio.move_on_after(within):
            await ask_each([server for server in servers if server.name not in self._whole], self._fetch_tools)

    async def _fetch_tools(self, server: Server) -> Sequence[Raw]:
        tools = _filter_allowed(server, await list_all(server, "tools/list", "tools"))
        self._remember(await wait_for_server(server, failed=0), tools, first=True, last=True)
        return tools

    def _remember(self, connection: ServerConnection, tools: Sequence[Raw], *, first: bool, last: bool) -> None:
        server = connection.config.name
        before = {} if first else self._known.get(server, {})
        self._known[server] = before | {tool["name"]: tool for tool in tools}
        self._whole.add(server) if last else self._whole.discard(server)
        for tool in tools:
            connection.learn_headers(tool)

    def _present(self, server: Server, tools: Sequence[Raw]) -> list[Raw]:
        named = [{**self._ask_in(server, tool), "name": self.public_name(server.name, tool["name"])} for tool in tools]
        return [widen_schema(drop_task_support(tool)) for tool in named if self._is_reachable(server, tool["name"])]

    def _ask_in(self, server: Server, tool: Raw) -> Raw:
        return {**tool, "inputSchema": add_argument(tool["inputSchema"])} if self.asks(server, tool) else tool

    def asks(self, server: Server, tool: Raw) -> bool:
        """Whether the argument `looking_for` is added to this tool. It depends on nothing but the settings and the tool."""
        settings = self._session.settings.for_tool(tool["name"], server.name)
        return asks(settings, tool.get("inputSchema"), strict=tool.get("strict"))

    def _is_reachable(self, server: Server, name: str) -> bool:
        """Whether a call of this name goes to the server. Its tool `b__c` may be called as `c` of the server `a__b` is."""
        found = self.find(name)
        if found is not None and found[0] is server:
            return True
        server.log_once(f"The tool {one_line(name)} of the server {server.name} is left out: another one has this name.")
        return False

    def _own_name(self, own: str) -> str:
        """A server's tool keeps its name; the retrieval tool gets a prefix."""
        theirs = {self.public_name(server, name) for server, tools in self._known.items() for name in tools}
        name = own
        while name in theirs:
            name = _PREFIX + name
        return name

    def _define_own(self, own: str) -> Raw:
        tool, name = definition(own, "mcp", self._session.settings.wording), self._own_name(own)
        if name == own:
            return tool
        return {
            **tool,
            "name": name,
            "description": f"{own} of Overspill, renamed because the server has a tool with that name. {tool['description']}",
        }


def _filter_allowed(server: Server, tools: Iterable[Raw]) -> list[Raw]:
    return [tool for tool in tools if server.config.allows(tool["name"])]
