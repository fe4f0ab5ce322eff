"""What only the Agent Framework has: content that is not text, tools of a run, approvals."""

from __future__ import annotations

from typing import Any

import pytest
from agent_framework import Agent, Content, FunctionMiddleware, tool

from overspill import Settings
from overspill.integrations.agent_framework import OverspillMiddleware
from tests.integrations.drivers.agent_framework import ScriptedClient
from tests.integrations.driving import Call, Scripted
from tests.integrations.suite import LOG, read_log, settings
from tests.integrations.suite_searching import check_secret, delete, make_many, spy

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


class Watcher(FunctionMiddleware):
    def __init__(self) -> None:
        self.seen: list[str] = []

    async def process(self, context: Any, call_next: Any) -> None:
        self.seen.append(context.function.name)
        await call_next()


@pytest.mark.parametrize("stream", [False, True])
async def test_the_model_searches_for_tools_and_calls_them_by_their_own_names(stream: bool):
    searching = Settings(toolSearch="on", truncation={"overrides": {"read_log": {"toolSearch": "off"}}})
    script = Scripted(
        [Call("find_tools", {"query": "text to room 7"}, "c1")],
        [Call("call_tool", {"name": "send_7", "arguments": {"text": "hello"}}, "c2"), Call("read_log", {}, "c3")],
        [Call("call_tool", {"name": "send_7", "arguments": {"words": 1}}, "c4"), Call("call_tool", {"name": "no"}, "c5")],
        "done",
    )
    watcher = Watcher()
    middleware = [watcher, OverspillMiddleware(settings=searching, tool_search=True)]
    agent = Agent(ScriptedClient(script), tools=[*make_many(30), read_log], middleware=middleware)
    if stream:
        assert "".join([update.text async for update in agent.run("Say hello in room 7", stream=True)]) == "done"
    else:
        assert (await agent.run("Say hello in room 7")).text == "done"
    assert {frozenset(each.tools) - {"run_program"} for each in script.requests} == {
        frozenset(("find_tools", "describe_tools", "call_tool", "read_log", "get_tool_output"))
    }
    results = script.last.results
    assert "send_7(text: str)" in results["c1"]
    assert results["c2"] == "7: hello"
    assert "stored as out_" in results["c3"]
    assert "text" in results["c4"]
    assert "no tool 'no'" in results["c5"]
    assert watcher.seen[:3] == ["find_tools", "send_7", "read_log"]
    assert "call_tool" in watcher.seen  # that of a tool that does not exist


async def test_a_tool_that_the_model_finds_waits_for_its_approval():
    called = Call("call_tool", {"name": "delete", "arguments": {"name": "7"}}, "c1")
    script = Scripted([called], lambda request: request.results["c1"])
    middleware = OverspillMiddleware(settings=Settings(toolSearch="on"), tool_search=True)
    agent = Agent(ScriptedClient(script), tools=[tool(delete, approval_mode="always_require")], middleware=[middleware])
    session = agent.create_session()
    asked = await agent.run("Delete room 7.", session=session)
    (request,) = asked.user_input_requests
    assert request.function_call.name == "delete"
    assert (await agent.run(request.to_function_approval_response(True), session=session)).text == "deleted 7"


async def test_no_user_is_shown_the_tools_of_another():
    middleware, script = OverspillMiddleware(settings=Settings(toolSearch="on"), tool_search=True), spy()
    agent = Agent(ScriptedClient(script), tools=make_many(3), middleware=[middleware])
    for tools in ([delete], []):
        await agent.run("Delete it.", tools=tools)
    check_secret(script)
