"""Which tools a client is shown, and whose they are."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from typing import cast

import anyio

from overspill.mcp.client import Link, Server
from overspill.mcp.client.connection import Raw, mapping
from overspill.mcp.proxy.ask_servers import each, list_all, reach
from overspill.mcp.proxy.schemas import widen_schema
from overspill.retrieval.definitions import TOOLS, definition
from overspill.session.session import Session
from overspill.text.names import prefixes

_PREFIX = "overspill_"
_WAIT_FOR_NAMES, _WAIT_FOR_SCHEMAS = 3.0, 1.0  # seconds, and only where a client calls what it has never listed


class Catalog:
    """Names have the server's in front of them only where there are several servers."""

    def __init__(self, servers: Mapping[str, Server], session: Session, *, always: bool) -> None:
        self._servers = servers
        self._prefixes = prefixes(servers) if len(servers) > 1 else dict.fromkeys(servers, "")
        self._session = session
        self._always = always
        self._known: dict[str, dict[str, Raw]] = {}
        """Tools as each server last listed them."""
        self._whole: set[str] = set()
        """Servers of which that is the whole list. What has changed since is learned when the client asks for it again."""

    async def list(self) -> list[Raw]:
        """All tools of all servers; of one that is down or late, those it had."""
        found = await each(self._servers.values(), self._tools)
        known = {name: [*tools.values()] for name, tools in self._known.items()} | found
        shown = [self._present(server, known.get(name, [])) for name, server in self._servers.items()]
        return [*chain.from_iterable(shown), *self.ours()]

    async def page(self, server: Server, result: Raw, *, first: bool) -> Raw:
        """One page of the only server's own list. Ours stand at the end of the last."""
        tools = _filter_allowed(server, result.get("tools"))
        self._learn(await reach(server), tools, first=first, last="nextCursor" not in result)
        shown = self._present(server, tools)
        return {**result, "tools": shown if "nextCursor" in result else shown + self.ours()}

    def ours(self) -> list[Raw]:
        names = self._session.settings.surface if self._always else [tool["name"] for tool in self._session.tools("mcp")]
        return [self._definition(name) for name in names]

    @property
    def note(self) -> str:
        """Said with each of our texts where they name tools that have another name here."""
        renamed = [f"{name} is {self._name(name)}" for name in TOOLS if self._name(name) != name]
        return f"Here these tools of Overspill have other names: {', '.join(renamed)}." if renamed else ""

    async def own(self, name: str) -> str | None:
        """Which of our tools is called by this name, if one is."""
        if not name.endswith(tuple(TOOLS)):
            return None
        if len(self._servers) == 1:  # of several, none has a tool without its prefix
            await self._learn_of(self._servers.values(), _WAIT_FOR_NAMES)
        return next((own for own in TOOLS if self._name(own) == name), None)

    def find(self, name: str) -> tuple[Server, str] | None:
        """The server that has it, and what it calls it."""
        owners = [each for each, prefix in self._prefixes.items() if name.startswith(prefix)]
        if not owners:
            return None
        owner = max(owners, key=lambda each: len(self._prefixes[each]))
        return self._servers[owner], name.removeprefix(self._prefixes[owner])

    def public_name(self, server: str, name: str) -> str:
        return self._prefixes[server] + name

    async def describe(self, server: Server, name: str) -> Raw:
        """The tool as its server lists it; nothing where that is not known in time."""
        await self._learn_of([server], _WAIT_FOR_SCHEMAS)
        return self.describe_if_known(server, name)

    def describe_if_known(self, server: Server, name: str) -> Raw:
        """The same, as far as it is known now."""
        return self._known.get(server.name, {}).get(name, {})

    async def _learn_of(self, servers: Iterable[Server], within: float) -> None:
        """A server that is busy or down must not hold up what we can answer without it."""
        with anyio.move_on_after(within):
            await each([server for server in servers if server.name not in self._whole], self._tools)

    async def _tools(self, server: Server) -> Sequence[Raw]:
        tools = _filter_allowed(server, await list_all(server, "tools/list", "tools"))
        self._learn(await reach(server, failed=0), tools, first=True, last=True)
        return tools

    def _learn(self, link: Link, tools: Sequence[Raw], *, first: bool, last: bool) -> None:
        server = link.config.name
        before = {} if first else self._known.get(server, {})
        self._known[server] = before | {str(tool.get("name")): tool for tool in tools}
        self._whole.add(server) if last else self._whole.discard(server)
        for tool in tools:
            link.learn(tool)

    def _present(self, server: Server, tools: Sequence[Raw]) -> list[Raw]:
        return [
            widen_schema({**tool, "name": self.public_name(server.name, tool["name"])}) if "name" in tool else tool
            for tool in tools
        ]

    def _name(self, own: str) -> str:
        """Theirs win their name."""
        theirs = {self.public_name(server, name) for server, tools in self._known.items() for name in tools}
        name = own
        while name in theirs:
            name = _PREFIX + name
        return name

    def _definition(self, own: str) -> Raw:
        tool, name = definition(own, "mcp"), self._name(own)
        if name == own:
            return tool
        return {
            **tool,
            "name": name,
            "description": f"{own} of Overspill; the server has a tool of that name. {tool['description']}",
        }


def _filter_allowed(server: Server, tools: object) -> list[Raw]:
    every = cast("list[object]", tools) if isinstance(tools, list) else []
    return [mapping(tool) for tool in every if server.config.allows(mapping(tool).get("name", ""))]
