"""A client of FastMCP. `fastmcp_reader.py URI COMMAND ARGS…` reads a resource, follows each link to a next part, and says as JSON
what each part contains. It runs in an environment of its own."""

import asyncio
import json
import os
import sys

from fastmcp import Client
from fastmcp.client.transports import StdioTransport


async def main(uri: str, command: str, *args: str) -> None:
    parts: list[str] = []
    async with Client(StdioTransport(command, list(args), env=dict(os.environ))) as client:
        while uri:
            part, *more = await client.read_resource(uri)
            parts.append(part.text)
            uri = str(more[0].uri) if more else ""
    print(json.dumps(parts))


asyncio.run(main(*sys.argv[1:]))
