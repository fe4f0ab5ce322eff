"""A server of the SDK whose tools have output schemas: a text, a structure, and one that never ends."""

import anyio
from mcp.server.mcpserver import MCPServer
from typing_extensions import TypedDict

LINES = "\n".join(f"line {number}: the quick brown fox" for number in range(1, 1001))
server = MCPServer("structured", log_level="ERROR")


class Page(TypedDict):
    title: str
    lines: list[str]


@server.tool()
def text() -> str:
    return LINES


@server.tool()
def page() -> Page:
    return {"title": "A page", "lines": LINES.splitlines()}


@server.tool()
async def forever() -> Page:
    await anyio.sleep_forever()
    raise AssertionError


server.run()
