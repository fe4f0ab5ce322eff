"""How many sessions one token may have. As many as it takes to see that over HTTP would be as many servers."""

from collections.abc import Mapping

import httpx2
import pytest
from starlette.responses import PlainTextResponse

from overspill.mcp.client.config import ServerConfig
from overspill.mcp.client.handshake import ClientIdentity
from overspill.mcp.host_configs.hub_clients import identify_token
from overspill.mcp.proxy.guard import Guard, Principals
from overspill.mcp.proxy.options import ProxyOptions
from overspill.mcp.proxy.served_clients import open_clients
from overspill.settings import Settings

pytestmark = pytest.mark.anyio
HOST = "127.0.0.1:8850"


async def ask(sessions: int, **headers: str) -> httpx2.Response:
    ann = identify_token(b"ann's")
    options = ProxyOptions({"every": ServerConfig("every", command="every")}, {})
    async with open_clients(Settings(store="memory:"), options, {}, lambda _: None, principals=[ann]) as clients:
        if session := headers.get("mcp-session-id"):
            await clients[ann].find(session, ClientIdentity())
        clients[ann].sessions = sessions
        principals = Principals(lambda _: None, options.gone_after, clients)
        return await call(Guard(PlainTextResponse("let in"), principals, {HOST}, set[str](), lambda: False), headers)


async def call(guard: Guard, headers: Mapping[str, str]) -> httpx2.Response:
    async with httpx2.AsyncClient(transport=httpx2.ASGITransport(guard), base_url=f"http://{HOST}") as http:
        return await http.post("/mcp", headers={"Authorization": "Bearer ann's", **headers})


async def test_a_token_with_too_many_sessions_opens_no_more_but_keeps_its_own():
    assert (await ask(255)).text == "let in"
    refused = await ask(256)
    assert (refused.status_code, refused.headers["retry-after"]) == (429, "1")
    assert refused.text == "This token has 256 sessions open. Try again when one of them ends."
    assert (await ask(256, **{"mcp-protocol-version": "2025-11-25"})).status_code == 429
    assert (await ask(256, **{"mcp-session-id": "one of them"})).text == "let in"
    assert (await ask(256, **{"mcp-protocol-version": "2026-07-28"})).text == "let in"
