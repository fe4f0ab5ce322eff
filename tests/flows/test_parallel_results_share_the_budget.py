"""Results of one turn come at once; together they never take more than the context has."""

from pathlib import Path

import anyio
import pytest

from overspill import ContextBudget, Session, Settings, ToolCall


def words(count: int) -> str:
    """A text of exactly that many tokens."""
    return " a" * count


@pytest.mark.promise("no-answer-over-budget")
@pytest.mark.parametrize("window", [2_000, 5_000, 20_000, 40_000])
async def test_what_does_not_fit_beside_the_others_is_kept(tmp_path: Path, window: int):
    budget = ContextBudget(window=window, used=500, reserve_output=400, buffer=100)
    together = anyio.Event()
    started = 0

    async def execute(call: ToolCall) -> str:
        nonlocal started
        started += 1
        if started == 20:
            together.set()
        await together.wait()
        return words(900)

    async with Session(Settings(storeDir=str(tmp_path)), budget=budget) as session:
        replies = await session.turn([ToolCall(str(number), "search") for number in range(20)], execute)
        passed = [reply for reply in replies if reply.kept is None]
        kept = [reply.kept for reply in replies if reply.kept]
        fitting = [reply for reply in replies if reply.fits]
        assert all(reply.text == words(900) for reply in passed)
        assert sum(reply.tokens for reply in fitting) <= window - 1000
        assert budget.reserved == sum(reply.tokens for reply in replies)
        assert len(passed) == min(20, (window - 1000) // 900)
        assert {each.reason for each in kept} <= ({"reserve_failed"} if window > 2_000 else {"reserve_failed", "token_budget"})
        for each in kept:
            assert session.open(each.handle).text() == words(900)


async def test_after_settling_there_is_room_again(tmp_path: Path):
    budget = ContextBudget(window=2_000)
    async with Session(Settings(storeDir=str(tmp_path)), budget=budget) as session:
        first = await session.call("search", {}, lambda: words(1_500))
        mark = budget.mark()
        second = await session.call("search", {}, lambda: words(1_000))
        assert (first.kept, second.kept is not None) == (None, True)
        budget.settle(used=600, mark=mark)
        assert budget.reserved == second.tokens
        third = await session.call("search", {}, lambda: words(1_000))
        assert third.kept is None
        budget.settle(used=1_975)
        fourth = await session.call("search", {}, lambda: words(60))
        assert fourth.kept is not None
        assert (fourth.kept.reason, fourth.fits) == ("token_budget", False)
    assert (session.budget.settlements if session.budget else None) == []


async def test_a_handle_that_fits_never_ends_the_conversation(tmp_path: Path):
    for window in range(150, 1_500, 150):
        budget = ContextBudget(window=window)
        async with Session(Settings(storeDir=str(tmp_path)), budget=budget) as session:
            reply = await session.call("search", {}, lambda: "word " * 20_000)
            assert reply.fits
            assert reply.tokens <= window
