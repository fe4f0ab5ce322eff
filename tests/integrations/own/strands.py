"""What only Strands has: agents that live on between calls, tools that stream, content blocks, interrupts."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest
from pydantic import BaseModel
from strands import Agent, tool
from strands.hooks import AfterToolCallEvent, BeforeToolCallEvent

from overspill import Settings
from overspill.integrations.strands import OverspillPlugin
from tests.integrations.drivers.strands import ScriptedModel
from tests.integrations.driving import Call, Scripted
from tests.integrations.suite import LOG, NEEDLE, find_name, settings
from tests.integrations.suite_searching import make_many

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


async def test_the_model_searches_for_tools_and_calls_them_by_their_own_names():
    searching = Settings(toolSearch="on", truncation={"overrides": {"read_log": {"toolSearch": "off"}}})
    script = Scripted(
        [Call("find_tools", {"query": "text to room 7"}, "c1")],
        [Call("call_tool", {"name": "send_7", "arguments": {"text": "hello"}}, "c2"), Call("read_log", {}, "c3")],
        [Call("call_tool", {"name": "send_7", "arguments": {"words": 1}}, "c4"), Call("call_tool", {"name": "no"}, "c5")],
        lambda request: str(request.results),
    )
    agent = Agent(
        ScriptedModel(script),
        tools=[*map(tool, make_many(30)), read_log],
        plugins=[OverspillPlugin(settings=searching, tool_search=True)],
        callback_handler=None,
    )
    seen: list[str] = []
    again = [True]

    def watch(event: BeforeToolCallEvent) -> None:
        seen.append(event.tool_use["name"])

    def repeat(event: AfterToolCallEvent) -> None:
        if event.tool_use["name"] == "send_7" and again:
            event.retry = again.pop()

    agent.add_hook(watch, order=-100)
    agent.add_hook(repeat)
    await agent.invoke_async("Say hello in room 7")
    assert {frozenset(each.tools) - {"run_program"} for each in script.requests} == {
        frozenset(("find_tools", "describe_tools", "call_tool", "read_log", "get_tool_output"))
    }
    results = script.requests[-1].results
    assert "send_7(text: str)" in results["c1"]
    assert results["c2"] == "7: hello"
    assert "stored as out_" in results["c3"]
    assert "text" in results["c4"]
    assert "no tool 'no'" in results["c5"]
    assert seen.count("send_7") == 3  # one of them repeated
    assert "call_tool" in seen  # that of a tool that does not exist


async def test_a_tool_that_is_gone_is_not_called():
    def forget(request: Any) -> list[Call]:
        del agent.tool_registry.registry["send_7"]
        return [Call("find_tools", {"query": "text to room 7"}, "c1")]

    call = Call("call_tool", {"name": "send_7", "arguments": {"text": "a"}}, "c2")
    script = Scripted([Call("find_tools", {"query": "room"}, "c0")], forget, [call], "done")
    plugin = OverspillPlugin(settings=Settings(toolSearch="on"), tool_search=True)
    agent = Agent(ScriptedModel(script), tools=[*map(tool, make_many(8))], plugins=[plugin], callback_handler=None)
    await agent.invoke_async("Go")
    assert "There is no tool 'send_7', or not any more. Similar names: send_" in script.last.results["c2"]


async def test_each_agent_searches_for_its_own_tools():
    plugin, tools = OverspillPlugin(settings=Settings(toolSearch="on"), tool_search=True), [*map(tool, make_many(8))]
    for mine, other in (("send_1", "send_7"), ("send_7", "send_1")):
        script = Scripted(
            [Call("call_tool", {"name": mine, "arguments": {"text": "a"}}, "c1")],
            [Call("call_tool", {"name": other, "arguments": {"text": "a"}}, "c2")],
            "done",
        )
        offered = [each for each in tools if each.tool_name == mine]
        await Agent(ScriptedModel(script), tools=offered, plugins=[plugin], callback_handler=None).invoke_async("Go")
        assert script.last.results["c1"].endswith(": a")
        assert "no tool" in script.last.results["c2"]


class Answer(BaseModel):
    room: int


async def test_the_tool_of_a_structured_output_is_offered_as_it_is():
    called = Call("call_tool", {"name": "send_1", "arguments": {"text": "a"}}, "c1")
    script = Scripted([called], lambda request: [Call("Answer", {"room": 7}, "c2")], "done")
    plugin = OverspillPlugin(settings=Settings(toolSearch="on"), tool_search=True)
    agent = Agent(ScriptedModel(script), tools=[*map(tool, make_many(3))], plugins=[plugin], callback_handler=None)
    result = await agent.invoke_async("Go", structured_output_model=Answer)
    assert "Answer" in script.requests[0].tools
    assert result.structured_output == Answer(room=7)


def test_mistaken_options_are_named():
    with pytest.raises(Exception, match="budget must be"):
        OverspillPlugin(budget="all")  # pyright: ignore[reportArgumentType]
