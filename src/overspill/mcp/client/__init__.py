"""MCP servers, started and kept running: their configuration, one connection to each, restarts."""

from overspill.mcp.client.arguments import fits_schema
from overspill.mcp.client.config import ServerConfig, host_of, read_servers, server_configs
from overspill.mcp.client.connection import Client, Link, Peer
from overspill.mcp.client.server import Server, ToolDefinition, open_servers

__all__ = [
    "Client",
    "Link",
    "Peer",
    "Server",
    "ServerConfig",
    "ToolDefinition",
    "fits_schema",
    "host_of",
    "open_servers",
    "read_servers",
    "server_configs",
]
