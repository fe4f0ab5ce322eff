"""What only the OpenAI Agents SDK has: a filter for what the model reads, and MCP servers."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

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
from tests.integrations.suite_searching import check_secret, delete, make_many, spy

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


async def test_the_model_searches_for_tools_of_functions_and_servers():
    searching = Settings(toolSearch="on", truncation={"overrides": {"read_page": {"toolSearch": "off"}}})
    script = Scripted(
        [Call("find_tools", {"query": "add two numbers"}, "c1")],
        [Call("call_tool", {"name": "add", "arguments": {"a": 2, "b": 3}}, "c2"), Call("call_tool", {"name": "no"}, "c3")],
        lambda request: str(request.results),
    )
    root = str(Path(__file__).parents[3])
    async with MCPServerStdio({"command": sys.executable, "args": ["-c", SERVER], "cwd": root}) as server:
        agent = Agent(
            "agent", model=ScriptedModel(script), tools=[function_tool(read_page, strict_mode=False)], mcp_servers=[server]
        )
        ours = overspill_agent(agent, settings=searching, tool_search=True)
        said = (await Runner.run(ours, "Add them.", run_config=RunConfig(tracing_disabled=True))).final_output
    offered = ("find_tools", "describe_tools", "call_tool", "read_page", "get_tool_output")
    assert {frozenset(each.tools) - {"run_program"} for each in script.requests} == {frozenset(offered)}
    assert "add(a: int, b: int)" in script.requests[1].results["c1"]
    assert "5" in script.requests[2].results["c2"]
    assert "no tool" in said


async def test_the_model_cannot_get_round_an_approval_by_searching_for_the_tool():
    script = Scripted(
        [Call("call_tool", {"name": "delete", "arguments": {"name": "7"}}, "c1")], [Call("delete", {"name": "7"}, "c2")]
    )
    tools = [function_tool(delete, needs_approval=True), function_tool(read_page, strict_mode=False)]
    agent = overspill_agent(
        Agent("agent", model=ScriptedModel(script), tools=tools), settings=Settings(toolSearch="on"), tool_search=True
    )
    run = await Runner.run(agent, "Delete it.", run_config=RunConfig(tracing_disabled=True))
    assert "delete" in script.requests[0].tools
    assert "deleted" not in script.last.results["c1"]
    assert [each.name for each in run.interruptions] == ["delete"]


async def test_an_agent_cannot_call_the_tools_of_the_one_that_handed_off_to_it():
    script = Scripted(
        [Call("transfer_to_guest", {}, "c0")],
        [Call("call_tool", {"name": "delete", "arguments": {"name": "7"}}, "c1")],
        [Call("call_tool", {"name": "read_page", "arguments": {"number": 1}}, "c2")],
        "done",
    )
    guest = Agent("guest", model=ScriptedModel(script), tools=[function_tool(read_page, strict_mode=False)])
    host = Agent("host", model=ScriptedModel(script), tools=[function_tool(delete)], handoffs=[guest])
    agent = overspill_agent(host, settings=Settings(toolSearch="on"), tool_search=True)
    await Runner.run(agent, "Delete it.", run_config=RunConfig(tracing_disabled=True))
    assert "no tool 'delete'" in script.last.results["c1"]
    assert script.last.results["c2"] == read_page(1)


async def test_no_user_is_shown_the_tools_of_another():
    def is_admin(context: Any, agent: Any) -> bool:
        return context.context == "admin"

    script = spy()
    tools = [function_tool(delete, is_enabled=is_admin), *map(function_tool, make_many(3))]
    agent = Agent("agent", model=ScriptedModel(script), tools=tools)
    ours = overspill_agent(agent, settings=Settings(toolSearch="on"), tool_search=True)
    for user in ("admin", "guest"):
        await Runner.run(ours, "Delete it.", context=user, run_config=RunConfig(tracing_disabled=True))
    check_secret(script)
