"""How a client reaches a server, and who receives what the server sends unprompted."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import mcp_types
from mcp.shared.exceptions import MCPError
from msgspec import Struct, field

from overspill.mcp.client.config import ServerConfig
from overspill.mcp.client.handshake import ClientIdentity, Raw


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


class ServerAccess(Struct, frozen=True):
    """Which server a client connects to, as whom, and who hears what the server sends. A server process gets `environ`."""

    config: ServerConfig
    environ: Mapping[str, str]
    client: ClientIdentity = field(default_factory=ClientIdentity)
    peer: Peer = field(default_factory=Peer)
    log: Callable[[str], None] = lambda _: None

    def __repr__(self) -> str:
        return f"ServerAccess({self.config.name!r})"
