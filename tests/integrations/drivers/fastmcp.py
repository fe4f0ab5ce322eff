"""FastMCP: a server with the middleware, and a client that makes the calls of the script."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any

import anyio
from fastmcp import Client, FastMCP
from fastmcp.exceptions import ToolError
from fastmcp.utilities.types import Image

from overspill.integrations.fastmcp import OverspillMiddleware
from tests.integrations.driving import Call, Request, Script


class McpAgent:
    """The least that a client's agent does: it sends the calls of each turn and shows the model the results."""

    def __init__(self, server: FastMCP, script: Script) -> None:
        self._server = server
        self._script = script

    async def run(self, prompt: str, conversation: str = "") -> str:
        results: dict[str, str] = {}
        images: list[str] = []
        # A session of its own for each client, as with the handshake. Newer connections have none in memory.
        async with Client(self._server, mode="legacy") as client:
            while True:
                tools = {
                    each.name: [each.description, each.input_schema, each.output_schema] for each in await client.list_tools()
                }
                text = "\n".join([prompt, *results.values()])
                step = self._script(Request(tools, dict(results), text, len(results), list(images)))
                if isinstance(step, str):
                    return step

                async def call(each: Call) -> None:
                    results[each.id], shown = await _call(client, each, {"conversation": conversation} if conversation else None)
                    images.extend(shown)

                async with anyio.create_task_group() as group:
                    for each in step:
                        group.start_soon(call, each)

    def run_sync(self, prompt: str) -> str:
        return anyio.run(self.run, prompt)

    async def stream(self, prompt: str) -> AsyncIterator[str]:
        yield await self.run(prompt)


async def _call(client: Client[Any], call: Call, meta: dict[str, Any] | None) -> tuple[str, list[str]]:
    try:
        result = await client.call_tool(call.name, dict(call.args), meta=meta)
    except ToolError as error:
        return f"error: {error}", []
    images = [block.data for block in result.content if block.type == "image"]
    return "\n".join(block.text for block in result.content if block.type == "text"), images


def find_conversation(context: Any) -> str | None:
    return (context.fastmcp_context.request_context.meta or {}).get("conversation")


class Driver:
    def agent(self, functions: Sequence[Callable[..., Any]], script: Script, *, bare: bool = False, **options: Any) -> Any:
        """A client that goes on says so with its calls. Other clients are told apart by their MCP sessions."""
        server = FastMCP("server")
        for each in functions:
            server.tool(each)
        if not bare:
            server.add_middleware(OverspillMiddleware(conversation=find_conversation, **options))
        return McpAgent(server, script)

    def make_result(self, text: str, image: bytes) -> Any:
        return [text, Image(data=image, format="png")]

    def run_page(self, source: str, script: Script) -> str:
        program: dict[str, Any] = {"__name__": "page"}
        exec(compile(source, "page", "exec"), program)  # noqa: S102
        return McpAgent(program["mcp"], script).run_sync("Which order was refused?")


DRIVER = Driver()
