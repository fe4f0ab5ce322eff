"""A small MCP server for agents to use, over stdio or, with a port as argument, over HTTP."""

from __future__ import annotations

import sys

import anyio
from mcp.server.mcpserver import Image, MCPServer
from mcp.server.mcpserver.exceptions import ToolError

server = MCPServer("depot")
PIXEL = b"\x89PNG\r\n\x1a\n"


@server.tool(structured_output=False)
def log(lines: int) -> str:
    """The log of the depot, so many lines."""
    return "".join(f"{n:05} {'ERROR disk full' if n % 500 == 0 else 'parcel scanned'}\n" for n in range(1, lines + 1))


@server.tool(structured_output=False)
def rows(count: int) -> str:
    """Parcels as one line of JSON."""
    return "[" + ",".join(f'{{"parcel": {n}, "state": "{"lost" if n == 777 else "fine"}"}}' for n in range(count)) + "]"


@server.tool(structured_output=False)
def words(count: int) -> str:
    """So many words."""
    return " ".join(f"word{n}" for n in range(count))


@server.tool(structured_output=False)
async def slow(until: str, result: str = "done") -> str:
    """Returns when the file `until` is there; makes `until`.begun when it starts. Fails when the result is `broken`."""
    await anyio.Path(f"{until}.begun").touch()
    while not await anyio.Path(until).exists():  # noqa: ASYNC110 - another process makes it
        await anyio.sleep(0.01)
    if result == "broken":
        raise ToolError("the van broke down")
    return result


@server.tool(structured_output=False)
def fail() -> str:
    """Fails."""
    raise ToolError("no paper in the printer")


@server.tool(structured_output=False)
def picture() -> Image:
    """A picture."""
    return Image(data=PIXEL, format="png")


if __name__ == "__main__":
    if len(sys.argv) > 1:
        server.run("streamable-http", host="127.0.0.1", port=int(sys.argv[1]))
    else:
        server.run("stdio")
