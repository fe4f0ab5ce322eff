"""FastMCP's code mode in front of one server: run programs, print what each ended with.

    python fastmcp_host.py COMMAND ARGS… < programs.json

Reads `{name: [lines, expression]}`, prints one `{"name": …, "value": …}` or `{"name": …, "error": …}` a line.
"""

import asyncio
import json
import re
import sys

from fastmcp import Client
from fastmcp.client.transports import StdioTransport
from fastmcp.experimental.transforms.code_mode import CodeMode
from fastmcp.server import create_proxy

CALL = re.compile(r'call\("(\w+)"(?:, (\w+)=(\w+))?\)')


def spell(found: re.Match[str]) -> str:
    name, key, value = found.groups()
    return f'call_tool("{name}", {{{f"{chr(34)}{key}{chr(34)}: {value}" if key else ""}}})'


async def main() -> None:
    programs = json.load(sys.stdin)
    async with Client(StdioTransport(sys.argv[1], sys.argv[2:])) as backend:
        server = create_proxy(backend)
        server.add_transform(CodeMode())
        await run(Client(server), programs)


async def run(opening: Client, programs: dict[str, tuple[str, str]]) -> None:
    async with opening as client:
        for name, (lines, expression) in programs.items():
            code = CALL.sub(spell, f"{lines}\nreturn {expression}")
            result = await client.call_tool_mcp("execute", {"code": code})
            text = "".join(getattr(block, "text", "") for block in result.content)
            structured = result.structured_content
            value = structured["result"] if structured and "result" in structured else text
            said = {"error": text[:500]} if result.is_error else {"value": value}
            print(json.dumps({"name": name, **said}), flush=True)


asyncio.run(main())
