"""The task that owns all others of a session."""

import anyio
import pytest

from overspill.calls.tasks import TaskOwner

pytestmark = [pytest.mark.anyio, pytest.mark.both_loops]


async def test_work_outlives_the_scope_it_was_started_in():
    owner, begun, go_on, done = TaskOwner(), anyio.Event(), anyio.Event(), anyio.Event()
    await owner.open()

    async def work() -> None:
        begun.set()
        await go_on.wait()
        done.set()

    with anyio.fail_after(20):
        async with anyio.create_task_group() as group:
            owner.start(work)
            await begun.wait()
            group.cancel_scope.cancel()
        go_on.set()
        await done.wait()
        await owner.cancel(1)


async def test_cancel_ends_all_work_and_may_be_repeated():
    owner, begun, ended = TaskOwner(), anyio.Event(), anyio.Event()
    await owner.open()

    async def work() -> None:
        begun.set()
        try:
            await anyio.sleep_forever()
        finally:
            ended.set()

    owner.start(work)
    with anyio.fail_after(20):
        await begun.wait()
        await owner.cancel(1)
        await owner.cancel(1)
    assert ended.is_set()


async def test_cancel_stops_waiting_for_work_that_does_not_end():
    owner, begun, release = TaskOwner(), anyio.Event(), anyio.Event()
    await owner.open()

    async def deaf() -> None:
        begun.set()
        with anyio.CancelScope(shield=True):
            await release.wait()

    owner.start(deaf)
    with anyio.fail_after(20):
        await begun.wait()
        await owner.cancel(0.01)
        release.set()
        await owner.cancel(20)


async def test_an_owner_that_was_never_opened_has_nothing_to_cancel():
    await TaskOwner().cancel(1)


async def test_a_caller_cancelled_while_it_opens_leaves_no_task_behind():
    owner = TaskOwner()
    with anyio.CancelScope() as scope:
        scope.cancel()
        await owner.open()
    with anyio.fail_after(20):
        await owner.cancel(20)
    assert scope.cancelled_caught
