"""`overspill worker`: what it says about mistakes, and that it runs tools until it is told to stop."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import anyio
import pytest
from commands import RUN
from forked import run as run_forked
from store_servers import require_package
from tool_workers import TOOLS

from overspill import Session
from overspill.store.open import open_store

require_package("docket")
LOOPBACK = "docket+redis://127.0.0.1:1/0"


def run(folder: Path, *arguments: str) -> tuple[int, str]:
    environment = {"HOME": str(folder), "PATH": "/usr/bin:/bin", "LANG": "C.UTF-8"}
    done = run_forked(["worker", *arguments], cwd=folder, env=environment, capture_output=True, text=True)
    return done.returncode, done.stderr


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "my_tools.py").write_text(TOOLS)
    return tmp_path


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--tools", "my_tools", "--store", "s"), "There is no queue"),
        (("--tools", "my_tools", "--jobs", LOOPBACK), "needs a store"),
        (("--tools", "my_tools", "--store", "s", "--jobs", "redis://127.0.0.1/0"), "is not the address of a queue"),
        (("--tools", "my_tools", "--store", "s", "--jobs", "docket+redis://u:pw@10.0.0.1/0"), "u:***@10.0.0.1"),
        (("--tools", "no_such_tools", "--store", "s", "--jobs", LOOPBACK), "Could not import no_such_tools"),
        (("--tools", "broken.py", "--store", "s", "--jobs", LOOPBACK), "SyntaxError"),
        (("--tools", "json", "--store", "s", "--jobs", LOOPBACK), "json has no WorkerTools"),
        (("--tools", "empty.py", "--store", "s", "--jobs", LOOPBACK), "registers no tool"),
        (("--tool", "my_tools"), "--tools"),
    ],
    ids=lambda value: value[-1] if isinstance(value, tuple) else "",
)
@pytest.mark.slow
def test_a_mistake_is_named(folder: Path, arguments: tuple[str, ...], said: str):
    (folder / "broken.py").write_text("def")
    (folder / "empty.py").write_text("from overspill.worker import WorkerTools\ntools = WorkerTools()\n")
    code, error = run(folder, *arguments)
    assert code not in (0, 1, -signal.SIGTERM)
    assert said in error
    assert "Traceback" not in error
    assert "pw@" not in error


async def wait_until_running(process: subprocess.Popen[str]) -> None:
    assert process.stderr is not None
    with anyio.fail_after(60):
        while "overspill: running " not in (line := await anyio.to_thread.run_sync(process.stderr.readline)):
            assert line


@pytest.mark.slow
@pytest.mark.anyio
async def test_it_runs_tools_until_it_is_told_to_stop(folder: Path, queue_url: str):
    store = str(folder / "store")
    command = [sys.executable, "-c", RUN, "worker", "--tools", "my_tools", "--store", store, "--jobs", queue_url]
    with subprocess.Popen(command, cwd=folder, stderr=subprocess.PIPE, text=True) as process:  # noqa: ASYNC220
        assert process.stderr is not None
        await wait_until_running(process)
        with anyio.fail_after(60):
            async with Session(name="team", store=open_store(store), jobs=queue_url) as session:
                assert (await session.call("echo", {"value": "text"})).text == "text"
        process.send_signal(signal.SIGTERM)
        assert process.wait(30) == 0
        assert "Traceback" not in process.stderr.read()


CHATTY = """
import sys
from overspill.worker import WorkerTools

tools = WorkerTools()

@tools.register
def chat() -> str:
    for _ in range(200):
        print("x" * 1000, file=sys.stderr)
    return "said it all"
"""


@pytest.mark.slow
@pytest.mark.anyio
async def test_a_standard_error_that_nothing_reads_holds_up_no_tool(folder: Path, queue_url: str):
    (folder / "chatty.py").write_text(CHATTY)
    store = str(folder / "store")
    command = [sys.executable, "-c", RUN, "worker", "--tools", "chatty", "--store", store, "--jobs", queue_url]
    with subprocess.Popen(command, cwd=folder, stderr=subprocess.PIPE, text=True) as process:  # noqa: ASYNC220
        await wait_until_running(process)
        try:
            with anyio.fail_after(60):
                async with Session(name="team", store=open_store(store), jobs=queue_url) as session:
                    assert (await session.call("chat", {})).text == "said it all"
        finally:
            process.kill()
