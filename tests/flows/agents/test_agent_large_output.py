"""A large output: the model gets a handle, asks it with tool_output, and reports."""

from __future__ import annotations

import pytest
from agents import Stage, call, report, scripted, seen
from extras import OFFERED
from frames import TOO_LARGE

pytestmark = pytest.mark.anyio


async def test_a_large_output_becomes_a_handle_that_is_asked_and_then_reported(stage: Stage) -> None:
    agent = stage.write("a.ai", "tools: [depot]")
    model = scripted(
        call("depot__log", lines=2000),
        lambda s: call("tool_output", handle=s.handles[-1], extract="ERROR lines"),
        lambda s: report(s.answers[-1]),
    )
    record = await stage.run(agent, model)
    first, second, third = seen(model)
    assert first.tools == [
        "depot__log", "depot__rows", "depot__words", "depot__slow", "depot__fail", "depot__picture",
        *OFFERED,
        "agent__task_status", "agent__batch", "agent__final_report",
    ]  # fmt: skip
    assert second.answers[0].startswith(f"{TOO_LARGE} (42004 bytes, 2000 lines, about 10000 tokens)")
    assert (second.tools, third.tools) == (first.tools, first.tools)
    assert third.answers[1].startswith(f"ABSTRACT FROM TOOL OUTPUT depot__log WITH HANDLE {second.handles[0]}, STRATEGY:")
    assert record.outcome.report is not None
    assert "00500 ERROR disk full" in record.outcome.report.content
    assert (record.outcome.status, record.outcome.turns, record.totals.kept) == ("reported", 3, 1)


async def test_a_large_output_that_comes_again_is_named_and_not_shown(stage: Stage) -> None:
    model = scripted(call("depot__log", lines=2000), call("depot__log", lines=2000), report("done"))
    await stage.run(stage.write("a.ai", "tools: [depot]"), model)
    first, again = seen(model)[2].answers
    assert "preview" in first
    assert again.startswith("Same output as before, stored as out_")
    assert len(again) * 2 < len(first)
