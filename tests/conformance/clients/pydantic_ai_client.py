"""An agent of Pydantic AI. `pydantic_ai_client.py TOOLS COMMAND ARGS…` calls each tool once and says as JSON what its model is
then shown. It runs in an environment of its own, with the client that Pydantic AI wants."""

import asyncio
import json
import os
import sys

from fastmcp.client.transports import StdioTransport
from pydantic_ai import Agent
from pydantic_ai.mcp import MCPToolset
from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart, ToolReturnPart
from pydantic_ai.models.function import FunctionModel


async def main(tools: str, command: str, *args: str) -> None:
    shown: dict[str, str] = {}

    async def model(messages, info) -> ModelResponse:
        for part in messages[-1].parts:
            if isinstance(part, ToolReturnPart):
                shown[part.tool_name] = part.model_response_str()
        calls = [ToolCallPart(tool, {}) for tool in json.loads(tools) if tool not in shown]
        return ModelResponse(parts=calls[:1] or [TextPart("done")])

    toolset = MCPToolset(StdioTransport(command, list(args), env=dict(os.environ)), init_timeout=60)  # for busy machines
    await Agent(FunctionModel(model), toolsets=[toolset]).run("Call every tool.")
    print(json.dumps(shown))


asyncio.run(main(*sys.argv[1:]))
