"""Which tools a client is shown, and whose they are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from overspill.errors import ServerError
from overspill.mcp_client import Server
from overspill.mcp_client.link import Raw
from overspill.proxy.schemas import widened
from overspill.session import Session
from overspill.tools import TOOLS, definition

SEPARATOR = "__"
_PREFIX = "overspill_"


class Catalog:
    """Names have the server's in front of them only where there are several servers."""

    def __init__(self, servers: Mapping[str, Server], session: Session, *, always: bool) -> None:
        self._servers = servers
        self._session = session
        self._always = always
        self._known: dict[str, dict[str, Raw]] = {}
        """Tools as each server last listed them."""

    def forget(self, server: str) -> None:
        self._known.pop(server, None)

    async def list(self) -> list[Raw]:
        """All tools of all servers; of one that is down, those it had."""
        shown: list[Raw] = []
        for name, server in self._servers.items():
            for tool in await self._tools(server):
                shown.append(widened({**tool, "name": self.shown(name, tool["name"])}))
        return shown + self.ours()

    def ours(self) -> list[Raw]:
        names = self._session.settings.surface if self._always else [tool["name"] for tool in self._session.tools("mcp")]
        return [_renamed(definition(name, "mcp")) if self._clashes(name) else definition(name, "mcp") for name in names]

    @property
    def note(self) -> str:
        """Said with each of our texts where they name tools that have another name here."""
        renamed = [name for name in TOOLS if self._clashes(name)]
        if not renamed:
            return ""
        return (
            "Here these tools of Overspill have other names: " + ", ".join(f"{name} is {_PREFIX}{name}" for name in renamed) + "."
        )

    async def own(self, name: str) -> str | None:
        """Which of our tools is called by this name, if one is."""
        plain = name.removeprefix(_PREFIX)
        if plain not in TOOLS:
            return None
        if len(self._servers) == 1 and not self._known:
            for server in self._servers.values():
                await self._tools(server)
        if name == plain:
            return None if self._clashes(name) else plain
        return plain if self._clashes(plain) else None

    def find(self, name: str) -> tuple[Server, str] | None:
        """The server that has it, and what it calls it."""
        if len(self._servers) == 1:
            return next(iter(self._servers.values())), name
        owners = [each for each in self._servers if name.startswith(each + SEPARATOR)]
        if not owners:
            return None
        owner = max(owners, key=len)
        return self._servers[owner], name.removeprefix(owner + SEPARATOR)

    def shown(self, server: str, name: str) -> str:
        return name if len(self._servers) == 1 else f"{server}{SEPARATOR}{name}"

    def promises_structure(self, server: str, name: str) -> bool:
        return isinstance(self._known.get(server, {}).get(name, {}).get("outputSchema"), dict)

    def learn(self, server: str, tools: Sequence[Raw]) -> None:
        self._known[server] = {str(tool.get("name")): tool for tool in tools}

    async def _tools(self, server: Server) -> Sequence[Raw]:
        try:
            link = await server.link()
            if "tools" not in link.greeting.capabilities:
                return []
            tools = [tool for tool in await server.pages("tools/list", "tools") if server.config.allows(tool.get("name", ""))]
        except ServerError:
            return list(self._known.get(server.name, {}).values())
        for tool in tools:
            link.learn(tool)
        self.learn(server.name, tools)
        return tools

    def _clashes(self, name: str) -> bool:
        """Theirs win their name."""
        return len(self._servers) == 1 and any(name in tools for tools in self._known.values())


def _renamed(tool: Raw) -> Raw:
    note = f"{tool['name']} of Overspill; the server has a tool of that name. "
    return {**tool, "name": _PREFIX + tool["name"], "description": note + tool["description"]}
