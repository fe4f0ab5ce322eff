"""Parallel results share what is left of the window: the first take it, the last is kept, and its handle still fits."""

from __future__ import annotations

import pytest
from agents import Stage, call, report, says, scripted, seen
from frames import TOO_LARGE

pytestmark = pytest.mark.anyio


@pytest.mark.promise("no-answer-over-budget")
async def test_of_parallel_results_that_do_not_fit_together_some_are_kept(stage: Stage) -> None:
    agent = stage.write("a.ai", "tools: [{depot: [words]}]\ncontextWindow: 7000\nmaxOutputTokens: 500")
    both = says("", *(call("depot__words", count=1100) for _ in range(3)))
    model = scripted(both, report())
    record = await stage.run(agent, model)
    answers = seen(model)[1].answers
    kept = [answer for answer in answers if answer.startswith(TOO_LARGE)]
    assert (len(answers), len(kept)) == (3, 1)
    (turn, _) = record.tree.children
    assert sorted(op.attributes.get("tool_output_reason") or "" for op in turn.children if op.kind == "tool") == [
        "", "", "reserve_failed",
    ]  # fmt: skip
    assert record.outcome.early == ""  # handles that fit do not end the work
