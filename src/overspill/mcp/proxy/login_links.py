"""Offer the link to a login to a client that can show one. Such a client asks its user before it opens anything."""

from __future__ import annotations

from collections.abc import Mapping
from uuid import uuid4

import anyio
import anyio.abc
from mcp.shared.exceptions import MCPError

from overspill.errors import ServerError
from overspill.mcp.client.connection import as_mapping
from overspill.mcp.client.login.storage import LoginStore
from overspill.mcp.client.server import Server
from overspill.mcp.proxy.client_request import ClientRequest


class LoginLinks:
    def __init__(self, environ: Mapping[str, str], group: anyio.abc.TaskGroup, greeted: anyio.Event) -> None:
        self._store = LoginStore(environ)
        self._group = group
        self._greeted = greeted
        self._offered: set[str] = set()
        """Servers whose link the user has received or declined."""

    def offer(self, server: Server, channel: ClientRequest | None) -> None:
        """Offer the link, but only to a client that started the proxy: the browser must return to the same machine."""
        capabilities = as_mapping(channel.params.get("capabilities")) if channel and channel.http_request is None else {}
        if channel and "url" in as_mapping(capabilities.get("elicitation")) and server.name not in self._offered:
            self._offered.add(server.name)
            self._group.start_soon(self._log_in, server, channel)

    async def _log_in(self, server: Server, channel: ClientRequest) -> None:
        from overspill.mcp.client.login.flow import log_in  # noqa: PLC0415  # with a library for signatures, which is slow

        id, name, outbound = uuid4().hex, server.name, channel.connection.outbound

        async def show(url: str) -> None:
            text = f"The server {name} needs a login. This link leads to its login page."
            params = {"mode": "url", "message": text, "url": url, "elicitationId": id}
            if (await outbound.send_raw_request("elicitation/create", params)).get("action") != "accept":
                raise ServerError(f"The login at {name} was declined.")

        await self._greeted.wait()
        try:
            await log_in(server.config, self._store, show)
            await outbound.notify("notifications/elicitation/complete", {"elicitationId": id})
            self._offered.discard(name)
        except (MCPError, ServerError, OSError) as problem:
            server.log(str(problem) if isinstance(problem, ServerError) else f"The link to log in to {name} did not work.")
