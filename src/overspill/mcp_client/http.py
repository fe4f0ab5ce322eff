"""The HTTP client for one server: its headers, and patience with answers that take long."""

from __future__ import annotations

import httpx2

from overspill.mcp_client.config import ServerConfig

_CONNECT = 30.0


def http_client(config: ServerConfig) -> httpx2.AsyncClient:
    """Reading has no limit of its own: calls have theirs, and a stream may be silent for as long as it likes."""
    return httpx2.AsyncClient(headers=dict(config.headers), timeout=httpx2.Timeout(_CONNECT, read=None))
