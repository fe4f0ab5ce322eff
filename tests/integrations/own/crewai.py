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


def test_mistakes_are_named():
    with pytest.raises(Exception, match="a SyncSession, because CrewAI runs tools in threads"):
        wrap_tools([], Session())  # pyright: ignore[reportArgumentType]
    with pytest.raises(Exception, match="Tool Output cannot be a tool"):
        wrap_tools([ReadLog(name="Tool Output")], SyncSession())
