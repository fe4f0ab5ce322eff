"""A slow tool goes on in the background: the notice tells of it, the model waits, and fetches what it gave."""

from __future__ import annotations

import re

import pytest
from agents import SLOW, Seen, Stage, call, report, says, scripted, seen

pytestmark = pytest.mark.anyio

NOTICE = """\
# System Notice

This is turn 2 of 10.
Your context window is 0% full.

## Async Tool Status

### Running (1)
- depot__slow (id: ID, running SECONDSs)

Use get_tool_output(id, mode="wait") to retrieve, or to wait for one that is running.

---

You now need to decide your next move:
1. Call tools to advance your task
2. Wait for running tools using get_tool_output(id, mode="wait")
3. Provide your final report/answer"""


@pytest.mark.promise("no-turn-blocked")
async def test_a_slow_tool_is_announced_waited_for_and_fetched(stage: Stage) -> None:
    agent = stage.write("a.ai", f"tools: [depot]\ncontextWindow: 1000000\n{SLOW}")
    release = stage.folder / "release"

    def wait(s: Seen):
        release.touch()
        return call("get_tool_output", id=s.ids[-1], mode="wait")

    model = scripted(
        says("", call("depot__slow", until=str(release), result="the van is here"), call("depot__words", count=2)),
        wait,
        lambda s: report(s.answers[-1]),
    )
    record = await stage.run(agent, model)
    _, second, third = seen(model)
    id = second.ids[0]
    assert second.answers == [
        f"Tool Output ID: {id}\nTool: depot__slow\n\nWhen the System Notice shows this tool is ready, "
        f'use get_tool_output("{id}", mode) to retrieve its output.',
        "word0 word1",
    ]
    assert re.sub(r"running [\d.]+s", "running SECONDSs", second.notice.replace(id, "ID")) == NOTICE
    assert third.answers[-1] == "the van is here"
    assert "### Ready (1)\n- 1 already retrieved." in third.notice
    assert record.outcome.report is not None
    assert record.outcome.report.content == "the van is here"
