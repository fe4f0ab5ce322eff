"""The MCP proxy: sits between a client and its servers, and acts only on results that are too large or too slow.

Names are loaded when they are first used, as in `overspill.mcp.client`.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from overspill.mcp.proxy.http import ListenOptions, serve_http
    from overspill.mcp.proxy.options import PROXY_DEFAULTS, ProxyOptions
    from overspill.mcp.proxy.serve import open_clients, serve_stdio
    from overspill.mcp.proxy.served_clients import ServedClients

__all__ = ["PROXY_DEFAULTS", "ListenOptions", "ProxyOptions", "ServedClients", "open_clients", "serve_http", "serve_stdio"]

_HOMES = {
    "PROXY_DEFAULTS": "options",
    "ListenOptions": "http",
    "ProxyOptions": "options",
    "ServedClients": "served_clients",
    "open_clients": "serve",
    "serve_http": "http",
    "serve_stdio": "serve",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'overspill.mcp.proxy' has no attribute {name!r}")
    return getattr(import_module(f"overspill.mcp.proxy.{_HOMES[name]}"), name)
