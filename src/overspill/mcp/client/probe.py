"""Try one server: start or dial it once, ping it, list its tools and measure them. No tool is called."""

from __future__ import annotations

from collections.abc import Mapping

import anyio
from msgspec import Struct

from overspill.mcp.client.config import ServerConfig
from overspill.mcp.client.connection import Raw, ServerConnection, describe_error, list_pages, open_server, use
from overspill.mcp.client.listings import select_usable
from overspill.mcp.client.peer import ServerAccess
from overspill.text import tokens
from overspill.text.lenient_json import dumps


class ToolSize(Struct, frozen=True):
    """What a tool's name, description and arguments cost in the context before anyone calls it."""

    name: str
    bytes: int
    tokens: int


class Probe(Struct, frozen=True):
    server: str
    problem: str = ""
    protocol: str = ""
    software: str = ""
    """The server's own name and version."""
    tools: tuple[ToolSize, ...] = ()
    seconds: float = 0.0
    """From its start to its last answer."""
    unusable: str = ""
    """Names the tools that clients cannot read."""


async def probe(config: ServerConfig, environ: Mapping[str, str], within: float, model: str | None = None) -> Probe:
    """Never raises: a failure is the result's `problem`. Tokens are counted for `model`."""
    began, access = anyio.current_time(), ServerAccess(config, environ)
    problem, listed, unusable, links, seconds = "", list[Raw](), "", list[ServerConnection](), 0.0
    try:
        with anyio.fail_after(within):
            async with open_server(access) as up, use(up, access) as connection:
                links.append(connection)
                await connection.shake_hands()
                if not connection.handshake.is_modern:  # the stateless protocol has no ping
                    await connection.request("ping")
                if "tools" in connection.handshake.capabilities:
                    pages = await list_pages(connection.request, "tools/list", "tools", config.name)
                    listed, flaws = select_usable([page.get("tools") for page in pages], "tools")
                    unusable = ", ".join(flaws)
                seconds = anyio.current_time() - began
    except* TimeoutError:
        remark = links[0].transport.remark if links else ""
        problem = f"The server {config.name} did not answer within {within:g} s.{remark}"
    except* Exception as group:
        problem = describe_error(group, config.name)
    if problem:
        return Probe(config.name, problem)
    handshake = links[0].handshake
    software = " ".join(str(handshake.info.get(key, "")) for key in ("name", "version")).strip()
    tools: list[ToolSize] = []
    for tool in listed:
        shown = dumps({key: tool[key] for key in ("name", "description", "inputSchema") if key in tool})
        tools.append(ToolSize(str(tool.get("name")), len(shown), tokens.count(shown.decode(), model).tokens))
    return Probe(config.name, "", handshake.version, software, tuple(tools), seconds, unusable)
