"""The race, on asyncio and on trio: a job's answer is used wherever it arrives, and none is lost or told twice."""

from collections.abc import Awaitable, Callable

import anyio
import pytest

from overspill.errors import SessionClosed
from overspill.jobs import Job, Jobs, current

pytestmark = pytest.mark.anyio

SOON = 20.0  # seconds no test reaches unless it hangs


@pytest.fixture
def changes() -> list[tuple[str, str]]:
    return []


@pytest.fixture
def jobs(changes: list[tuple[str, str]]) -> Jobs:
    return Jobs(4, lambda job: changes.append((job.tool, job.state)))


def returning(value: object) -> Callable[[Job], Awaitable[None]]:
    async def body(job: Job) -> None:
        job.result = value

    return body


class Gate:
    """A tool that ends when the test says so."""

    def __init__(self) -> None:
        self.started = anyio.Event()
        self.release = anyio.Event()
        self.cancelled = False

    async def body(self, job: Job) -> None:
        self.started.set()
        with job.scope:
            await self.release.wait()
            job.result = "late"
        self.cancelled = job.scope.cancelled_caught


async def test_a_fast_tool_is_done_when_the_race_ends(jobs: Jobs, changes: list[tuple[str, str]]):
    job = await jobs.run("quick", returning(42), SOON)
    assert (job.state, job.result, job.background) == ("ready", 42, False)
    assert not changes
    assert not jobs.background
    await jobs.abort()


async def test_a_slow_tool_goes_on_in_the_background(jobs: Jobs, changes: list[tuple[str, str]]):
    slow = Gate()
    job = await jobs.run("slow", slow.body, 0.01)
    assert (job.state, job.background) == ("running", True)
    assert jobs.pending() == [job]
    slow.release.set()
    with anyio.fail_after(SOON):
        assert await jobs.wait(SOON) == [job]
    assert (job.state, job.result) == ("ready", "late")
    assert changes == [("slow", "running"), ("slow", "ready")]
    await jobs.abort()


async def test_each_completed_job_is_told_of_once(jobs: Jobs):
    first, second = await jobs.start("first", returning(1)), await jobs.start("second", returning(2))
    with anyio.fail_after(SOON):
        await first.answered.wait()
        await second.answered.wait()
        assert await jobs.wait(SOON) == [first, second]
        assert await jobs.wait(SOON) == []
    await jobs.abort()


async def test_two_waiters_share_the_news(jobs: Jobs):
    slow, slower = Gate(), Gate()
    first, second = await jobs.start("first", slow.body), await jobs.start("second", slower.body)
    told: list[Job] = []

    async def wait() -> None:
        told.extend(await jobs.wait(SOON))

    with anyio.fail_after(SOON):
        async with anyio.create_task_group() as group:
            group.start_soon(wait)
            group.start_soon(wait)
            await slow.started.wait()
            slow.release.set()
            await first.answered.wait()
            slower.release.set()
    assert sorted(told, key=lambda job: job.tool) == [first, second]
    await jobs.abort()


async def test_waiting_ends_after_its_time(jobs: Jobs):
    slow = Gate()
    job = await jobs.start("slow", slow.body)
    assert await jobs.wait(0.01) == []
    assert jobs.pending() == [job]
    await jobs.abort()


async def test_more_calls_than_places_wait_unstarted(changes: list[tuple[str, str]]):
    jobs = Jobs(1, lambda job: changes.append((job.tool, job.state)))
    slow = Gate()
    await jobs.run("slow", slow.body, 0.01)
    waiting = await jobs.run("waiting", returning(2), 0.01)
    assert (waiting.state, waiting.background) == ("queued", True)
    slow.release.set()
    with anyio.fail_after(SOON):
        await jobs.stop()
    assert changes == [
        ("slow", "running"),
        ("waiting", "queued"),
        ("slow", "ready"),
        ("waiting", "running"),
        ("waiting", "ready"),
    ]
    await jobs.abort()


async def test_a_cancelled_caller_cancels_the_tool_before_it_went_to_the_background(jobs: Jobs):
    slow = Gate()
    with anyio.fail_after(SOON):
        async with anyio.create_task_group() as group:
            group.start_soon(jobs.run, "slow", slow.body, SOON)
            await slow.started.wait()
            group.cancel_scope.cancel()
    assert slow.cancelled
    await jobs.abort()


async def test_a_cancelled_caller_leaves_a_background_job_alone(jobs: Jobs):
    slow = Gate()
    with anyio.CancelScope() as scope:
        job = await jobs.run("slow", slow.body, 0.01)
        scope.cancel()
    slow.release.set()
    with anyio.fail_after(SOON):
        await jobs.stop()
    assert job.result == "late"
    await jobs.abort()


async def test_the_clock_stands_still_while_a_person_is_asked(jobs: Jobs):
    asked, answered = anyio.Event(), anyio.Event()

    async def asking(job: Job) -> None:
        own = current.get()
        assert own is job
        with own.held():
            asked.set()
            await answered.wait()
        job.result = "yes"

    async def answer_later() -> None:
        await asked.wait()
        await anyio.sleep(0.05)
        answered.set()

    async with anyio.create_task_group() as group:
        group.start_soon(answer_later)
        job = await jobs.run("ask", asking, 0.01)
    assert (job.result, job.background) == ("yes", False)
    await jobs.abort()


async def test_after_stop_running_jobs_finish_and_no_new_ones_start(jobs: Jobs):
    slow = Gate()
    job = await jobs.start("slow", slow.body)
    with anyio.fail_after(SOON):
        async with anyio.create_task_group() as group:
            group.start_soon(jobs.stop)
            await slow.started.wait()
            slow.release.set()
    assert job.state == "ready"
    with pytest.raises(SessionClosed):
        await jobs.run("more", returning(1), SOON)
    await jobs.abort()


async def test_abort_cancels_everything_at_once(jobs: Jobs):
    tools = [Gate() for _ in range(4)]
    started = [await jobs.start("slow", tool.body) for tool in tools]
    for tool in tools:
        await tool.started.wait()
    with anyio.fail_after(SOON):
        assert await jobs.abort() == []
    assert [job.state for job in started] == ["failed"] * 4
    assert {job.error for job in started} == {"cancelled"}
    assert all(tool.cancelled for tool in tools)


async def test_waiting_for_any_ends_with_the_first_completed_job(jobs: Jobs):
    slow, stuck = Gate(), Gate()
    await jobs.start("slow", slow.body)
    await jobs.start("stuck", stuck.body)
    with anyio.fail_after(SOON):
        async with anyio.create_task_group() as group:
            group.start_soon(jobs.wait_any)
            await slow.started.wait()
            slow.release.set()
    assert [job.tool for job in jobs.news()] == ["slow"]
    await jobs.abort()
    await jobs.wait_any()
