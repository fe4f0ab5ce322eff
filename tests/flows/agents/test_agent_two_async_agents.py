"""Two agents work in the background at the same time, and both reports are fetched."""

from __future__ import annotations

import anyio
import pytest
from agents import Stage, call, report, says, scripted, seen

from overspill.agent.record import snapshot

pytestmark = pytest.mark.anyio


async def test_two_agents_started_in_the_background_both_report(stage: Stage) -> None:
    stage.write("north.ai", "models: test/north\ndescription: Knows the north.")
    stage.write("south.ai", "models: test/south")
    agent = stage.write("lead.ai", "agents: [north.ai, south.ai]")
    now = {"async": True}
    both = says("", call("agent__north", prompt="Any snow?", **now), call("agent__south", prompt="Any sun?", **now))
    met = anyio.Event()
    north = scripted(lambda s: report("snow"), name="test/north", gate=met)
    south = scripted(report("sun"), name="test/south")
    lead = scripted(
        both,  # answered once the first has reported, with that report
        lambda s: met.set() or call("wait_for_tool_output"),
        lambda s: call("get_tool_output", id=s.ids[0], mode="raw"),
        lambda s: report(f"{s.answers[-1]} and {s.answers[1]}"),
    )
    record = await stage.run(agent, lead, north, south)
    assert record.outcome.report is not None
    assert record.outcome.report.content == "snow and sun"
    assert [tool["description"] for tool in lead.requests[0].tools[:2]] == ["Knows the north.", "Hand a task to the agent south"]
    first_answers = seen(lead)[1].answers
    assert first_answers[0].startswith("Tool Output ID: art_")
    assert first_answers[1] == "sun"
    assert record.totals.requests == 6
    assert {entry["agent"] for entry in record.accounting} == {"lead", "north", "south"}
    first = snapshot(record)["opTree"]["turns"][0]["ops"]
    assert sorted(op["agent"]["report"]["content"] for op in first if "agent" in op) == ["snow", "sun"]
