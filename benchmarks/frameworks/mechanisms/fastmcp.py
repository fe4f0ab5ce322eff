"""FastMCP's response limiting cuts a result. Once with its own limit of 1 MB, once with that of Overspill."""

from __future__ import annotations

from functools import partial
from typing import Any

from fastmcp import FastMCP
from fastmcp.server.middleware.response_limiting import ResponseLimitingMiddleware

from benchmarks.frameworks.mechanisms import Mechanism
from tests.integrations.drivers.fastmcp import McpAgent


def make_agent(functions: Any, script: Any, **limits: Any) -> McpAgent:
    server = FastMCP("server")
    for each in functions:
        server.tool(each)
    server.add_middleware(ResponseLimitingMiddleware(**limits))
    return McpAgent(server, script)


MECHANISMS = [
    Mechanism("FastMCP's response limiting, 1 MB", make_agent),
    Mechanism("FastMCP's response limiting, 12 KB", partial(make_agent, max_size=12_288)),
]
