"""Days with tokens of ten minutes, at a server whose clock goes as ours does."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import httpx2
from login_servers import fastmcp_server, visit

from overspill.mcp.client.config import ServerConfig
from overspill.mcp.client.login.flow import log_in
from overspill.mcp.client.login.keeper import TokenKeeper
from overspill.mcp.client.login.storage import LoginStore

STEP = 450.0  # seconds: some calls come before a token ends, some after
DAY = 86_400.0


class Days(NamedTuple):
    logins: int
    calls: int
    refused: int
    tokens: int


async def live(folder: Path, days: float) -> Days:
    """A call every few minutes. A process starts anew every hundred calls."""
    environ, links, refused, tokens = {"XDG_DATA_HOME": str(folder)}, list[str](), 0, set[str]()

    async def show(link: str) -> None:
        links.append(link)
        await visit(link)

    with fastmcp_server(folder) as server:
        config = ServerConfig("notes", url=server.url)
        login = await log_in(config, LoginStore(environ), show)
        assert login.expires_at
        began, now, calls = login.expires_at - 600, [0.0], int(days * DAY / STEP)
        keeper = TokenKeeper(config, environ, clock=lambda: began + now[0])
        async with httpx2.AsyncClient(headers={"accept": "application/json, text/event-stream"}, timeout=60) as client:
            for step in range(1, calls + 1):
                now[0] = step * STEP
                server.set_ahead(now[0])
                if step % 100 == 0:
                    keeper = TokenKeeper(config, environ, clock=lambda: began + now[0])
                tokens.add(token := await keeper.get_token())
                given = {"authorization": f"Bearer {token}"}
                answer = await client.post(server.url, json={"jsonrpc": "2.0", "id": 1, "method": "ping"}, headers=given)
                refused += answer.status_code == 401
    return Days(len(links), calls, refused, len(tokens))
