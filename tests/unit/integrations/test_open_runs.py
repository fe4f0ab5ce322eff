"""Runs that stay open between calls: those that are silent are closed when there are too many, those that work are not."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import anyio
import pytest

from overspill import Settings
from overspill.integrations.open_runs import OpenRuns, ResumableRuns
from overspill.integrations.options import Options
from overspill.integrations.sessions import AgentRun, Sessions, refuse
from tests.waiting import list_paths, until

LIMIT = 2


def make_adapter(place: Path, *, background_after: float) -> Sessions:
    settings = Settings(storeDir=str(place), retention="session", asyncTimeoutSecs=background_after)
    return Sessions(Options("test", settings))


@pytest.fixture
def adapter(tmp_path: Path) -> Sessions:
    return make_adapter(tmp_path, background_after=60)


def count_sessions(place: Path) -> int:
    return len({path for path in list_paths(place) if path.name.startswith("session-")})


@pytest.mark.parametrize("background", [False, True], ids=["waited for", "in the background"])
@pytest.mark.parametrize("kind", [OpenRuns, ResumableRuns])
async def test_a_run_whose_tool_is_running_is_not_closed_for_others(
    kind: type[OpenRuns | ResumableRuns], background: bool, tmp_path: Path
):
    go, began, answers = anyio.Event(), anyio.Event(), list[str]()
    runs = kind(make_adapter(tmp_path, background_after=0.05 if background else 60), LIMIT)

    async def find(name: str) -> AgentRun:
        return await runs.find(name, name) if isinstance(runs, OpenRuns) else runs.resume(name)

    async def slow() -> str:
        began.set()
        await go.wait()
        return "done"

    async def call(run: AgentRun, tool: Callable[[], object]) -> None:
        answers.append((await run.call("tool", {}, tool)).text)

    busy = await find("busy")
    async with anyio.create_task_group() as group:
        group.start_soon(call, busy, slow)
        await began.wait()
        if background:
            await until(lambda: bool(answers))
        for number in range(4):
            await call(await find(f"other {number}"), lambda: "quick")
        await until(lambda: count_sessions(tmp_path) == LIMIT)  # the busy one and the last
        go.set()
    if background:
        assert "tool (id: " in (await busy.call("wait_for_tool_output", {}, refuse)).text
        assert answers[1:] == ["quick"] * 4
    else:
        assert sorted(answers) == ["done", *["quick"] * 4]
    assert await find("busy") is busy
    await busy.close()


async def test_a_run_that_is_no_longer_busy_is_closed(adapter: Sessions, tmp_path: Path):
    runs = OpenRuns(adapter, LIMIT)
    for number in range(4):
        await (await runs.find(number, "")).call("tool", {}, lambda: "quick")
    assert count_sessions(tmp_path) == LIMIT
    for number in range(4):
        await runs.close(number)
    assert count_sessions(tmp_path) == 0
