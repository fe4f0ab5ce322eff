"""What only LangChain has: deepagents on top of it, and runs that are interrupted and resumed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from deepagents import create_deep_agent
from langchain.agents import create_agent
from langchain.agents.middleware import AgentMiddleware
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command, interrupt

from overspill import Settings
from overspill.integrations.langchain import OverspillMiddleware
from tests.integrations.drivers.langchain import DRIVER, ScriptedModel
from tests.integrations.driving import Call, Request, Scripted
from tests.integrations.suite import LOG, NEEDLE, extract, settings
from tests.integrations.suite_conversations import WINDOW, find_replaced, read_page, read_pages
from tests.integrations.suite_searching import call, check_secret, delete, make_many, spy
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


class Guard(AgentMiddleware):
    """Offers `delete` to one user only."""

    async def awrap_model_call(self, request: Any, handler: Any) -> Any:
        is_admin = request.runtime.context == "admin"
        return await handler(request.override(tools=[each for each in request.tools if is_admin or each.name != "delete"]))


async def test_no_user_is_shown_the_tools_of_another():
    middleware, script = OverspillMiddleware(settings=Settings(toolSearch="on"), tool_search=True), spy()
    tools = [tool(each) for each in (delete, *make_many(3))]
    agent = create_agent(ScriptedModel(script=script), tools, middleware=[Guard(), middleware], context_schema=str)
    for user in ("admin", "guest"):
        await agent.ainvoke({"messages": [{"role": "user", "content": "Delete it."}]}, context=user)
    check_secret(script)


async def test_a_tool_that_the_model_finds_may_interrupt_a_run_that_another_process_resumes():
    script, saver = Scripted([call("approve", {}, "c1")], lambda request: request.results["c1"]), InMemorySaver()
    processes = [OverspillMiddleware(settings=Settings(toolSearch="on"), tool_search=True) for _ in range(2)]
    agents = [create_agent(ScriptedModel(script=script), [approve], middleware=[each], checkpointer=saver) for each in processes]
    thread = {"configurable": {"thread_id": "7"}}
    await agents[0].ainvoke({"messages": [{"role": "user", "content": "Go."}]}, thread)
    await processes[0]._runs.resume("7").close()
    state = await agents[1].ainvoke(Command(resume="yes"), thread)
    assert state["messages"][-1].text == "a person said yes"
    assert [each.name for each in state["messages"] if each.type == "tool"] == ["call_tool"]


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
