"""The MCP client: reads server configurations, connects to servers, and restarts those that end."""

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
