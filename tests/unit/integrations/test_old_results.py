"""Old results in a framework's conversation: which are replaced, and which never are."""

from __future__ import annotations

from pathlib import Path

import pytest

from overspill import Session, Settings, SyncSession
from overspill.errors import BadRequest
from overspill.integrations.old_results import Called, Entry, OldResult, Said, compact, compact_sync
from overspill.integrations.options import Options
from overspill.integrations.sessions import AgentRun, Sessions

pytestmark = pytest.mark.both_loops

LONG = "\n".join(f"line {number}" for number in range(2_000))


def begin(place: Path, **options: object) -> AgentRun:
    return Sessions(Options("test", Settings(storeDir=str(place)), **options)).begin_run()  # pyright: ignore[reportArgumentType]


def call(place: int, text: str, *, id: str = "", is_error: bool = False) -> list[Entry]:
    return [Called(id or f"c{place}", "read", {"place": place}), OldResult(place, id or f"c{place}", text, is_error)]


def converse(*calls: list[Entry]) -> list[Entry]:
    """Each call is a turn, and two more turns follow, which are never touched."""
    last = [call(98, "small"), call(99, "small")]
    return [Said("user", "Read them."), *(entry for each in (*calls, *last) for entry in each)]


async def test_old_results_are_replaced_and_the_last_turns_are_not(tmp_path: Path):
    run = begin(tmp_path, budget=20_000, compact=0.5)
    entries = [*converse(call(0, LONG), call(1, LONG)), *call(2, LONG)]
    lines = await compact(run, lambda: entries)
    assert set(lines) == {0, 1}
    assert all(line.startswith("[An earlier result of read is stored as out_") for line in lines.values())
    await run.close()


async def test_the_next_run_of_a_conversation_replaces_them_by_the_same_lines(tmp_path: Path):
    """Each has a session of its own, and sends the framework's whole history again."""
    entries, lines = converse(call(0, f"first\n{LONG}"), call(1, f"second\n{LONG}")), list[object]()
    for _ in range(2):
        options = Options("test", Settings(storeDir=str(tmp_path)), budget=20_000, compact=0.5)
        run = Sessions(options).begin_run("customer 7")
        lines.append(await compact(run, lambda: entries))
        await run.close()
    assert lines[0] == lines[1] != {}


async def test_an_error_stays(tmp_path: Path):
    run = begin(tmp_path, budget=20_000, compact=0.5)
    entries = converse(call(0, LONG, is_error=True), call(1, LONG))
    assert set(await compact(run, lambda: entries)) == {1}
    await run.close()


async def test_calls_with_the_same_id_are_told_apart(tmp_path: Path):
    """Some providers and local models number the calls of each turn from the start."""
    run = begin(tmp_path, budget=20_000, compact=0.5)
    entries = converse(call(0, f"first\n{LONG}", id="c"), call(1, "small", id="c"), call(2, f"third\n{LONG}", id="c"))
    lines = await compact(run, lambda: entries)
    assert set(lines) == {0, 2}
    assert lines[0] != lines[2]
    await run.close()


async def test_below_the_threshold_nothing_changes(tmp_path: Path):
    run = begin(tmp_path, budget=200_000, compact=0.9)
    assert await compact(run, lambda: converse(call(0, LONG))) == {}
    await run.close()


async def test_unless_asked_for_the_conversation_is_not_even_read(tmp_path: Path):
    def read() -> list[Entry]:
        raise AssertionError

    run = begin(tmp_path, budget=20)
    assert await compact(run, read) == {}
    assert compact_sync(run, read) == {}


async def test_a_conversation_without_results_opens_no_session(tmp_path: Path):
    run = begin(tmp_path, budget=20, compact=0.1)
    assert await compact(run, lambda: [Said("user", LONG)]) == {}
    assert not list(tmp_path.iterdir())


async def test_without_a_window_it_says_what_is_missing(tmp_path: Path):
    with pytest.raises(BadRequest, match="Give `budget` as well"):
        await compact(begin(tmp_path, compact=0.5), list)


async def test_a_window_that_the_framework_knows_is_enough(tmp_path: Path):
    run = begin(tmp_path, compact=0.5)
    run.begin_request(20_000)
    assert set(await compact(run, lambda: converse(call(0, LONG), call(1, LONG)))) == {0, 1}
    await run.close()


async def test_a_shared_session_that_knows_the_window_is_enough(tmp_path: Path):
    async with Session(Settings(storeDir=str(tmp_path))) as session:
        run = Sessions(Options("test", session=session, compact=0.5)).begin_run()
        run.begin_request(20_000)
        lines = await compact(run, lambda: converse(call(0, LONG), call(1, LONG)))
        assert set(lines) == {0, 1}
        with session.open(lines[0].split("stored as ")[1].split(" ")[0]) as stored:
            assert stored.bytes() == LONG.encode()


def test_a_blocking_run_gets_the_same(tmp_path: Path):
    with SyncSession(Settings(storeDir=str(tmp_path))) as session:
        run = Sessions(Options("test", session=session, compact=0.5)).begin_run()
        run.begin_request(20_000)
        assert set(compact_sync(run, lambda: converse(call(0, LONG), call(1, LONG)))) == {0, 1}


@pytest.mark.parametrize("share", [0, -1, 70, "0.7", True])
def test_a_share_that_is_none_is_refused(share: object):
    with pytest.raises(BadRequest, match="compact"):
        Options("test", compact=share)  # pyright: ignore[reportArgumentType]
