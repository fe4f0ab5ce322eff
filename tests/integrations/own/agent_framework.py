"""What only the Agent Framework has: content that is not text, tools of a run, approvals."""

from __future__ import annotations

from typing import Any

from agent_framework import Agent, Content, tool

from overspill import Settings
from overspill.integrations.agent_framework import OverspillMiddleware
from tests.integrations.drivers.agent_framework import ScriptedClient
from tests.integrations.driving import Call, Scripted
from tests.integrations.suite import LOG, read_log, settings

__all__ = ["settings"]


def make_agent(script: Any, tools: list[Any], settings: Settings) -> Agent:
    return Agent(ScriptedClient(script), tools=tools, middleware=[OverspillMiddleware(settings=settings)])


async def test_an_image_stays_beside_a_text_that_is_stored(settings: Settings):
    def look() -> list[Content]:
        """Look."""
        return [Content.from_text(LOG), Content.from_data(b"png", "image/png")]

    response = await make_agent(Scripted([Call("look")], "done"), [look], settings).run("Look.")
    (result,) = [each for message in response.messages for each in message.contents if each.type == "function_result"]
    assert [each.type for each in result.items] == ["text", "data"]
    assert "stored as out_" in result.items[0].text


async def test_tools_of_a_run_are_served_too(settings: Settings):
    script = Scripted([Call("read_log")], "done")
    await make_agent(script, [], settings).run("Read it.", tools=read_log)
    assert "stored as out_" in script.last.results["c1"]
    assert "get_tool_output" in script.requests[0].tools


async def test_a_tool_that_needs_approval_waits_for_it(settings: Settings):
    @tool(approval_mode="always_require")
    def delete() -> str:
        """Delete everything."""
        return "deleted"

    agent = make_agent(Scripted([Call("delete")], lambda request: request.results["c1"]), [delete], settings)
    session = agent.create_session()
    asked = await agent.run("Delete it.", session=session)
    (request,) = asked.user_input_requests
    assert (await agent.run(request.to_function_approval_response(True), session=session)).text == "deleted"
