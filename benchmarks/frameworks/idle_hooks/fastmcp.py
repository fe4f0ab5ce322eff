"""FastMCP: a middleware around each call and each list of tools."""

from __future__ import annotations

from typing import Any

from fastmcp import FastMCP
from fastmcp.server.middleware import Middleware

from tests.integrations.drivers.fastmcp import McpAgent


class Idle(Middleware):
    async def on_list_tools(self, context: Any, call_next: Any) -> Any:
        return await call_next(context)

    async def on_call_tool(self, context: Any, call_next: Any) -> Any:
        return await call_next(context)


def make_agent(functions: Any, script: Any) -> Any:
    server = FastMCP("server")
    for each in functions:
        server.tool(each)
    server.add_middleware(Idle())
    return McpAgent(server, script)
