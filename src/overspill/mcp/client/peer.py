"""Who receives messages that a server sends unprompted."""

from __future__ import annotations

import mcp_types
from mcp.shared.exceptions import MCPError

from overspill.mcp.client.framing import Raw


class Peer:
    """Receives what a server sends unprompted. This one ignores notifications and answers nothing but pings."""

    async def on_request(self, server: str, method: str, params: Raw) -> Raw:
        """Return the answer, or raise MCPError."""
        if method == "ping":
            return {}
        raise MCPError(mcp_types.METHOD_NOT_FOUND, "Method not found", method)

    async def on_notification(self, server: str, method: str, params: Raw) -> None:
        pass

    def needs(self, server: str) -> bool:
        """Whether the server's process must keep running while it has no request to answer."""
        return False
