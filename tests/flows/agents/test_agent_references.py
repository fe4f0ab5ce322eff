"""A stored output as an argument of the next call: filled in where it suits the tool, and else the tool is not called."""

from __future__ import annotations

import pytest
from agents import Seen, Stage, call, report, scripted, seen

pytestmark = pytest.mark.anyio


async def test_what_is_filled_in_has_to_suit_the_tools_schema(stage: Stage) -> None:
    agent = stage.write("a.ai", "tools: [depot]")

    def again(part: str):
        return lambda s: call("depot__rows", count=f"{{{{output:{s.handles[0]}#{part}}}}}")

    def told(s: Seen):
        return report(s.answers[-1])

    model = scripted(call("depot__rows", count=3000), again("/5/parcel"), again("/5"), told)
    record = await stage.run(agent, model)
    assert seen(model)[2].answers[1].startswith('[{"parcel": 0, "state": "fine"},{"parcel": 1,')
    assert record.outcome.report is not None
    assert record.outcome.report.content == (
        "With the references filled in, the arguments do not suit the tool depot__rows: "
        '$.count breaks the rule {"type":"integer"}. It was not called.'
    )
