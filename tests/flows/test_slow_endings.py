"""However a session ends, with whatever still running: nothing hangs and nothing is left behind."""

import asyncio
import os
import threading
import time
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import anyio
import pytest
import trio

from overspill import Session, Settings
from overspill.testing import SlowTool

pytestmark = [pytest.mark.anyio, pytest.mark.both_loops]

HANGS = 20.0


def tasks() -> set[str]:
    try:
        return {repr(task.get_coro()) for task in asyncio.all_tasks()}
    except RuntimeError:
        return set(_below(trio.lowlevel.current_root_task()))


def _below(task: trio.lowlevel.Task | None) -> list[str]:
    if task is None:
        return []
    return [repr(task), *(name for nursery in task.child_nurseries for child in nursery.child_tasks for name in _below(child))]


def files(store: Path) -> list[str]:
    return [path.name for path in store.rglob("*")]


def open_files(store: Path) -> list[str]:
    """Of sessions: what belongs to the run stays open as long as the process has one."""
    found: list[str] = []
    for fd in os.listdir("/proc/self/fd"):
        with suppress(FileNotFoundError):  # another thread has just closed it
            found.append(os.readlink(f"/proc/self/fd/{fd}"))
    return [path for path in found if path.startswith(str(store)) and "/session-" in path]


def busy_threads() -> list[str]:
    """All but those that wait for work: they are anyio's and trio's, and end with the loop."""
    names = ("MainThread", "AnyIO worker thread", "Trio thread")
    return [thread.name for thread in threading.enumerate() if not thread.name.startswith(names)]


async def endless() -> AsyncIterator[str]:
    while True:
        yield "line\n" * 500
        await anyio.sleep(0.001)


class Stopped(Exception):
    pass


@pytest.mark.parametrize("end", ["success", "exception", "cancellation", "abort", "stop"])
async def test_nothing_is_left_however_a_session_ends(end: str, tmp_path: Path):
    before, threads = tasks(), busy_threads()
    quick = SlowTool("done")
    settings = Settings(storeDir=str(tmp_path), retention="session", asyncTimeoutSecs=0.02)
    with anyio.fail_after(HANGS):
        with anyio.CancelScope() as scope:
            try:
                async with Session(settings) as session:
                    await session.call("quick", {}, quick)
                    if end != "stop":
                        await session.call("coroutine", {}, SlowTool())
                        await session.call("stream", {}, endless)
                        await session.call("images", {}, lambda: "x" * 30_000)
                    await session.invoke("get_tool_output", {"id": await session.start("n", {}, lambda: "y"), "mode": "slice"})
                    match end:
                        case "exception":
                            raise Stopped
                        case "cancellation":
                            scope.cancel()
                            await anyio.sleep(HANGS)
                        case "abort":
                            assert await session.abort() == []
                            assert open_files(tmp_path)
                        case "stop":
                            quick.release()
                            await session.stop()
                            assert "### Ready (2)" in session.notice()
                        case _:
                            pass
            except Stopped:
                assert end == "exception"
        assert scope.cancelled_caught == (end == "cancellation")
        await anyio.wait_all_tasks_blocked()
    assert tasks() == before
    assert open_files(tmp_path) == []
    assert files(tmp_path) == []
    assert busy_threads() == threads


async def test_cancelling_a_session_with_200_running_jobs_takes_less_than_a_second(tmp_path: Path):
    before = tasks()
    tools = [SlowTool() for _ in range(200)]
    settings = Settings(storeDir=str(tmp_path), retention="session", maxRunning=200)
    with anyio.fail_after(60):
        async with anyio.create_task_group() as group, Session(settings) as session:
            for n, tool in enumerate(tools):
                await session.start(f"tool {n}", {}, tool if n % 2 else endless)
            for tool in tools[1::2]:
                await tool.begun()
            began, worked = time.monotonic(), time.process_time()
            group.cancel_scope.cancel()
    took, worked = time.monotonic() - began, time.process_time() - worked
    await anyio.wait_all_tasks_blocked()
    assert worked < 1
    assert took < 20  # nobody is waited for; how much of the time is ours is up to what else this machine does
    assert tasks() == before
    assert open_files(tmp_path) == []
    assert files(tmp_path) == []


@pytest.mark.parametrize("retention", ["session", "keep"])
async def test_a_stuck_thread_is_named_and_its_session_ends_all_the_same(tmp_path: Path, retention: Any):
    tool = SlowTool("x" * 3_000_000)
    settings = Settings(storeDir=str(tmp_path), retention=retention)
    with anyio.fail_after(HANGS):
        session = Session(settings)
        await session.begin()
        id = await session.start("stuck", {}, tool.blocking)
        await tool.begun()
        left = await session.close()
        assert [(job.id, job.tool, job.state) for job in left] == [(id, "stuck", "failed")]
        assert open_files(tmp_path) == []
        tool.release()
    assert [name for name in files(tmp_path) if name.endswith(".part")] == []


async def test_a_cancelled_caller_in_the_middle_of_keeping_leaves_no_open_file(tmp_path: Path):
    settings = Settings(storeDir=str(tmp_path), retention="session", asyncTimeoutSecs=HANGS)
    with anyio.fail_after(HANGS):
        async with Session(settings) as session:
            for after in range(12):
                with anyio.move_on_after(after / 1000):
                    await session.call("large", {}, lambda: "some text\n" * 500_000)
            await anyio.wait_all_tasks_blocked()
            assert [path for path in open_files(tmp_path) if path.endswith(".part")] == []
            assert [name for name in files(tmp_path) if name.endswith(".part")] == []
