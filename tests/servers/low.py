"""A server of the SDK's low level, over stdio: it lists tools in pages and tells of changes before it answers."""

import anyio
import mcp_types
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server


async def list_tools(_, params: mcp_types.PaginatedRequestParams | None) -> mcp_types.ListToolsResult:
    first = params is None or params.cursor is None
    tool = mcp_types.Tool(name="first" if first else "second", description="Of the low level.", input_schema={"type": "object"})
    return mcp_types.ListToolsResult(tools=[tool], next_cursor="more" if first else None)


async def call_tool(_, params: mcp_types.CallToolRequestParams) -> mcp_types.CallToolResult:
    content = [mcp_types.TextContent(type="text", text=params.name)]
    return mcp_types.CallToolResult(content=content, structured_content={"name": params.name}, is_error=params.name == "second")


async def main() -> None:
    server = Server("low", version="7", on_list_tools=list_tools, on_call_tool=call_tool)
    async with stdio_server() as (incoming, outgoing):
        await server.run(incoming, outgoing, server.create_initialization_options())


anyio.run(main)
