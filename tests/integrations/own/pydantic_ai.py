"""What only some adapters have, for Pydantic AI: its models search for tools."""

from __future__ import annotations

from typing import Any

from pydantic_ai import Agent, DeferredToolRequests, Tool

from overspill import Settings
from overspill.integrations.pydantic_ai import Overspill
from tests.integrations.drivers.pydantic_ai import make_model
from tests.integrations.driving import Call, Scripted
from tests.integrations.suite_searching import check_secret, delete, make_many, spy


async def test_the_model_cannot_get_round_an_approval_by_searching_for_the_tool():
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


async def test_no_user_is_shown_the_tools_of_another():
    async def prepare(context: Any, tool: Any) -> Any:
        return tool if context.deps == "admin" else None

    search, script = Overspill(settings=Settings(toolSearch="on"), tool_search=True), spy()
    tools = [Tool(delete, prepare=prepare), *make_many(3)]
    agent = Agent(make_model(script), tools=tools, capabilities=[search], deps_type=str)
    for user in ("admin", "guest"):
        await agent.run("Delete it.", deps=user)
    check_secret(script)
