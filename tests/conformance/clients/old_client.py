"""A client written with an older SDK. `old_client.py CALLS COMMAND ARGS…` makes a small and a large call and says as JSON what
came of them. It runs in an environment of its own, with whichever version of the SDK that has."""

import asyncio
import json
import os
import re
import sys

from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client

SLICE = 3000


def words(result) -> str:
    return "".join(block.text for block in result.content if block.type == "text")


async def hear(session) -> None:
    """The first SDKs wait until somebody takes each notification."""
    if hasattr(session, "incoming_messages"):
        async for _ in session.incoming_messages:
            pass


async def main(calls: str, command: str, *args: str) -> None:
    small_call, large_call = json.loads(calls)
    started = StdioServerParameters(command=command, args=list(args), env=dict(os.environ))
    async with stdio_client(started) as streams, ClientSession(*streams) as session:
        hearing = asyncio.create_task(hear(session))
        greeting = await session.initialize()
        before = [tool.name for tool in (await session.list_tools()).tools]
        small = words(await session.call_tool(*small_call))
        told = words(await session.call_tool(*large_call))
        after = [tool.name for tool in (await session.list_tools()).tools]
        found = re.search(r"session-[0-9a-f-]{36}/[0-9a-f-]{36}|\bout_[0-9a-z]{6,12}\b", told)
        parts = []
        while found and (not parts or len(parts[-1]) == SLICE):
            part = {"start": SLICE * len(parts), "length": SLICE}
            parts.append(words(await session.call_tool("get_tool_output", {"id": found.group(), "mode": "slice", "slice": part})))
        hearing.cancel()
        print(
            json.dumps(
                {
                    "version": greeting.protocolVersion,
                    "server": greeting.serverInfo.name,
                    "tools": after,
                    "changed": after != before,
                    "small": small,
                    "large": "".join(parts) if found else told,
                }
            )
        )


asyncio.run(main(*sys.argv[1:]))
