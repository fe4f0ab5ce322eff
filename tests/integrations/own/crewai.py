"""What only CrewAI has: tools as objects, a cache of results."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from overspill import Session, Settings, SyncSession
from overspill.integrations.crewai import wrap_tools
from tests.integrations.drivers.crewai import ScriptedModel
from tests.integrations.driving import Call, Scripted
from tests.integrations.suite import LOG
from tests.integrations.suite_searching import make_many

from crewai import Agent, Crew, Task  # isort: skip - after the driver, which switches its telemetry off
from crewai.tools import BaseTool  # isort: skip


class ReadLog(BaseTool):
    name: str = "Read the log"
    description: str = "Reads the log of a day."
    calls: int = 0

    def _run(self, day: str) -> str:
        self.calls += 1
        return LOG if day == "today" else day


def kick_off(script: Any, tools: list[Any]) -> str:
    model = ScriptedModel(model="scripted", script=script)
    agent = Agent(role="helper", goal="help", backstory="none", llm=model, tools=tools)
    return Crew(agents=[agent], tasks=[Task(description="Go on.", expected_output="an answer", agent=agent)]).kickoff().raw


def test_only_what_passes_may_be_cached(tmp_path: Path):
    with SyncSession(Settings(storeDir=str(tmp_path)), notice=False) as session:
        tool, *retrieval = wrap_tools([ReadLog()], session)
        stored, small = tool.run(day="today"), tool.run(day="x")
        assert "stored as out_" in stored
        assert [tool.cache_function({}, stored), tool.cache_function({}, small)] == [False, True]
        reading = next(each for each in retrieval if each.name == "get_tool_output")
        assert not reading.cache_function({}, reading.run(id="out_000000", mode="raw"))


def test_a_limit_of_uses_holds(tmp_path: Path):
    script = Scripted(*([Call("read_the_log", {"day": str(number)}, f"c{number}")] for number in range(3)), "done")
    with SyncSession(Settings(storeDir=str(tmp_path)), notice=False) as session:
        kick_off(script, wrap_tools([ReadLog(max_usage_count=2)], session))
    assert script.last.results["c1"] == "1"
    assert "usage limit" in script.last.results["c2"]


def test_the_model_searches_for_tools_and_calls_them_by_their_own_names(tmp_path: Path):
    pinned = {"overrides": {"read_the_log": {"toolSearch": "off"}}}
    script = Scripted(
        [Call("find_tools", {"query": "text to room 7"}, "c1")],
        [Call("call_tool", {"name": "send_7", "arguments": {"text": "hello"}}, "c2")],
        [Call("read_the_log", {"day": "today"}, "c3")],
        [Call("call_tool", {"name": "send_7", "arguments": {"words": 1}}, "c4")],
        [Call("call_tool", {"name": "no", "arguments": {}}, "c5")],
        "done",
    )
    settings = Settings(storeDir=str(tmp_path), toolSearch="on", truncation=pinned)
    with SyncSession(settings, notice=False) as session:
        last = ReadLog(name="last", result_as_answer=True)
        tools = wrap_tools([*make_many(30), ReadLog(), last], session, tool_search=True)
        assert kick_off(script, tools) == "done"
    assert {frozenset(each.tools) - {"run_program"} for each in script.requests} == {
        frozenset(("find_tools", "describe_tools", "call_tool", "read_the_log", "last", "get_tool_output"))
    }
    results = script.last.results
    assert "send_7(text: str)" in results["c1"]
    assert results["c2"] == "7: hello"
    assert "stored as out_" in results["c3"]
    assert "text" in results["c4"]
    assert "no tool 'no'" in results["c5"]


def test_a_limit_of_uses_and_the_cache_hold_for_tools_that_the_model_finds(tmp_path: Path):
    log = ReadLog(max_usage_count=2)
    calls = [Call("call_tool", {"name": "read_the_log", "arguments": {"day": "1"}}, f"c{number}") for number in range(3)]
    script = Scripted(*([each] for each in calls), "done")
    with SyncSession(Settings(storeDir=str(tmp_path), toolSearch="on"), notice=False) as session:
        kick_off(script, wrap_tools([log], session, tool_search=True))
    assert [script.last.results[key] for key in ("c0", "c1")] == ["1", "1"]
    assert log.calls == 2
    assert "usage limit" in script.last.results["c2"]


def test_mistakes_are_named():
    with pytest.raises(Exception, match="a SyncSession, because CrewAI runs tools in threads"):
        wrap_tools([], Session())  # pyright: ignore[reportArgumentType]
    with pytest.raises(Exception, match="Tool Output cannot be a tool"):
        wrap_tools([ReadLog(name="Tool Output")], SyncSession())
