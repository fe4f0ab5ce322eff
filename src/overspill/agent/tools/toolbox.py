"""The tools that agents name: functions are imported, servers are started, each once for a whole run."""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, Iterable, Mapping
from contextlib import asynccontextmanager
from difflib import get_close_matches

from msgspec import Struct

from overspill.agent.file.load import Agent
from overspill.agent.internal import PREFIX
from overspill.agent.progress import Observe
from overspill.agent.tools.functions import Files, load_function
from overspill.agent.tools.offers import OfferedTool
from overspill.agent.tools.servers import open_servers
from overspill.errors import SettingsError
from overspill.retrieval.definitions import TOOLS

_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")


class WantedTools(Struct, frozen=True):
    """A name under `tools`, and which of a server's tools are meant; None for all."""

    name: str
    only: frozenset[str] | None = None


class Toolbox(Struct, frozen=True):
    functions: Mapping[str, OfferedTool]
    servers: Mapping[str, Mapping[str, OfferedTool]]
    """By server, then by the tool's own name."""

    def of(self, agent: Agent, more: Iterable[str] = ()) -> dict[str, OfferedTool]:
        """What this agent may call, by name; `more` are functions it is given besides."""
        found: dict[str, OfferedTool] = {}
        for wanted in [*_wanted_tools(agent), *map(WantedTools, more)]:
            if wanted.name in self.functions:
                found[wanted.name] = self.functions[wanted.name]
                continue
            offered = self.servers[wanted.name]
            if missing := sorted((wanted.only or frozenset()) - set(offered)):
                raise SettingsError(
                    f"{agent.file.name} names the tool {missing[0]!r} of the server {wanted.name}, which offers "
                    f"{', '.join(sorted(offered)) or 'none'}."
                )
            for tool, offer in offered.items():
                if wanted.only is not None and tool not in wanted.only:
                    continue
                if offer.name.startswith(PREFIX):
                    raise SettingsError(
                        f"The tool {tool} of the server {wanted.name} would be called {offer.name}, and names that begin with "
                        f"{PREFIX} are the agent's own. Give the server another name in your settings."
                    )
                if found.setdefault(offer.name, offer) is not offer:
                    raise SettingsError(
                        f"Two tools of {agent.file.name} would both be called {offer.name}. Name fewer, or rename a server."
                    )
        return found


@asynccontextmanager
async def open_tools(
    agent: Agent, functions: Mapping[str, str], environ: Mapping[str, str], observe: Observe
) -> AsyncGenerator[Toolbox]:
    """Those of the agent and of all below it. What can be called is what the user configured; agent files only name it."""
    known = {**(agent.settings.functions or {}), **functions}
    servers = agent.settings.mcp_servers or {}
    wanted = {name.name: each.file.name for each in agent.everyone() for name in _wanted_tools(each)}
    for name, file in wanted.items():
        if name in known and name in servers:
            raise SettingsError(f"{name} is both a function and a server in your settings. Rename one of them.")
        if name not in known and name not in servers:
            raise SettingsError(_unknown(name, file, [*known, *servers]))
    files: Files = {}
    loaded = {name: load_function(_usable(name), known[name], files) for name in {*wanted, *functions} & set(known)}
    async with open_servers({name: servers[name] for name in wanted if name in servers}, environ, observe) as offered:
        yield Toolbox(loaded, offered)


def _wanted_tools(agent: Agent) -> list[WantedTools]:
    found: list[WantedTools] = []
    for entry in agent.file.keys.tools:
        if isinstance(entry, str):
            found.append(WantedTools(entry))
        else:
            found += [WantedTools(name, frozenset(only)) for name, only in entry.items()]
    return found


def _usable(name: str) -> str:
    if not _NAME.fullmatch(name) or name in TOOLS or name.startswith(PREFIX):
        raise SettingsError(
            f"{name!r} cannot be the name of a function: allowed are letters, digits, _ and -, at most 64, "
            f"and no name of Overspill's own tools."
        )
    return name


def _unknown(name: str, file: str, known: list[str]) -> str:
    near = get_close_matches(name, known, n=1)
    guess = f" Did you mean {near[0]!r}?" if near else ""
    return (
        f"{file} names the tool {name!r}, and neither `mcpServers` nor `functions` in your settings has it.{guess} "
        "An agent file cannot define it: put it into your own config file, or give --function."
    )
