"""What only Strands has: agents that live on between calls, tools that stream, content blocks, interrupts."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest
from strands import Agent, tool

from overspill import Settings
from overspill.integrations.strands import OverspillPlugin
from tests.integrations.drivers.strands import ScriptedModel
from tests.integrations.driving import Call, Scripted
from tests.integrations.suite import LOG, NEEDLE, find_name, settings

__all__ = ["settings"]


@tool
def read_log() -> str:
    """Read the log."""
    return LOG


def make_agent(script: Scripted, tools: list[Any], settings: Settings) -> Agent:
    model = ScriptedModel(script)
    return Agent(model, tools=tools, plugins=[OverspillPlugin(settings=settings)], callback_handler=None, retry_strategy=None)


def test_the_next_blocking_call_of_an_agent_reads_what_the_last_one_stored(settings: Settings):
    script = Scripted(
        [Call("read_log")],
        "done",
        lambda request: [
            Call("get_tool_output", {"id": find_name(request.results["c1"]), "mode": "grep", "pattern": "refused"}, "c2")
        ],
        lambda request: request.results["c2"],
    )
    agent = make_agent(script, [read_log], settings)
    agent("Read it.")
    assert NEEDLE in str(agent("Which order was refused?"))


async def test_what_a_tool_streams_is_passed_on(settings: Settings):
    @tool
    async def count() -> AsyncIterator[str]:
        """Count."""
        yield "one"
        yield "two"
        yield LOG

    agent = make_agent(Scripted([Call("count")], "done"), [count], settings)
    seen = [each async for each in agent.stream_async("Count.") if "tool_stream_event" in each]
    assert [each["tool_stream_event"]["data"] for each in seen][:2] == ["one", "two"]
    (answer,) = [block for message in agent.messages for block in message["content"] if "toolResult" in block]
    assert len(str(answer)) < 10_000


async def test_an_image_stays_beside_a_text_that_is_stored(settings: Settings):
    image = {"image": {"format": "png", "source": {"bytes": b"png"}}}

    @tool
    def look() -> dict[str, Any]:
        """Look."""
        return {"status": "success", "content": [{"text": LOG}, image, {"json": {"a": 1}}]}

    agent = make_agent(Scripted([Call("look")], "done"), [look], settings)
    await agent.invoke_async("Look.")
    (answer,) = [block["toolResult"] for message in agent.messages for block in message["content"] if "toolResult" in block]
    assert image in answer["content"]
    assert "stored as out_" in answer["content"][0]["text"]
    assert answer["status"] == "success"


async def test_a_tool_that_asks_a_person_interrupts_the_agent(settings: Settings):
    @tool(context=True)
    def delete(tool_context: Any) -> str:
        """Delete everything."""
        return f"deleted: {tool_context.interrupt('sure', reason='really?')}"

    agent = make_agent(Scripted([Call("delete")], lambda request: request.results["c1"]), [delete], settings)
    asked = await agent.invoke_async("Delete it.")
    assert asked.stop_reason == "interrupt"
    answer = [{"interruptResponse": {"interruptId": asked.interrupts[0].id, "response": "yes"}}]
    assert "deleted: yes" in str(await agent.invoke_async(answer))


def test_the_plugin_leaves_nothing_in_the_callers_state(settings: Settings):
    state: dict[str, Any] = {"mine": 1}
    make_agent(Scripted([Call("read_log")], "done"), [read_log], settings)("Read it.", invocation_state=state)
    assert "overspill_runs" not in state


def test_a_tool_that_the_program_calls_itself_is_left_alone(settings: Settings):
    agent = make_agent(Scripted("done"), [read_log], settings)
    assert agent.tool.read_log()["content"] == [{"text": LOG}]


def test_mistaken_options_are_named():
    with pytest.raises(Exception, match="budget must be"):
        OverspillPlugin(budget="all")  # pyright: ignore[reportArgumentType]
