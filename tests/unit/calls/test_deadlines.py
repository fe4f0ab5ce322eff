"""Many deadlines, one timer."""

import time
from collections.abc import AsyncIterator
from itertools import pairwise

import anyio
import pytest

from overspill.calls.limits import Deadlines
from overspill.calls.tasks import TaskOwner

pytestmark = [pytest.mark.anyio, pytest.mark.both_loops]


@pytest.fixture
async def clock() -> AsyncIterator[Deadlines]:
    owner, clock = TaskOwner(), Deadlines()
    await owner.open()
    clock.start(owner)
    with anyio.fail_after(20):
        yield clock
    await owner.cancel(1)


async def test_alarms_ring_in_the_order_of_their_times_whatever_the_order_they_were_set_in(clock: Deadlines):
    rung: list[str] = []
    over = anyio.Event()
    clock.set("c", 0.03, over.set)
    clock.set("b", 0.02, lambda: rung.append("b"))
    await anyio.wait_all_tasks_blocked()
    clock.set("a", 0.005, lambda: rung.append("a"))
    await over.wait()
    assert rung == ["a", "b"]


async def test_a_forgotten_alarm_does_not_ring(clock: Deadlines):
    rung: list[str] = []
    over = anyio.Event()
    clock.set("a", 0.01, lambda: rung.append("a"))
    clock.set("b", 0.03, over.set)
    clock.forget("a")
    clock.forget("never set")
    await over.wait()
    assert rung == []


async def test_an_alarm_rings_again_as_long_as_it_asks_to(clock: Deadlines):
    times: list[float] = []
    over = anyio.Event()

    def ring() -> float | None:
        times.append(time.monotonic())
        if len(times) < 3:
            return 0.02
        over.set()
        return None

    clock.set("a", 0, ring)
    await over.wait()
    assert len(times) == 3
    assert all(later - earlier >= 0.02 for earlier, later in pairwise(times))


async def test_an_alarm_may_forget_another_that_rings_at_the_same_moment(clock: Deadlines):
    rung: list[str] = []
    over = anyio.Event()

    def first() -> None:
        rung.append("first")
        clock.forget("second")

    clock.set("first", 0.01, first)
    clock.set("second", 0.01, lambda: rung.append("second"))
    clock.set("third", 0.05, over.set)
    await over.wait()
    assert rung == ["first"]


async def test_changing_the_system_time_moves_no_deadline(clock: Deadlines, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(time, "time", lambda: 0.0)
    monkeypatch.setattr(time, "time_ns", lambda: 0)
    rung = anyio.Event()
    started = time.monotonic()
    clock.set("a", 0.02, rung.set)
    await rung.wait()
    assert 0.02 <= time.monotonic() - started < 10
