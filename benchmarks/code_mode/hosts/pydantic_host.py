"""Pydantic's harness in front of one server, in code mode. Reads and prints as `fastmcp_host.py` does. Its model is scripted."""

import asyncio
import json
import re
import sys
from typing import Any

from fastmcp.client.transports import StdioTransport
from pydantic_ai import Agent
from pydantic_ai.mcp import MCPToolset
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart, ToolReturnPart
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai_harness import CodeMode

CALL = re.compile(r'call\("(\w+)"(?:, )?')


async def main() -> None:
    programs = json.load(sys.stdin)
    asked: list[str] = []
    ended: dict[str, Any] = {}

    def answer(messages: list[ModelMessage], _: AgentInfo) -> ModelResponse:
        for part in messages[-1].parts:
            if isinstance(part, ToolReturnPart):
                ended["value" if part.outcome == "success" else "error"] = part.content
        return ModelResponse([TextPart("done")] if ended else [ToolCallPart("run_code", {"code": asked[-1]})])

    toolset = MCPToolset(StdioTransport(sys.argv[1], sys.argv[2:]), init_timeout=120)
    agent = Agent(FunctionModel(answer), toolsets=[toolset], capabilities=[CodeMode()])
    async with agent:
        for name, (lines, expression) in programs.items():
            asked.append(CALL.sub(r"\1(", f"{lines}\nprogram_result = {expression}\nprogram_result"))
            ended.clear()
            try:
                await agent.run("Go.")
            except Exception as error:
                ended["error"] = f"{type(error).__name__}: {error}"[:500]
            print(json.dumps({"name": name, **ended}), flush=True)


asyncio.run(main())
