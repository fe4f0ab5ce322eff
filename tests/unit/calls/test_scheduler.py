"""The race, on asyncio and on trio: a job's answer is used wherever it arrives, and none is lost or told twice."""

import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress

import anyio
import anyio.lowlevel
import pytest

from overspill.calls.background import BackgroundJobs
from overspill.calls.job import Job, Requester, asking, current, requester
from overspill.calls.scheduler import JobScheduler
from overspill.errors import SessionClosed

pytestmark = [pytest.mark.anyio, pytest.mark.both_loops]

SOON = 20.0  # seconds no test reaches unless it hangs

Changes = list[tuple[str, str]]


class Doing:
    """A body made of a plain function."""

    def __init__(self, run: Callable[[Job], Awaitable[None]]) -> None:
        self._run = run
        self.concluded = 0

    async def run(self, job: Job) -> None:
        await self._run(job)

    async def conclude(self, job: Job) -> None:
        self.concluded += 1


def returning(value: object) -> Doing:
    async def run(job: Job) -> None:
        job.result = value

    return Doing(run)


class Held:
    """A tool that ends when the test says so."""

    def __init__(self, result: object = "late") -> None:
        self.started = anyio.Event()
        self.release = anyio.Event()
        self.result = result
        self.cancelled = False
        self.concluded = 0

    async def run(self, job: Job) -> None:
        self.started.set()
        with job.scope:
            await self.release.wait()
            job.result = self.result
        self.cancelled = job.scope.cancelled_caught

    async def conclude(self, job: Job) -> None:
        self.concluded += 1


class Deaf(Held):
    """Will not be cancelled."""

    async def run(self, job: Job) -> None:
        self.started.set()
        while not self.release.is_set():
            with suppress(anyio.get_cancelled_exc_class()), anyio.CancelScope(shield=True):
                await self.release.wait()


def job(tool: str = "tool", may_take: float = SOON) -> Job:
    return Job(tool, may_take)


@pytest.fixture
def changes() -> Changes:
    return []


async def opened(changes: Changes, max_running: int = 4) -> JobScheduler:
    jobs = JobScheduler(max_running, lambda job: changes.append((job.tool, job.state)), BackgroundJobs())
    await jobs.open()
    return jobs


@pytest.fixture
async def jobs(changes: Changes) -> AsyncIterator[JobScheduler]:
    found = await opened(changes)
    with anyio.fail_after(SOON):
        yield found
        await found.abort()


async def test_a_fast_tool_is_done_when_the_race_ends(jobs: JobScheduler, changes: Changes):
    quick = job()
    await jobs.run(quick, returning(42), SOON)
    assert (quick.state, quick.result, quick.background) == ("ready", 42, False)
    assert not changes
    assert not jobs.background


async def test_two_simultaneous_first_calls_both_run(jobs: JobScheduler):
    first, second = job(), job()
    async with anyio.create_task_group() as group:
        group.start_soon(jobs.run, first, returning(1), SOON)
        group.start_soon(jobs.run, second, returning(2), SOON)
    assert (first.result, second.result) == (1, 2)


async def test_each_completed_job_is_announced_once(jobs: JobScheduler):
    first, second = job(), job()
    jobs.start(first, returning(1))
    jobs.start(second, returning(2))
    await first.answered.wait()
    await second.answered.wait()
    assert set(await jobs.wait(SOON)) == {first, second}
    assert await jobs.wait(SOON) == []


async def test_two_waiters_each_learn_of_one_completed_job(jobs: JobScheduler):
    slow, slower = Held(), Held()
    first, second = job("first"), job("second")
    jobs.start(first, slow)
    jobs.start(second, slower)
    told: list[Job] = []

    async def wait() -> None:
        told.extend(await jobs.wait(SOON))

    async with anyio.create_task_group() as group:
        group.start_soon(wait)
        group.start_soon(wait)
        await slow.started.wait()
        slow.release.set()
        await first.answered.wait()
        slower.release.set()
    assert sorted(told, key=lambda job: job.tool) == [first, second]


async def test_waiting_ends_when_its_time_is_up(jobs: JobScheduler):
    slow = job()
    jobs.start(slow, Held())
    assert await jobs.wait(0.01) == []
    assert jobs.pending() == [slow]


async def test_waiting_for_any_ends_with_the_first_completed_job(jobs: JobScheduler):
    slow, stuck = Held(), Held()
    jobs.start(job("slow"), slow)
    jobs.start(job("stuck"), stuck)
    async with anyio.create_task_group() as group:
        group.start_soon(jobs.wait_any)
        await slow.started.wait()
        slow.release.set()
    assert [job.tool for job in jobs.take_finished()] == ["slow"]


async def test_waiting_for_any_returns_immediately_if_one_has_completed(jobs: JobScheduler):
    stuck, done = job("stuck"), job("done")
    jobs.start(stuck, Held())
    jobs.start(done, returning(1))
    await done.answered.wait()
    await jobs.wait_any()
    assert jobs.take_finished() == [done]


async def test_calls_over_the_number_of_slots_wait_unstarted(changes: Changes):
    jobs = await opened(changes, max_running=1)
    tool, waiting = Held(), job("waiting")
    with anyio.fail_after(SOON):
        await jobs.run(job("slow"), tool, 0.01)
        await jobs.run(waiting, returning(2), 0.01)
        assert (waiting.state, waiting.background) == ("queued", True)
        tool.release.set()
        await jobs.stop()
    assert changes == [
        ("slow", "running"),
        ("waiting", "queued"),
        ("slow", "ready"),
        ("waiting", "running"),
        ("waiting", "ready"),
    ]
    await jobs.abort()


async def test_a_job_cancelled_while_waiting_for_a_slot_takes_none(changes: Changes):
    jobs = await opened(changes, max_running=1)
    tool, after = Held(), job("after")
    with anyio.fail_after(SOON):
        await jobs.run(job("slow"), tool, 0.01)
        async with anyio.create_task_group() as group:
            group.start_soon(jobs.run, job("waiting"), returning(1), SOON)
            await anyio.wait_all_tasks_blocked()
            group.cancel_scope.cancel()
        tool.release.set()
        await jobs.run(after, returning(2), SOON)
    assert after.result == 2
    await jobs.abort()


async def test_a_caller_cancelled_before_the_tool_moves_to_the_background_cancels_it(jobs: JobScheduler):
    tool, called = Held(), job()
    async with anyio.create_task_group() as group:
        group.start_soon(jobs.run, called, tool, SOON)
        await tool.started.wait()
        group.cancel_scope.cancel()
    assert tool.cancelled
    assert called.unwanted
    assert not jobs.background


async def test_a_cancelled_caller_leaves_a_background_job_alone(jobs: JobScheduler):
    tool, slow = Held(), job()
    with anyio.CancelScope() as scope:
        await jobs.run(slow, tool, 0.01)
        scope.cancel()
    tool.release.set()
    await jobs.stop()
    assert slow.result == "late"


async def test_a_tool_runs_no_longer_than_its_time_limit(jobs: JobScheduler):
    tool, slow = Held(), job(may_take=0.02)
    await jobs.run(slow, tool, SOON)
    assert (slow.timed_out, tool.cancelled, slow.state) == (True, True, "failed")


async def test_a_call_that_blocks_its_caller_takes_no_slot(changes: Changes):
    jobs = await opened(changes, max_running=1)
    held = Held()
    jobs.start(job(), held)
    await held.started.wait()
    blocking = job()
    await jobs.block(blocking, returning(3))
    assert (blocking.result, blocking.state, blocking.background) == (3, "ready", False)
    assert current.get() is None
    await jobs.abort()


async def test_abort_also_ends_a_call_that_blocks_its_caller(jobs: JobScheduler):
    tool, blocking = Held(), job()
    async with anyio.create_task_group() as group:
        group.start_soon(jobs.block, blocking, tool)
        await tool.started.wait()
        assert await jobs.abort() == []
    assert (blocking.state, blocking.error) == ("failed", "cancelled")


async def test_the_clock_pauses_while_a_person_is_asked(jobs: JobScheduler):
    asked, answered = anyio.Event(), anyio.Event()
    looked = anyio.Event()

    async def run(job: Job) -> None:
        with asking(), asking():
            asked.set()
            await answered.wait()
        job.result = "yes"

    async def answer_later() -> None:
        await asked.wait()
        jobs.clock.set("past both deadlines", 0.2, looked.set)
        await looked.wait()
        answered.set()

    called = job(may_take=0.05)
    async with anyio.create_task_group() as group:
        group.start_soon(answer_later)
        await jobs.run(called, Doing(run), 0.02)
    assert (called.result, called.background, called.timed_out) == ("yes", False, False)


async def test_a_tool_has_its_remaining_time_after_a_person_answers(jobs: JobScheduler):
    called = job()
    deadline = time.monotonic() + 10
    with called.pause_clocks():
        rest = called.rest(deadline)
        assert deadline - time.monotonic() <= rest <= 10
    rest = called.rest(deadline)
    assert deadline - time.monotonic() <= rest <= 10
    late = time.monotonic() - 1
    assert called.rest(late) < -0.9
    with called.pause_clocks():
        assert called.rest(late) == 0.05  # not over, and not looked at all the time


async def test_asking_outside_a_tool_changes_nothing():
    with asking():
        assert current.get() is None


async def test_after_stop_running_jobs_finish_and_no_new_ones_start(jobs: JobScheduler):
    tool, slow = Held(), job()
    jobs.start(slow, tool)
    async with anyio.create_task_group() as group:
        group.start_soon(jobs.stop)
        await tool.started.wait()
        tool.release.set()
    assert slow.state == "ready"
    with pytest.raises(SessionClosed, match="takes no new tool calls"):
        await jobs.run(job(), returning(1), SOON)
    with pytest.raises(SessionClosed):
        jobs.start(job(), returning(1))
    with pytest.raises(SessionClosed):
        await jobs.block(job(), returning(1))
    assert list(jobs.background.values()) == [slow]


async def test_stop_waits_for_calls_that_are_still_racing(jobs: JobScheduler):
    tool, racing = Held(), job()
    async with anyio.create_task_group() as group:
        group.start_soon(jobs.run, racing, tool, SOON)
        await tool.started.wait()
        group.start_soon(jobs.stop)
        await anyio.wait_all_tasks_blocked()
        tool.release.set()
    assert racing.result == "late"


async def test_abort_cancels_everything_immediately(jobs: JobScheduler):
    tools = [Held() for _ in range(4)]
    started = [job() for _ in tools]
    for slow, tool in zip(started, tools, strict=True):
        jobs.start(slow, tool)
    for tool in tools:
        await tool.started.wait()
    assert await jobs.abort() == []
    assert [job.state for job in started] == ["failed"] * 4
    assert {job.error for job in started} == {"cancelled"}
    assert all(tool.cancelled for tool in tools)


async def test_abort_ends_a_job_that_waits_for_a_slot(changes: Changes):
    jobs = await opened(changes, max_running=1)
    queued = job("queued")
    jobs.start(job("slow"), Held())
    jobs.start(queued, returning(1))
    await anyio.wait_all_tasks_blocked()
    assert await jobs.abort() == []
    assert (queued.state, queued.error, queued.result) == ("failed", "cancelled", None)


async def test_abort_names_what_keeps_running(jobs: JobScheduler):
    tool, deaf = Deaf(), job("deaf")
    jobs.start(deaf, tool)
    await tool.started.wait()
    assert await jobs.abort() == [deaf]
    assert (deaf.state, deaf.error, jobs.pending()) == ("failed", "cancelled", [])
    tool.release.set()
    await anyio.wait_all_tasks_blocked()
    assert await jobs.abort() == []


async def test_a_tool_that_waits_or_stops_does_not_wait_for_itself(jobs: JobScheduler):
    told: list[list[Job]] = []

    async def run(own: Job) -> None:
        told.append(await jobs.wait(SOON))
        await jobs.stop()
        own.result = "went on"

    itself = job()
    jobs.start(itself, Doing(run))
    await itself.answered.wait()
    assert (itself.result, told) == ("went on", [[]])


async def test_a_tool_may_abort_its_own_session(jobs: JobScheduler):
    async def run(own: Job) -> None:
        with own.scope:
            await jobs.abort()
            await anyio.lowlevel.checkpoint()

    itself = job()
    jobs.start(itself, Doing(run))
    await itself.answered.wait()
    assert (itself.state, itself.error) == ("failed", "cancelled")


@contextmanager
def requested_by(client: Requester) -> Iterator[None]:
    before = requester.set(client)
    try:
        yield
    finally:
        requester.reset(before)


async def test_a_client_is_told_about_its_own_jobs_and_those_it_inherits(jobs: JobScheduler):
    left, mine, others = Requester(b"kind"), Requester(b"kind"), Requester(b"kind")
    for client, tool in ((left, "left"), (mine, "mine"), (others, "others")):
        with requested_by(client):
            jobs.start(job(tool), returning(1))
    left.is_away = True
    with requested_by(mine):
        assert [each.tool for each in jobs.pending()] == ["left", "mine"]
        while jobs.pending():
            await anyio.lowlevel.checkpoint()
        assert [each.tool for each in jobs.ended()] == ["left", "mine"]
        assert {each.tool for each in await jobs.wait(0)} == {"left", "mine"}
    with requested_by(Requester(b"another kind")):
        assert await jobs.wait(0) == []
    with requested_by(others):
        assert [each.tool for each in await jobs.wait(SOON)] == ["others"]


async def test_a_call_is_answered_early_only_if_its_client_comes_back(jobs: JobScheduler):
    client, tool = Requester(comes_back=False), Held()
    with requested_by(client):
        slow = job()
    async with anyio.create_task_group() as group:
        group.start_soon(jobs.run, slow, tool, 0.01)
        await jobs.run(job(), Held(), 0.1)  # this one is answered early, though it may wait longer
        assert not slow.background
        client.comes_back = True
    assert slow.background


async def test_waiting_for_a_clients_jobs_ends_with_its_last_one(jobs: JobScheduler):
    client, tools = Requester(), (Held(), Held())
    with requested_by(client):
        for tool in tools:
            jobs.start(job(), tool)
    async with anyio.create_task_group() as group:
        group.start_soon(client.wait_for_jobs)
        tools[0].release.set()
        while len(client.jobs) > 1:
            await anyio.lowlevel.checkpoint()
        tools[1].release.set()
    assert not client.jobs


@pytest.mark.parametrize("place_comes", [True, False])
async def test_a_job_whose_time_is_up_before_it_starts_says_why(changes: Changes, place_comes: bool):
    jobs = await opened(changes, max_running=1)
    running, queued, tool = job(), job("queued"), Held()
    jobs.start(running, tool)
    jobs.start(queued, returning(1))
    await tool.started.wait()
    if place_comes:
        tool.release.set()
    queued.time_out("too late")
    await queued.answered.wait()
    assert (queued.state, queued.error, queued.result) == ("failed", "too late", None)
    await jobs.abort()
