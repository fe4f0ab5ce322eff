"""What only ADK has: callbacks around tools, results of MCP servers, runs that end without a word."""

from __future__ import annotations

import asyncio
import gc
from typing import Any

from google.adk.agents import LlmAgent
from google.adk.apps import App
from google.adk.runners import InMemoryRunner
from google.adk.tools import FunctionTool
from google.adk.tools.base_toolset import BaseToolset
from google.genai import types

from overspill import Settings
from overspill.integrations.google_adk import OverspillPlugin
from tests.integrations.drivers.google_adk import AdkAgent, ScriptedModel
from tests.integrations.driving import Call, Scripted
from tests.integrations.suite import LOG, read_log, settings
from tests.integrations.suite_searching import check_secret, delete, make_many, spy

__all__ = ["settings"]


def make_agent(script: Scripted, plugin: OverspillPlugin, tools: list[Any], **options: Any) -> AdkAgent:
    agent = LlmAgent(name="helper", model=ScriptedModel(model="scripted", script=script), tools=tools, **options)
    return AdkAgent(InMemoryRunner(app=App(name="own", root_agent=agent, plugins=[plugin])))


async def test_callbacks_of_the_agent_stay_around_the_tool(settings: Settings):
    seen: list[Any] = []

    def before(tool: Any, args: Any, tool_context: Any) -> None:
        seen.append(type(tool))

    def after(tool: Any, args: Any, tool_context: Any, tool_response: Any) -> None:
        seen.append(len(str(tool_response)) < 10_000)

    script = Scripted([Call("read_log")], "done")
    options = {"before_tool_callback": before, "after_tool_callback": after}
    await make_agent(script, OverspillPlugin(settings=settings), [read_log], **options).run("Read it.")
    assert seen == [FunctionTool, True]


async def test_a_callback_can_answer_in_place_of_a_tool(settings: Settings):
    def refuse(tool: Any, args: Any, tool_context: Any) -> Any:
        return {"result": "refused"}

    script = Scripted([Call("read_log")], lambda request: request.results["c1"])
    agent = make_agent(script, OverspillPlugin(settings=settings), [read_log], before_tool_callback=refuse)
    assert await agent.run("Read it.") == "refused"


async def test_the_blocks_of_an_mcp_result_are_stored_as_text(settings: Settings):
    image = {"type": "image", "data": "QUFB", "mimeType": "image/png"}

    def look() -> dict[str, Any]:
        """Look."""
        return {"content": [{"type": "text", "text": LOG}, image], "structuredContent": {"text": LOG}, "isError": False}

    script = Scripted([Call("look")], "done")
    await make_agent(script, OverspillPlugin(settings=settings), [look]).run("Look.")
    shown = script.last.results["c1"]
    assert "stored as out_" in shown
    assert '"QUFB"' in shown
    assert len(shown) < 10_000


async def test_a_run_that_is_cancelled_is_forgotten(settings: Settings):
    started = asyncio.Event()

    async def hang() -> str:
        """Hang."""
        started.set()
        await asyncio.Event().wait()
        return ""

    plugin = OverspillPlugin(settings=settings)
    run = asyncio.ensure_future(make_agent(Scripted([Call("hang")], "done"), plugin, [hang]).run("Hang."))
    await asyncio.wait_for(started.wait(), 30)
    run.cancel()
    await asyncio.wait([run])
    del run
    gc.collect()
    assert not plugin._runs


async def test_the_model_searches_for_tools_and_calls_them_by_their_own_names():
    searching = Settings(toolSearch="on", truncation={"overrides": {"read_log": {"toolSearch": "off"}}})
    script = Scripted(
        [Call("find_tools", {"query": "text to room 7"}, "c1")],
        [Call("call_tool", {"name": "send_7", "arguments": {"text": "hello"}}, "c2"), Call("read_log", {}, "c3")],
        [Call("call_tool", {"name": "send_7", "arguments": {"words": 1}}, "c4"), Call("call_tool", {"name": "no"}, "c5")],
        lambda request: str(request.results),
    )
    seen: list[str] = []

    def watch(tool: Any, args: Any, tool_context: Any) -> None:
        seen.append(tool.name)

    plugin = OverspillPlugin(settings=searching, tool_search=True)
    await make_agent(script, plugin, [*make_many(30), read_log], before_tool_callback=watch).run("Say hello in room 7")
    assert {frozenset(each.tools) - {"run_program"} for each in script.requests} == {
        frozenset(("find_tools", "describe_tools", "call_tool", "read_log", "get_tool_output"))
    }
    results = script.last.results
    assert "send_7(text: str)" in results["c1"]
    assert results["c2"] == "7: hello"
    assert "stored as out_" in results["c3"]
    assert "text" in results["c4"]
    assert "no tool 'no'" in results["c5"]
    assert seen == ["find_tools", "send_7", "read_log", "send_7", "call_tool"]


async def test_a_tool_that_the_model_finds_waits_for_its_confirmation():
    called = Call("call_tool", {"name": "delete", "arguments": {"name": "7"}}, "c1")
    script = Scripted([called], lambda request: request.results["c1"])
    model = ScriptedModel(model="scripted", script=script)
    agent = LlmAgent(name="helper", model=model, tools=[FunctionTool(delete, require_confirmation=True)])
    plugin = OverspillPlugin(settings=Settings(toolSearch="on"), tool_search=True)
    runner = InMemoryRunner(app=App(name="own", root_agent=agent, plugins=[plugin]))
    await runner.session_service.create_session(app_name="own", user_id="user", session_id="s")

    async def send(part: types.Part) -> list[Any]:
        message = types.Content(role="user", parts=[part])
        return [each async for each in runner.run_async(user_id="user", session_id="s", new_message=message)]

    calls = [call for event in await send(types.Part(text="Delete room 7")) for call in event.get_function_calls()]
    assert [call.name for call in calls] == ["delete", "adk_request_confirmation"]
    confirmed = types.FunctionResponse(id=calls[1].id, name=calls[1].name, response={"confirmed": True})
    events = await send(types.Part(function_response=confirmed))
    assert events[-1].content.parts[0].text == "deleted 7"


class Rooms(BaseToolset):
    """The first user may delete them."""

    async def get_tools(self, readonly_context: Any = None) -> list[Any]:
        functions = [*make_many(3), *([delete] if readonly_context.session.id == "1" else [])]
        return [FunctionTool(each) for each in functions]


async def test_no_user_is_shown_the_tools_of_another():
    script, plugin = spy(), OverspillPlugin(settings=Settings(toolSearch="on"), tool_search=True)
    agent = make_agent(script, plugin, [Rooms()])
    for session in ("1", "2"):
        await agent.run("Delete it.", session)
    check_secret(script)


async def test_an_agent_without_tools_is_offered_none(settings: Settings):
    script = Scripted("done")
    await make_agent(script, OverspillPlugin(settings=settings), []).run("Hello.")
    assert not script.last.tools
