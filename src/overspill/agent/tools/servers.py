"""MCP servers as tools. MCP is imported only for agents that name a server."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from functools import partial
from importlib import import_module
from typing import Any

from overspill.agent.progress import ModelSaid, Observe
from overspill.agent.tools.offers import OfferedTool
from overspill.errors import MissingPackage, ServerError, SettingsError
from overspill.mcp.client.arguments import fits_schema
from overspill.mcp.client.config import server_configs
from overspill.text.names import qualify_name
from overspill.types import Output


@asynccontextmanager
async def open_servers(
    configured: Mapping[str, Any], environ: Mapping[str, str], observe: Observe
) -> AsyncGenerator[Mapping[str, Mapping[str, OfferedTool]]]:
    """Start the servers in parallel and list their tools, by server and tool name. Raises ServerError if one does not start."""
    if not configured:
        yield {}
        return
    try:
        client = import_module("overspill.mcp.client.server")
    except ImportError as missing:
        raise MissingPackage("An agent with MCP servers", "mcp") from missing
    configs = server_configs(configured, "in your settings", environ)
    for name in configured:
        if name not in configs:
            raise SettingsError(f"The server {name} is disabled in your settings. Enable it, or remove it from the agent file.")

    def log(text: str) -> None:
        observe(ModelSaid("", text, warning=True))

    async with client.open_servers(configs.values(), environ, log=log) as servers:
        yield {name: await _list_offers(name, server) for name, server in servers.items()}


async def _list_offers(name: str, server: Any) -> dict[str, OfferedTool]:
    try:
        return {tool.name: _offer(name, server, tool) for tool in await server.list_tools()}
    except ServerError as error:
        raise ServerError(server.problem or str(error)) from None


def _offer(name: str, server: Any, tool: Any) -> OfferedTool:
    run = partial(_call, server, tool.name)
    parameters: dict[str, Any] = {"type": "object", "properties": {}, **tool.input_schema}
    offered_as, description = qualify_name(tool.name, name), tool.description or tool.name
    return OfferedTool(offered_as, description, parameters, run, server=name, kind="mcp", check=fits_schema(parameters, name))


async def _call(server: Any, tool: str, /, **args: Any) -> Output:
    return await server.call_tool(tool, args)
