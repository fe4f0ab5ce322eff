"""The context budget: looking costs nothing, taking is atomic, settling clears only what was counted."""

from threading import Barrier, Thread

import pytest

from overspill.budget import ContextBudget
from overspill.errors import SettingsError


def test_room_is_what_the_window_has_left():
    budget = ContextBudget(window=1000, used=300, reserve_output=200, buffer=100)
    assert (budget.room, budget.capacity, budget.used, budget.reserved) == (400, 400, 300, 0)


def test_a_preview_takes_nothing():
    budget = ContextBudget(window=100)
    assert budget.preview(100)
    assert not budget.preview(101)
    assert budget.room == 100


def test_reservations_add_up_until_the_room_is_gone():
    budget = ContextBudget(window=100)
    assert budget.reserve(60)
    assert not budget.reserve(41)
    assert budget.reserve(40)
    assert (budget.room, budget.capacity) == (0, 100)


def test_what_has_to_be_said_is_charged_though_it_does_not_fit():
    budget = ContextBudget(window=100)
    budget.charge(150)
    assert budget.room == 0


def test_settling_without_a_mark_clears_every_reservation():
    budget = ContextBudget(window=1000)
    budget.reserve(100)
    budget.settle(used=150)
    assert (budget.used, budget.reserved, budget.room) == (150, 0, 850)


def test_settling_with_a_mark_leaves_what_was_reserved_after_the_request_was_made():
    budget = ContextBudget(window=1000)
    budget.reserve(100)
    mark = budget.mark()
    budget.reserve(30)
    budget.settle(used=120, mark=mark)
    assert (budget.used, budget.reserved) == (120, 30)
    budget.settle(used=155)
    assert (budget.used, budget.reserved) == (155, 0)


def test_an_old_mark_clears_nothing_twice():
    budget = ContextBudget(window=1000)
    budget.reserve(10)
    old = budget.mark()
    budget.settle(used=10, mark=old)
    budget.reserve(20)
    budget.settle(used=12, mark=old)
    assert budget.reserved == 20


def test_estimates_stand_beside_the_hosts_counts():
    budget = ContextBudget(window=1000, used=50)
    budget.reserve(100)
    budget.settle(used=160)
    assert budget.settlements == [(150, 160)]


def test_threads_cannot_together_take_more_than_there_is():
    budget = ContextBudget(window=1000)
    taken: list[bool] = []
    barrier = Barrier(8)

    def take() -> None:
        barrier.wait(timeout=30)
        taken.extend(budget.reserve(10) for _ in range(50))

    threads = [Thread(target=take) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=30)
    assert (sum(taken), budget.room) == (100, 0)


@pytest.mark.parametrize(
    ("figures", "message"),
    [
        ({"window": 0}, "`window` must be a whole number of at least 1, not 0."),
        ({"window": 10, "used": -1}, "`used` must be a whole number of at least 0, not -1."),
        ({"window": 10, "reserve_output": -5}, "`reserve_output` must be a whole number of at least 0, not -5."),
        ({"window": 10, "buffer": -5}, "`buffer` must be a whole number of at least 0, not -5."),
    ],
)
def test_figures_below_the_least_are_refused(figures: dict[str, int], message: str):
    with pytest.raises(SettingsError) as caught:
        ContextBudget(**figures)
    assert str(caught.value) == message


def test_a_negative_count_cannot_be_settled():
    with pytest.raises(SettingsError) as caught:
        ContextBudget(window=10).settle(used=-1)
    assert str(caught.value) == "`used` must be a whole number of at least 0, not -1."
