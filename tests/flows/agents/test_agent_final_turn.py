"""The last turn: only the report is possible, whether the turns are used up or the window is full."""

from __future__ import annotations

import pytest
from agents import Stage, call, report, scripted, seen

pytestmark = pytest.mark.anyio

LAST = """\
# System Notice

This is turn 2 of 2, and your final turn: there are no turns left.
Your context window is 1% full.

---

You can no longer call tools. Provide your final report/answer now, based on what you have found."""


async def test_in_the_last_turn_only_the_report_can_be_called(stage: Stage) -> None:
    agent = stage.write("a.ai", "tools: [depot]\nmaxTurns: 2")
    model = scripted(call("depot__log", lines=2000), call("depot__words", count=1), report("as far as I got"))
    record = await stage.run(agent, model)
    first, second, third = seen(model)
    assert "depot__log" in first.tools
    assert (second.tools, second.notice) == (["agent__final_report"], LAST)
    assert third.answers[-1] == "There is no tool 'depot__words'. Known tools: agent__final_report."
    assert (record.outcome.status, record.outcome.turns, record.outcome.early) == ("reported", 2, "there are no turns left.")


async def test_a_model_that_never_reports_ends_without_a_report(stage: Stage) -> None:
    agent = stage.write("a.ai", "tools: [depot]\nmaxTurns: 2")
    model = scripted(call("depot__words", count=1))
    record = await stage.run(agent, model)
    assert (record.outcome.status, record.outcome.report) == ("unreported", None)
    assert record.outcome.why == "The model gave no final report, even when asked for nothing else."
    assert len(model.requests) == 4


async def test_a_full_window_makes_the_next_turn_final(stage: Stage) -> None:
    """Handles and their previews are small; many of them fill a small window all the same."""
    agent = stage.write("a.ai", "tools: [{depot: [log]}]\ncontextWindow: 4000\nmaxOutputTokens: 300\nmaxTurns: 50")
    model = scripted(lambda s: report("full") if "final turn" in s.notice else call("depot__log", lines=2000))
    record = await stage.run(agent, model)
    assert record.outcome.status == "reported"
    assert record.outcome.early == "your context window is full."
    assert record.outcome.turns < 20
    assert seen(model)[-1].tools == ["agent__final_report"]
    assert all(len(answer) < 4000 for answer in seen(model)[-1].answers)
