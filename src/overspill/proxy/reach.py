"""How long a request waits for a server that is not up. Nothing of ours may take longer than 45 seconds."""

from __future__ import annotations

from overspill.mcp_client import Link, Server

_BRIEFLY = 3.0
_LONG = 30.0


async def reach(server: Server, failed: float = _BRIEFLY) -> Link:
    """One that is starting is waited for longer than one that has failed and will be started again."""
    return await server.link(failed if server.problem else _LONG)
