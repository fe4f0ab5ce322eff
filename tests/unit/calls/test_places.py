"""RunningPlaces for tools that run at the same time."""

import anyio
import pytest

from overspill.calls.job import Job
from overspill.calls.limits import RunningPlaces

pytestmark = [pytest.mark.anyio, pytest.mark.both_loops]


async def test_a_tool_does_not_continue_if_its_job_ended_just_as_its_call_was_answered():
    places, job = RunningPlaces(1), Job("outer", None)
    continued = False
    with job.scope:
        places.lend([job])
        job.cancel()
        await places.take_back([job])
        continued = True
    assert not continued


async def test_a_tool_waits_for_a_place_after_its_call():
    places, job = RunningPlaces(1), Job("outer", None)
    job.needs_place = True
    places.take_now(job)
    places.lend([job])
    other = Job("other", None)
    places.take_now(other)
    async with anyio.create_task_group() as group:
        group.start_soon(places.take_back, [job])
        await anyio.wait_all_tasks_blocked()
        assert not job.has_place
        places.leave(other)
    assert job.has_place
