"""What only ADK has: callbacks around tools, results of MCP servers, runs that end without a word."""

from __future__ import annotations

import asyncio
import gc
from typing import Any

from google.adk.agents import LlmAgent
from google.adk.apps import App
from google.adk.runners import InMemoryRunner
from google.adk.tools import FunctionTool

from overspill import Settings
from overspill.integrations.google_adk import OverspillPlugin
from tests.integrations.drivers.google_adk import AdkAgent, ScriptedModel
from tests.integrations.driving import Call, Scripted
from tests.integrations.suite import LOG, read_log, settings

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


async def test_an_agent_without_tools_is_offered_none(settings: Settings):
    script = Scripted("done")
    await make_agent(script, OverspillPlugin(settings=settings), []).run("Hello.")
    assert not script.last.tools
