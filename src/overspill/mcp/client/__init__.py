"""The MCP client: reads server configurations, connects to servers, and restarts those that end.

Names are loaded when they are first used: the MCP SDK takes a second to import, and a server's process can start meanwhile.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from overspill.mcp.client.arguments import fits_schema
    from overspill.mcp.client.config import ServerConfig, parse_host, read_servers, server_configs
    from overspill.mcp.client.connection import ClientIdentity, Peer, ServerConnection
    from overspill.mcp.client.server import Server, ToolDefinition, open_servers

__all__ = [
    "ClientIdentity",
    "Peer",
    "Server",
    "ServerConfig",
    "ServerConnection",
    "ToolDefinition",
    "fits_schema",
    "open_servers",
    "parse_host",
    "read_servers",
    "server_configs",
]

_HOMES = {
    "ClientIdentity": "connection",
    "Peer": "connection",
    "Server": "server",
    "ServerConfig": "config",
    "ServerConnection": "connection",
    "ToolDefinition": "server",
    "fits_schema": "arguments",
    "open_servers": "server",
    "parse_host": "config",
    "read_servers": "config",
    "server_configs": "config",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'overspill.mcp.client' has no attribute {name!r}")
    return getattr(import_module(f"overspill.mcp.client.{_HOMES[name]}"), name)
