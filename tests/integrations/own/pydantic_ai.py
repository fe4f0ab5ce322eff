"""What only some adapters have, for Pydantic AI: its models search for tools."""

from __future__ import annotations

from typing import Any

from pydantic_ai import Agent, DeferredToolRequests, Tool

from overspill import Settings
from overspill.integrations.pydantic_ai import Overspill
from tests.integrations.drivers.pydantic_ai import make_model
from tests.integrations.driving import Call, Scripted
from tests.integrations.suite import LOG


def read_log() -> str:
    """Read the log."""
    return LOG


def make_many(count: int) -> list[Any]:
    def make(number: int) -> Any:
        async def run(text: str) -> str:
            return f"{number}: {text}"

        return Tool(run, name=f"send_{number}", description=f"Send a text to room {number}.")

    return [make(number) for number in range(count)]


async def test_the_model_searches_for_tools_and_calls_them_by_their_own_names():
    searching = Settings(toolSearch="on", truncation={"overrides": {"read_log": {"toolSearch": "off"}}})
    script = Scripted(
        [Call("find_tools", {"query": "text to room 7"}, "c1")],
        [Call("call_tool", {"name": "send_7", "arguments": {"text": "hello"}}, "c2"), Call("read_log", {}, "c3")],
        [Call("call_tool", {"name": "no", "arguments": {}}, "c4")],
        lambda request: str(request.results),
    )
    agent = Agent(
        make_model(script), tools=[*make_many(30), read_log], capabilities=[Overspill(settings=searching, tool_search=True)]
    )
    said = (await agent.run("Say hello in room 7")).output
    ours = ("find_tools", "describe_tools", "call_tool", "read_log", "get_tool_output")
    assert {frozenset(each.tools) - {"run_program"} for each in script.requests} == {frozenset(ours)}
    assert "send_7(text: str)" in script.requests[1].results["c1"]
    assert script.requests[2].results["c2"] == "7: hello"
    assert "stored as out_" in script.requests[2].results["c3"]
    assert "no tool" in said


async def test_the_model_cannot_get_round_an_approval_by_searching_for_the_tool():
    def delete(name: str) -> str:
        """Delete a room."""
        return f"deleted {name}"

    called = [Call("call_tool", {"name": "delete", "arguments": {"name": "7"}}, "c1")]
    script = Scripted(called, [Call("delete", {"name": "7"}, "c2")])
    tools = [Tool(delete, requires_approval=True), *make_many(2)]
    search = Overspill(settings=Settings(toolSearch="on"), tool_search=True)
    agent = Agent(make_model(script), tools=tools, capabilities=[search], output_type=[str, DeferredToolRequests])
    asked = (await agent.run("Delete it.")).output
    assert "delete" in script.requests[0].tools
    assert "deleted" not in script.last.results["c1"]
    assert isinstance(asked, DeferredToolRequests)
    assert [each.tool_name for each in asked.approvals] == ["delete"]


async def test_short_lists_of_tools_are_offered_as_they_are():
    script = Scripted([Call("send_1", {"text": "a"})], lambda request: request.results["c1"])
    agent = Agent(make_model(script), tools=make_many(2), capabilities=[Overspill(tool_search=True)])
    assert (await agent.run("Go")).output == "1: a"
    assert not {"find_tools", "call_tool"} & {*script.requests[0].tools}
