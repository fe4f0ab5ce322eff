"""Who receives messages that a server sends unprompted."""

from __future__ import annotations

from typing import Protocol

import mcp_types
from mcp.shared.exceptions import MCPError

from overspill.mcp.client.framing import Raw


class Peer(Protocol):
    """Receives what a server sends unprompted."""

    async def on_request(self, server: str, method: str, params: Raw) -> Raw:
        """Return the answer, or raise MCPError."""
        ...

    async def on_notification(self, server: str, method: str, params: Raw) -> None: ...

    def needs(self, server: str) -> bool:
        """Whether its process must keep running without a request to answer."""
        ...


class SilentPeer:
    """Ignores notifications and answers nothing but pings."""

    async def on_request(self, server: str, method: str, params: Raw) -> Raw:
        if method == "ping":
            return {}
        raise MCPError(mcp_types.METHOD_NOT_FOUND, "Method not found", method)

    async def on_notification(self, server: str, method: str, params: Raw) -> None:
        pass

    def needs(self, server: str) -> bool:
        return False
