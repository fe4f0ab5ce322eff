"""FastMCP makes tasks behind the proxy, and follows tasks in front of it."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import anyio
import pytest
from running import Overspill
from wire import EVERY, Served

from overspill.mcp.client.config import ServerConfig

pytestmark = pytest.mark.slow

PEER = str(Path(__file__).parent.parent / "servers" / "tasks_of_fastmcp.py")


@pytest.mark.parametrize("modern", [False, True])
def test_its_tasks_are_followed_for_clients_that_know_none(python: Callable[[str], Path], tmp_path: Path, modern: bool) -> None:
    server = ServerConfig("work", str(python("fastmcp-tasks") / "python"), (PEER,))
    with Served([server], tmp_path, modern=modern, settings={"asyncTimeoutSecs": 30}) as wire:
        wire.hello()
        assert wire.call("report", {"lines": 1})["structuredContent"] == {"result": "line 0: the quick brown fox\n"}
        assert "too large" in wire.text("report", {"lines": 8000})


async def test_its_client_follows_a_slow_call_of_a_server_without_tasks(python: Callable[[str], Path], tmp_path: Path) -> None:
    overspill, file = Overspill(tmp_path), tmp_path / "go"
    proxy = overspill.proxy("--set", "asyncTimeoutSecs=0.3", "--", sys.executable, str(EVERY), "modern", str(file))
    command = [str(python("fastmcp-tasks") / "python"), PEER, "client", *proxy]
    with anyio.fail_after(90):
        async with await anyio.open_process(command, env=overspill.environ) as client, anyio.create_task_group() as group:
            group.start_soon(_release, file)
            assert client.stdout is not None
            said = b"".join([part async for part in client.stdout])
    assert said.decode().splitlines()[-1] == "released"


async def _release(file: Path) -> None:
    await anyio.sleep(3)  # until the call has become a task
    file.touch()
