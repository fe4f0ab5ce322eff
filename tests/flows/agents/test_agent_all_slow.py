"""When every call of a turn goes to the background, the model is asked again only when one of them has news."""

from __future__ import annotations

import anyio
import pytest
from agents import Stage, call, report, says, scripted, seen
from waiting import until

from overspill.agent.progress import CallEnded

pytestmark = pytest.mark.anyio


async def test_the_model_is_not_asked_again_before_one_of_its_slow_tools_has_ended(stage: Stage) -> None:
    agent = stage.write("a.ai", "tools: [depot]\nasyncTimeoutSecs: 0.05")
    one, two = stage.folder / "one", stage.folder / "two"
    both = says("", call("depot__slow", until=str(one)), call("depot__slow", until=str(two), result="second"))
    model = scripted(both, report())

    async with anyio.create_task_group() as group:
        group.start_soon(stage.run, agent, model)
        await until(lambda: len([event for event in stage.events if isinstance(event, CallEnded) and event.job]) == 2)
        assert len(model.requests) == 1
        two.touch()
    notice = seen(model)[1].notice
    assert "### Running (1)\n- depot__slow" in notice
    assert "### Ready (1)\n- 1 already retrieved." in notice  # it has been delivered
