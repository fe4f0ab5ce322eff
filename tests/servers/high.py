"""A server as most are: the high-level one of the SDK, over stdio or, with `http PORT`, streamable HTTP on loopback."""

import json
import os
import sys
from pathlib import Path

import anyio
import uvicorn
from mcp.server.mcpserver import Context, MCPServer

server = MCPServer("high", instructions="A server of the SDK.", log_level="ERROR")


@server.tool()
def echo(words: str) -> str:
    """Says the same."""
    return words


@server.tool()
def large(size: int) -> str:
    return "x" * size


@server.tool()
async def steps(count: int, context: Context) -> str:
    for step in range(count):
        await context.report_progress(step, count)
    return "done"


@server.tool()
async def hang(path: str) -> str:
    """Makes a file `path` when it begins, and writes into it when it is cancelled."""
    file = Path(path)
    file.touch()
    try:
        await anyio.sleep_forever()
    finally:
        file.write_text("cancelled")
    return ""


@server.tool()
def headers(context: Context) -> str:
    return json.dumps(dict(context.headers or {}))


@server.tool()
def die() -> None:
    os._exit(5)


if "http" in sys.argv:
    port = int(sys.argv[sys.argv.index("http") + 1])
    app = server.streamable_http_app(json_response="json" in sys.argv, stateless_http="stateless" in sys.argv)
    config = uvicorn.Config(app, host="127.0.0.1", port=port, log_level="error", timeout_graceful_shutdown=0)
    listening = config.bind_socket()
    listening.listen()
    print(listening.getsockname()[1], flush=True)
    uvicorn.Server(config).run(sockets=[listening])
else:
    server.run()
