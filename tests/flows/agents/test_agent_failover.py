"""A model that fails is passed over for the next one; when none answers, the run ends and says why."""

from __future__ import annotations

import pytest
from agents import Stage, call, report, scripted

from overspill.models.protocol import ModelError

pytestmark = pytest.mark.anyio


async def test_the_next_model_answers_where_one_fails(stage: Stage) -> None:
    agent = stage.write("a.ai", "tools: [depot]")
    broken = scripted(ModelError("test/broken: the API key was not accepted.", is_transient=False), name="test/broken")
    model = scripted(call("depot__words", count=1), report("by the second"))
    record = await stage.run(agent, broken, model, command_line={"models": ["test/broken", "test/m"]})
    assert (record.outcome.status, record.totals.requests) == ("reported", 4)
    assert [(op.name, op.status) for op in record.tree.children[0].children] == [
        ("test/broken", "failed"), ("test/m", "ok"), ("depot__words", "ok"),
    ]  # fmt: skip


async def test_a_passing_failure_is_tried_again_on_the_same_model(stage: Stage) -> None:
    agent = stage.write("a.ai", "maxRetries: 1")
    model = scripted(ModelError("test/m: the provider is overloaded.", is_transient=True, retry_after=0), "All is well.")
    record = await stage.run(agent, model)
    assert (record.outcome.status, len(model.requests)) == ("reported", 2)


async def test_when_no_model_answers_the_run_ends_with_what_each_of_them_said(stage: Stage) -> None:
    agent = stage.write("a.ai")
    one = scripted(ModelError("test/one: no such model.", is_transient=False), name="test/one")
    two = scripted(ModelError("test/two: no credit.", is_transient=False), name="test/two")
    record = await stage.run(agent, one, two, command_line={"models": ["test/one", "test/two"]})
    assert (record.outcome.status, record.outcome.why) == (
        "failed",
        "None of 2 models answered. test/one: no such model. test/two: no credit.",
    )
