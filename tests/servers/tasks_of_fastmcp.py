"""A server of FastMCP that makes tasks, or with `client COMMAND …` a client that follows them and prints what it got."""

import asyncio
import sys

from fastmcp import Client, FastMCP
from fastmcp.client.transports import StdioTransport
from fastmcp_tasks import TasksExtension

server = FastMCP("work")
server.add_extension(TasksExtension())


@server.tool(task=True)
async def report(seconds: float = 0.0, lines: int = 8000) -> str:
    await asyncio.sleep(seconds)
    return "".join(f"line {number}: the quick brown fox\n" for number in range(lines))


async def call(command: list[str]) -> None:
    async with Client(StdioTransport(command[0], command[1:])) as client:
        result = await client.call_tool("wait", {"file": command[-1]})
        print(result.content[0].text)


if __name__ == "__main__":
    asyncio.run(call(sys.argv[2:])) if sys.argv[1:2] == ["client"] else server.run(show_banner=False)
