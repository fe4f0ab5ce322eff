"""The MCP proxy: stands between a client and its servers, and acts only on results that are too large or too slow."""

from overspill.mcp.proxy.http import Listening, serve_http
from overspill.mcp.proxy.options import USUAL, Options
from overspill.mcp.proxy.serve import open_scopes, serve_stdio
from overspill.mcp.proxy.served_clients import ClientScopes

__all__ = ["USUAL", "ClientScopes", "Listening", "Options", "open_scopes", "serve_http", "serve_stdio"]
