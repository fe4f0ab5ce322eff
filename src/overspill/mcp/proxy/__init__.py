"""The MCP proxy: sits between a client and its servers, and acts only on results that are too large or too slow."""

from overspill.mcp.proxy.http import ListenOptions, serve_http
from overspill.mcp.proxy.options import PROXY_DEFAULTS, ProxyOptions
from overspill.mcp.proxy.serve import open_clients, serve_stdio
from overspill.mcp.proxy.served_clients import ServedClients

__all__ = ["PROXY_DEFAULTS", "ListenOptions", "ProxyOptions", "ServedClients", "open_clients", "serve_http", "serve_stdio"]
