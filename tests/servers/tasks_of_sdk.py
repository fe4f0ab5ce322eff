"""Tasks of 2025-11-25, made by the SDK 1.30. `python tasks_of_sdk.py NAME [ID]`: with an id, every task gets that one.

With `client COMMAND …` it is a client of the same SDK, which starts a task, follows it and prints what it got.
"""

import asyncio
import sys
import warnings
from typing import Any

from mcp import ClientSession, StdioServerParameters, stdio_client, types
from mcp.server.experimental.task_context import ServerTaskContext
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server

SCHEMA = {"type": "object", "properties": {"lines": {"type": "integer"}}}
server: Server[Any, Any] = Server("work")
server.experimental.enable_tasks()
released = asyncio.Event()


@server.list_tools()
async def list_tools() -> list[types.Tool]:
    kinds = {"report": "required", "wait": "optional", "confirm": "required", "fail": "required", "release": "forbidden"}
    return [
        types.Tool(name=name, inputSchema=SCHEMA, execution=types.ToolExecution(taskSupport=support))
        for name, support in kinds.items()
    ]


def text(words: str) -> types.CallToolResult:
    return types.CallToolResult(content=[types.TextContent(type="text", text=words)])


@server.call_tool()
async def call_tool(name: str, arguments: dict[str, Any]) -> Any:
    if name == "release":
        released.set()
        return text("released")

    async def work(task: ServerTaskContext) -> types.CallToolResult:
        if name == "fail":
            raise ValueError("no more coal")
        if name == "wait":
            await task.update_status("waiting for a word", notify=True)
            await released.wait()
        if name == "confirm":
            asked = await task.elicit(message="Go on?", requestedSchema={"type": "object", "properties": {}})
            return text(asked.action)
        lines = (f"line {number} of {sys.argv[1]}\n" for number in range(arguments.get("lines", 1)))
        return text("".join(lines))

    warnings.simplefilter("ignore", DeprecationWarning)
    return await server.request_context.experimental.run_task(work, task_id=sys.argv[2] if len(sys.argv) > 2 else None)


async def serve() -> None:
    async with stdio_server() as (read, write):
        await server.run(read, write, server.create_initialization_options())


async def call(command: list[str]) -> None:
    parameters = StdioServerParameters(command=command[0], args=command[1:], env={"OVERSPILL_HUB": "off"})
    async with stdio_client(parameters) as (read, write), ClientSession(read, write) as session:
        await session.initialize()
        started = await session.experimental.call_tool_as_task("report", {"lines": 8000})
        async for task in session.experimental.poll_task(started.task.taskId):
            print(task.status)
        result = await session.experimental.get_task_result(started.task.taskId, types.CallToolResult)
        print([each.taskId == started.task.taskId for each in (await session.experimental.list_tasks()).tasks])
        print(result.content[0].text)


if __name__ == "__main__":
    asyncio.run(call(sys.argv[2:]) if sys.argv[1] == "client" else serve())
