"""Whose session it is: one for each conversation or run, never one for the adapter."""

from __future__ import annotations

import asyncio
import gc
import threading
from pathlib import Path
from typing import Any

import anyio
import pytest

from overspill import ContextBudget, Session, Settings, SyncSession
from overspill.errors import BadRequest, UnknownHandle
from overspill.integrations.options import Options
from overspill.integrations.sessions import AgentRun, Sessions
from overspill.types import Reply
from tests.waiting import list_paths, until

BIG = "line of text\n" * 20_000


def sessions(place: Path, retention: str = "process", **options: Any) -> Sessions:
    return Sessions(Options("test", Settings(storeDir=str(place), retention=retention), **options))


def session_files(place: Path) -> list[Path]:
    return [path for path in list_paths(place) if path.name.startswith("session-")]


async def dump(run: AgentRun) -> Reply:
    return await run.call("dump", {}, lambda: BIG)


async def read(run: AgentRun, reply: Reply) -> str:
    assert reply.kept is not None
    args = {"id": reply.kept.name, "mode": "slice", "slice": {"lines": "1-1"}}
    return (await run.call("get_tool_output", args, BIG.count)).text


@pytest.mark.promise("nobody-elses")
async def test_runs_without_a_conversation_share_nothing(tmp_path: Path):
    adapter = sessions(tmp_path, "session")
    one, other = adapter.begin_run(), adapter.begin_run()
    kept = await dump(one)
    await dump(other)
    assert "line of text" in await read(one, kept)
    assert "line of text" not in await read(other, kept)
    await one.close()
    await other.close()
    assert session_files(tmp_path) == []


async def test_a_conversation_goes_on_in_its_next_run(tmp_path: Path):
    adapter = sessions(tmp_path)
    first = adapter.begin_run("../../etc/passwd\ud800")
    kept = await dump(first)
    await first.close()
    second, stranger = sessions(tmp_path).begin_run("../../etc/passwd\ud800"), adapter.begin_run("other")
    assert "line of text" in await read(second, kept)
    assert "line of text" not in await read(stranger, kept)
    await second.close()
    await stranger.close()


@pytest.mark.slow
async def test_runs_of_one_conversation_at_the_same_time_share_a_session(tmp_path: Path):
    adapter = sessions(tmp_path)
    runs = [adapter.begin_run("c") for _ in range(5)]
    replies: list[Reply] = []

    async def one(run: AgentRun) -> None:
        replies.append(await dump(run))
        await run.close()

    async with anyio.create_task_group() as group:
        for run in runs:
            group.start_soon(one, run)
    assert len({reply.kept.session for reply in replies if reply.kept}) == 1


@pytest.mark.slow
async def test_closing_while_the_next_run_opens_is_no_conflict(tmp_path: Path):
    adapter = sessions(tmp_path)
    for _ in range(10):
        first = adapter.begin_run("c")
        await dump(first)
        second = adapter.begin_run("c")
        async with anyio.create_task_group() as group:
            group.start_soon(first.close)
            group.start_soon(dump, second)
        await second.close()


class BothLeft:
    """A lock that lets nobody go on after it until both have left it."""

    def __init__(self) -> None:
        self._lock, self._left = threading.Lock(), threading.Barrier(2, timeout=30)

    def __enter__(self) -> None:
        self._lock.acquire()

    def __exit__(self, *raised: object) -> None:
        self._lock.release()
        self._left.wait()


def test_the_second_of_two_runs_that_end_in_two_threads_closes_their_session(tmp_path: Path):
    adapter = sessions(tmp_path)
    runs = [adapter.begin_run("c") for _ in range(2)]
    for run in runs:
        run.call_sync("dump", {}, lambda: BIG)
    (opened,) = adapter._opened.values()
    opened.lock = BothLeft()
    threads = [threading.Thread(target=run.close_sync) for run in runs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    later = adapter.begin_run("c")
    assert later.call_sync("dump", {}, lambda: BIG).kept
    later.close_sync()


async def test_a_run_that_is_dropped_closes_its_session(tmp_path: Path):
    run = sessions(tmp_path, "session").begin_run()
    await dump(run)
    assert session_files(tmp_path)
    del run
    gc.collect()
    await until(lambda: not session_files(tmp_path))


@pytest.mark.slow
async def test_a_blocking_run_that_is_dropped_closes_its_session(tmp_path: Path):
    run = sessions(tmp_path, "session").begin_run()
    await anyio.to_thread.run_sync(run.call_sync, "dump", {}, lambda: BIG)
    del run
    gc.collect()
    await until(lambda: not session_files(tmp_path))


@pytest.mark.slow
def test_a_run_that_is_dropped_after_its_event_loop_has_ended_closes_its_session(tmp_path: Path):
    run = sessions(tmp_path, "session").begin_run()
    asyncio.run(dump(run))
    assert session_files(tmp_path)
    del run
    gc.collect()
    for thread in threading.enumerate():
        if thread is not threading.current_thread() and not thread.daemon:
            thread.join(30)
    assert session_files(tmp_path) == []


def test_a_run_that_calls_no_tool_opens_nothing(tmp_path: Path):
    run = sessions(tmp_path).begin_run("c")
    assert run.notice() == ""
    run.close_sync()
    assert list(tmp_path.iterdir()) == []


async def test_every_run_has_a_budget_of_its_own(tmp_path: Path):
    adapter = sessions(tmp_path, budget=ContextBudget(window=2_000, reserve_output=100))
    one, other = adapter.begin_run(), adapter.begin_run()
    assert (await one.call("a", {}, lambda: "word " * 1_500)).passed
    assert not (await one.call("b", {}, lambda: "word " * 1_500)).passed
    assert (await other.call("a", {}, lambda: "word " * 1_500)).passed
    one.begin_request()(100)
    assert (await one.call("c", {}, lambda: "word " * 1_500)).passed
    await one.close()
    await other.close()


async def test_a_shared_session_is_left_open(tmp_path: Path):
    async with Session(Settings(storeDir=str(tmp_path))) as session:
        run = Sessions(Options("test", session=session)).begin_run("c")
        reply = await dump(run)
        await run.close()
        assert reply.kept is not None
        assert session.kept() == [reply.kept]
        with pytest.raises(BadRequest, match="not async"):
            run.call_sync("dump", {}, lambda: BIG)
    with SyncSession(Settings(storeDir=str(tmp_path))) as blocking, pytest.raises(BadRequest, match="is async"):
        await dump(Sessions(Options("test", session=blocking)).begin_run())


async def test_a_conversation_leaves_nothing_if_the_settings_say_so(tmp_path: Path):
    adapter = sessions(tmp_path, "session")
    first, second = adapter.begin_run("c"), adapter.begin_run("c")
    kept = await dump(first)
    assert "line of text" in await read(second, kept)
    await first.close()
    await second.close()
    assert session_files(tmp_path) == []


async def test_a_name_shares_a_session(tmp_path: Path):
    first = sessions(tmp_path, session="shared").begin_run("a")
    kept = await dump(first)
    await first.close()
    second = sessions(tmp_path, session="shared").begin_run("b")
    assert "line of text" in await read(second, kept)
    await second.close()
    async with Session(Settings(storeDir=str(tmp_path))) as other:
        assert kept.kept is not None
        with pytest.raises(UnknownHandle):
            other.open(kept.kept.handle)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"settings": {}}, "settings must be Settings(…), not dict."),
        ({"session": 7}, "session must be a Session, a SyncSession or a name, not int."),
        ({"budget": "all"}, "budget must be ContextBudget(window=…) or a number of tokens, not str."),
        (
            {"session": Session(), "budget": 7},
            "The session has its own settings and budget. Give `settings` and `budget` to the session instead.",
        ),
    ],
)
def test_a_mistake_in_the_options_is_named(options: dict[str, Any], message: str):
    with pytest.raises(BadRequest) as refused:
        Options("test", **options)
    assert str(refused.value) == message
