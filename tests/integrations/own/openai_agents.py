"""What only the OpenAI Agents SDK has: a filter for what the model reads, and MCP servers."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from agents import Agent, RunConfig, Runner, function_tool
from agents.mcp import MCPServerStdio
from agents.run_config import CallModelData, ModelInputData

from overspill import Session, Settings
from overspill.integrations.openai_agents import overspill_agent
from tests.integrations.drivers.openai_agents import ScriptedModel
from tests.integrations.driving import Call, Request, Scripted
from tests.integrations.suite import NEEDLE, extract, settings
from tests.integrations.suite_conversations import WINDOW, find_replaced, read_page, read_pages

__all__ = ["settings"]


async def test_a_filter_replaces_old_results(settings: Settings):
    script = read_pages(lambda request: ", ".join(find_replaced(request)))
    tools = [function_tool(read_page, strict_mode=False)]
    async with Session(settings) as session:

        async def compact_input(data: CallModelData[None]) -> ModelInputData:
            items = await session.compact(data.model_data.input, WINDOW, threshold=0.6)
            return ModelInputData(items, data.model_data.instructions)

        agent = overspill_agent(Agent("agent", model=ScriptedModel(script), tools=tools), session=session)
        config = RunConfig(tracing_disabled=True, call_model_input_filter=compact_input)
        run = await Runner.run(agent, "Read all pages.", run_config=config, max_turns=30)
    assert run.final_output.startswith("c0, c1")


SERVER = """
from mcp.server import MCPServer
from tests.integrations.suite import read_log

server = MCPServer("logs")
server.tool()(read_log)


@server.tool()
def add(a: int, b: int) -> int:
    "Add two numbers."
    return a + b


server.run()
"""


def find_tool(request: Request, ending: str) -> str:
    return next(name for name in request.tools if name.endswith(ending))


@pytest.mark.parametrize("prefix", [False, True])
async def test_results_of_mcp_servers_go_through_overspill_too(settings: Settings, prefix: bool):
    script = Scripted(
        lambda request: [Call(find_tool(request, "add"), {"a": 2, "b": 3}, "c0")],
        lambda request: [Call(find_tool(request, "read_log"))],
        lambda request: extract(request, "the order that was refused"),
        lambda request: request.results["c2"],
    )
    root = str(Path(__file__).parents[3])
    async with MCPServerStdio({"command": sys.executable, "args": ["-c", SERVER], "cwd": root}, name="logs") as server:
        agent = Agent(
            "agent", model=ScriptedModel(script), mcp_servers=[server], mcp_config={"include_server_in_tool_names": prefix}
        )
        wrapped = overspill_agent(agent, settings=settings)
        run = await Runner.run(wrapped, "Read the log.", run_config=RunConfig(tracing_disabled=True))
    assert NEEDLE in run.final_output
    assert "5" in script.requests[1].results["c0"]
    assert len(script.last.results["c1"]) < 10_000
