"""What OpenTelemetry costs a small call when no provider is configured, beside a call through an in-memory MCP client and server.

.venv/bin/python benchmarks/gate/otel.py
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Awaitable, Callable

import anyio
from mcp import Client
from mcp.server.mcpserver import MCPServer

from overspill.record.otel import OpenTelemetry
from overspill.session.session import Session
from overspill.settings import Settings

ROUNDS = 60
CALLS = 50
SMALL = "x" * 2048


async def mean_us(work: Callable[[], Awaitable[object]]) -> float:
    """Of processor time in this thread."""
    started = time.thread_time()
    for _ in range(CALLS):
        await work()
    return (time.thread_time() - started) / CALLS * 1e6


async def main() -> None:
    async def tool(q: str) -> str:
        return SMALL

    server = MCPServer("bench")
    server.tool(name="t")(tool)
    settings = Settings(**{"async": False})
    async with (
        Client(server) as client,
        Session(settings) as plain,
        Session(settings, observers=[OpenTelemetry()]) as traced,
    ):
        added: list[float] = []
        calls: list[float] = []
        for _ in range(ROUNDS):  # interleaved, to spread other load on the machine over all three
            calls.append(await mean_us(lambda: client.call_tool("t", {"q": "a"})))
            without = await mean_us(lambda: plain.call("t", {"q": "a"}, tool))
            added.append(await mean_us(lambda: traced.call("t", {"q": "a"}, tool)) - without)
    mcp, more = statistics.median(calls), statistics.median(added)
    print(f"otel     adds {more:6.2f} us   mcp call {mcp:7.1f} us   ratio {more / mcp:6.2%}   (at most 1 %)")


if __name__ == "__main__":
    anyio.run(main)
