"""LangChain's own client, which opens a session for each call. `langchain_client.py CONNECTION TOOL ARGUMENTS` makes one call and
writes the text that a model would get. It runs in an environment of its own."""

import asyncio
import json
import sys

from langchain_mcp_adapters.client import MultiServerMCPClient


async def main(connection: str, name: str, arguments: str) -> None:
    client = MultiServerMCPClient({"slow": json.loads(connection)})
    tools = {tool.name: tool for tool in await client.get_tools()}
    content = await tools[name].ainvoke(json.loads(arguments))
    sys.stdout.write("".join(block["text"] for block in content))


asyncio.run(main(*sys.argv[1:]))
