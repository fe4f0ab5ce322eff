"""What only FastMCP has: clients that nothing identifies, and lists of tools that are older than the server."""

from __future__ import annotations

from pathlib import Path

import pytest
from fastmcp import Client, FastMCP
from fastmcp.exceptions import ToolError

from overspill import Settings
from overspill.integrations.fastmcp import OverspillMiddleware
from tests.integrations.suite import LINES, read_log


def make_server(place: Path) -> FastMCP:
    server = FastMCP("server")
    server.tool(read_log)
    settings = Settings(storeDir=str(place), intent="ask", intentWithinSecs=30)
    server.add_middleware(OverspillMiddleware(settings=settings))
    return server


async def test_a_client_that_nothing_identifies_may_say_what_it_is_looking_for(tmp_path: Path):
    async with Client(make_server(tmp_path)) as client:
        listed = {each.name: each for each in await client.list_tools()}
        assert "looking_for" in listed["read_log"].input_schema["properties"]
        result = await client.call_tool("read_log", {"looking_for": "request 004711"})
    assert LINES[4_711] in result.content[0].text


async def test_a_client_need_not_list_the_tools_again(tmp_path: Path):
    async with Client(make_server(tmp_path), mode="legacy") as client:
        result = await client.call_tool("read_log", {"looking_for": "request 004711"})
    assert LINES[4_711] in result.content[0].text
    assert len(result.content[0].text) < 10_000


async def test_a_tool_that_does_not_exist_is_refused_as_always(tmp_path: Path):
    async with Client(make_server(tmp_path), mode="legacy") as client:
        with pytest.raises(ToolError, match="nonsense"):
            await client.call_tool("nonsense", {"looking_for": "request 004711"})
