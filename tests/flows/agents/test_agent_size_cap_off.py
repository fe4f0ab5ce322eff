"""With the size cap and the token threshold off, only the context window decides what is kept."""

from __future__ import annotations

import pytest
from agents import Stage, call, report, scripted, seen
from frames import TOO_LARGE

pytestmark = pytest.mark.anyio


async def test_without_the_size_cap_a_large_output_passes_while_it_fits(stage: Stage) -> None:
    agent = stage.write("a.ai", "tools: [depot]\ntoolResponseMaxBytes: 0\nasync: false")
    model = scripted(call("depot__log", lines=2000), report())
    record = await stage.run(agent, model)
    assert seen(model)[1].answers[0].startswith("00001 parcel scanned\n00002 parcel")
    assert len(seen(model)[1].answers[0]) == 42_004
    assert record.totals.kept == 0


async def test_without_the_size_cap_an_output_that_does_not_fit_the_window_is_kept(stage: Stage) -> None:
    agent = stage.write(
        "a.ai", "tools: [depot]\ntoolResponseMaxBytes: 0\nasync: false\ncontextWindow: 8000\nmaxOutputTokens: 500"
    )
    model = scripted(call("depot__log", lines=2000), report())
    record = await stage.run(agent, model)
    assert seen(model)[1].answers[0].startswith(f"{TOO_LARGE} (42004 bytes")
    (turn, _) = record.tree.children
    assert [op.attributes.get("tool_output_reason") for op in turn.children] == [None, "token_budget"]
    assert record.outcome.early == ""
