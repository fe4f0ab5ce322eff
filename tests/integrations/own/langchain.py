"""What only LangChain has: deepagents on top of it, and runs that are interrupted and resumed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from deepagents import create_deep_agent
from langchain.agents import create_agent
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command, interrupt

from overspill import Settings
from overspill.integrations.langchain import OverspillMiddleware
from tests.integrations.drivers.langchain import DRIVER, ScriptedModel
from tests.integrations.driving import Call, Request, Scripted
from tests.integrations.suite import LOG, NEEDLE, extract, settings
from tests.integrations.suite_conversations import WINDOW, find_replaced, read_page, read_pages
from tests.waiting import list_paths, until

__all__ = ["settings"]


@tool
def read_log() -> str:
    """Read the log."""
    return LOG


@tool
def approve() -> str:
    """Ask a person."""
    return f"a person said {interrupt('may I?')}"


async def test_deepagents_gets_the_same_and_stores_nothing_beside_it(settings: Settings):
    script = Scripted(
        [Call("read_log")],
        lambda request: extract(request, "the order that was refused"),
        lambda request: request.results["c2"],
    )
    agent = create_deep_agent(ScriptedModel(script=script), [read_log], middleware=[OverspillMiddleware(settings=settings)])
    state = await agent.ainvoke({"messages": [{"role": "user", "content": "Which order was refused?"}]})
    assert NEEDLE in state["messages"][-1].text
    assert "stored as out_" in script.requests[1].results["c1"]
    assert not state.get("files")  # its own offload had nothing to do


def make_many(count: int) -> list[Any]:
    def make(number: int) -> Any:
        async def run(text: str) -> str:
            return f"{number}: {text}"

        return tool(f"send_{number}", description=f"Send a text to room {number}.")(run)

    return [make(number) for number in range(count)]


async def test_the_model_searches_for_tools_and_calls_them_by_their_own_names():
    searching = Settings(toolSearch="on", truncation={"overrides": {"read_log": {"toolSearch": "off"}}})
    script = Scripted(
        [Call("find_tools", {"query": "text to room 7"}, "c1")],
        [Call("call_tool", {"name": "send_7", "arguments": {"text": "hello"}}, "c2"), Call("read_log", {}, "c3")],
        [Call("call_tool", {"name": "send_7", "arguments": {"words": 1}}, "c4"), Call("call_tool", {"name": "no"}, "c5")],
        lambda request: str(request.results),
    )
    middleware = OverspillMiddleware(settings=searching, tool_search=True)
    agent = create_agent(ScriptedModel(script=script), [*make_many(30), read_log], middleware=[middleware])
    state = await agent.ainvoke({"messages": [{"role": "user", "content": "Say hello in room 7"}]})
    assert {frozenset(each.tools) - {"run_program"} for each in script.requests} == {
        frozenset(("find_tools", "describe_tools", "call_tool", "read_log", "get_tool_output"))
    }
    results = script.requests[-1].results
    assert results["c2"] == "7: hello"
    assert "send_7(text: str)" in script.requests[1].results["c1"]
    assert "stored as out_" in results["c3"]
    assert "text" in results["c4"]
    assert "no tool 'no'" in results["c5"]
    assert [each.name for each in state["messages"] if each.type == "tool"][1] == "call_tool"


async def test_short_lists_of_tools_are_offered_as_they_are():
    script = Scripted([Call("send_1", {"text": "a"})], lambda request: request.results["c1"])
    middleware = OverspillMiddleware(tool_search=True)
    agent = create_agent(ScriptedModel(script=script), make_many(2), middleware=[middleware])
    state = await agent.ainvoke({"messages": [{"role": "user", "content": "Go"}]})
    assert state["messages"][-1].text == "1: a"
    assert not {"find_tools", "call_tool"} & {*script.requests[0].tools}


def make_agent(script: Scripted, settings: Settings) -> tuple[Any, OverspillMiddleware]:
    middleware = OverspillMiddleware(settings=settings)
    model = ScriptedModel(script=script)
    return create_agent(model, [read_log, approve], middleware=[middleware], checkpointer=InMemorySaver()), middleware


async def test_a_run_that_is_resumed_reads_what_it_stored_and_ends(settings: Settings):
    script = Scripted(
        [Call("read_log")],
        [Call("approve", {}, "c9")],
        lambda request: extract(request, "the order that was refused"),
        lambda request: request.results["c2"],
    )
    agent, middleware = make_agent(script, settings)
    thread = {"configurable": {"thread_id": "7"}}
    await agent.ainvoke({"messages": [{"role": "user", "content": "Which order was refused?"}]}, thread)
    state = await agent.ainvoke(Command(resume="yes"), thread)
    assert NEEDLE in state["messages"][-1].text
    assert not middleware._runs._resumed


async def test_the_next_run_ends_a_resumed_one_that_failed(tmp_path: Path):
    def break_down(request: Request) -> Any:
        raise ConnectionError("the model is gone")

    settings = Settings(storeDir=str(tmp_path), retention="session")
    script = Scripted([Call("approve")], [Call("read_log", {}, "c2")], break_down, "done")
    agent, middleware = make_agent(script, settings)
    thread = {"configurable": {"thread_id": "7"}}
    await agent.ainvoke({"messages": [{"role": "user", "content": "Go."}]}, thread)
    with pytest.raises(ConnectionError):
        await agent.ainvoke(Command(resume="yes"), thread)
    assert len(middleware._runs._resumed) == 1
    await agent.ainvoke({"messages": [{"role": "user", "content": "Again."}]}, thread)
    assert not middleware._runs._resumed
    await until(lambda: not any(path.name.startswith("session-") for path in list_paths(tmp_path)))


def test_a_blocking_run_replaces_old_results_too(settings: Settings):
    script = read_pages(lambda request: ", ".join(find_replaced(request)))
    agent = DRIVER.agent([read_page], script, settings=settings, budget=WINDOW, compact=0.6)
    assert agent.run_sync("Read all pages.").startswith("c0, c1")
