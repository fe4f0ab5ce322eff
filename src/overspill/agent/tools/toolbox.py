"""The tools that agents name. Functions are imported and servers started once per run."""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, Iterable, Mapping
from contextlib import asynccontextmanager

from msgspec import Struct

from overspill.agent.file.load import Agent
from overspill.agent.internal import PREFIX
from overspill.agent.progress import Observe
from overspill.agent.tools.functions import Files, FunctionReference, load_function
from overspill.agent.tools.offers import OfferedTool
from overspill.agent.tools.servers import open_servers
from overspill.errors import SettingsError
from overspill.retrieval.definitions import TOOLS
from overspill.text.humanize import suggest_nearest

_FUNCTION_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")


class WantedTools(Struct, frozen=True):
    """A name under `tools`, and which tools of that server; None means all."""

    name: str
    only: frozenset[str] | None = None


class Toolbox(Struct, frozen=True):
    functions: Mapping[str, OfferedTool]
    servers: Mapping[str, Mapping[str, OfferedTool]]
    """By server, then by the tool's own name."""

    def of(self, agent: Agent, more: Iterable[str] = ()) -> dict[str, OfferedTool]:
        """What this agent can call, by name. `more` are functions that its file does not name."""
        found: dict[str, OfferedTool] = {}
        for wanted in [*_wanted_tools(agent), *map(WantedTools, more)]:
            if wanted.name in self.functions:
                found[wanted.name] = self.functions[wanted.name]
                continue
            offered = self.servers[wanted.name]
            if missing := sorted((wanted.only or frozenset()) - set(offered)):
                raise SettingsError(
                    f"{agent.file.name} names the tool {missing[0]!r}, which the server {wanted.name} does not have. It has "
                    f"{', '.join(sorted(offered)) or 'no tools'}."
                )
            for tool, offer in offered.items():
                if wanted.only is not None and tool not in wanted.only:
                    continue
                if offer.name.startswith(PREFIX):
                    raise SettingsError(
                        f"The tool {tool} of the server {wanted.name} would be called {offer.name}, but names that begin with "
                        f"{PREFIX} are reserved. Rename the server in your settings."
                    )
                if found.setdefault(offer.name, offer) is not offer:
                    raise SettingsError(
                        f"Two tools of {agent.file.name} would both be called {offer.name}. Leave one out, or rename a server."
                    )
        return found


@asynccontextmanager
async def open_tools(
    agent: Agent, functions: Mapping[str, FunctionReference], environ: Mapping[str, str], observe: Observe
) -> AsyncGenerator[Toolbox]:
    """Open the tools of an agent and all agents below it. Agent files only name tools; your settings define them."""
    known: dict[str, FunctionReference] = {**(agent.settings.functions or {}), **functions}
    servers = agent.settings.mcp_servers or {}
    wanted = {name.name: each.file.name for each in agent.everyone() for name in _wanted_tools(each)}
    for name, file in wanted.items():
        if name in known and name in servers:
            raise SettingsError(f"{name} is both a function and a server in your settings. Rename one of them.")
        if name not in known and name not in servers:
            raise SettingsError(_describe_unknown(name, file, [*known, *servers]))
    files: Files = {}
    loaded = {name: load_function(_check_name(name), known[name], files) for name in {*wanted, *functions} & set(known)}
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


def _check_name(name: str) -> str:
    if not _FUNCTION_NAME.fullmatch(name) or name in TOOLS or name.startswith(PREFIX):
        raise SettingsError(
            f"A function cannot be called {name!r}. Use at most 64 letters, digits, _ and -, and not the name of one of "
            f"Overspill's own tools."
        )
    return name


def _describe_unknown(name: str, file: str, known: list[str]) -> str:
    return (
        f"{file} names the tool {name!r}, but your settings have it in neither `mcpServers` nor `functions`."
        f"{suggest_nearest(name, known)} An agent file cannot define tools: add it to your own config file, or use --function."
    )
