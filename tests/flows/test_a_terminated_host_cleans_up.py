"""A host that turns SIGTERM into Ctrl-C, as the documentation says, leaves nothing behind; any other, until the next start."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

TURN_INTO_CTRL_C = "signal.signal(signal.SIGTERM, lambda *_: signal.raise_signal(signal.SIGINT))"
ASYNCHRONOUS = """
import asyncio, signal, sys
from overspill import Session, Settings

async def main():
    async with Session(Settings(storeDir=sys.argv[1])) as session:
        await session.keep("x" * 100_000)
        await session.start("slow", {}, lambda: asyncio.sleep(600))
        print("ready", flush=True)
        await asyncio.sleep(600)

if sys.argv[2:]:
    exec(sys.argv[2])
asyncio.run(main())
"""
BLOCKING = """
import asyncio, signal, sys
from overspill import SyncSession, Settings

if sys.argv[2:]:
    exec(sys.argv[2])

async def slow():
    print("ready", flush=True)
    await asyncio.sleep(600)

with SyncSession(Settings(storeDir=sys.argv[1])) as session:
    session.keep("x" * 100_000)
    session.call("slow", {}, slow, background=False)
"""


def terminate(program: str, store: Path, *recipe: str) -> int:
    """Start a host, wait until it has stored something and calls a tool, and terminate it. Returns its exit status."""
    command = [sys.executable, "-c", program, str(store), *recipe]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as host:
        try:
            assert host.stdout is not None
            assert host.stdout.readline() == "ready\n"
            assert outputs(store) == [100_000]
            host.send_signal(signal.SIGTERM)
            return host.wait(timeout=60)
        finally:
            host.kill()


def outputs(store: Path) -> list[int]:
    return [size for file in store.rglob("*") if file.is_file() and (size := file.stat().st_size) >= 100_000]


@pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGTERM to catch")
@pytest.mark.parametrize("program", [ASYNCHRONOUS, BLOCKING], ids=["Session", "SyncSession"])
def test_a_host_that_turns_sigterm_into_ctrl_c_removes_what_it_stored(tmp_path: Path, program: str):
    assert terminate(program, tmp_path, TURN_INTO_CTRL_C) == -signal.SIGINT
    assert outputs(tmp_path) == []


@pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGTERM to catch")
@pytest.mark.slow
def test_what_another_host_leaves_is_removed_at_the_next_start(tmp_path: Path):
    assert terminate(ASYNCHRONOUS, tmp_path) == -signal.SIGTERM
    assert outputs(tmp_path) == [100_000]
    terminate(ASYNCHRONOUS, tmp_path, TURN_INTO_CTRL_C)
    assert outputs(tmp_path) == []
