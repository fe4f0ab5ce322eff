"""Every command in a process of its own while a session lives in another."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from commands import SOURCE, Place

LIVE = """
import sys, anyio
from overspill import Session, Settings
from overspill.testing import SlowTool

async def main():
    slow = SlowTool()
    async with Session(Settings(storeDir=sys.argv[1], asyncTimeoutSecs=0.05)) as session:
        kept = await session.keep("line\\n" * 5000, "log")
        job = await session.start("crawl", {}, slow)
        await slow.begun()
        print(kept.artifact_id, job, flush=True)
        for line in iter(sys.stdin.readline, ""):
            answer = await session.invoke("get_tool_output", {"id": kept.artifact_id, "mode": "slice", "slice": {"length": 5}})
            print(repr(answer.text), flush=True)

anyio.run(main)
"""


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Place:
    return Place(tmp_path, monkeypatch, capsys)


@pytest.mark.slow
def test_commands_look_at_a_live_session_and_leave_it_alone(place: Place):
    def overspill(*args: str) -> subprocess.CompletedProcess[bytes]:
        return place.process(*args, capture_output=True)

    env = {"PYTHONPATH": str(SOURCE), "PATH": "/usr/bin:/bin"}
    command = [sys.executable, "-W", "ignore", "-c", LIVE, str(place.store)]
    with subprocess.Popen(command, stdin=-1, stdout=-1, stderr=subprocess.DEVNULL, text=True, env=env) as live:
        assert live.stdin is not None
        assert live.stdout is not None
        kept, job = live.stdout.readline().split()

        (item,) = json.loads(overspill("artifacts", "list", "--json").stdout)
        assert (item["artifact_id"], item["live"], item["bytes"]) == (kept, True, 25_000)
        assert overspill("artifacts", "show", kept, "--lines", "2-3").stdout == b"line\nline\n"
        (running,) = json.loads(overspill("jobs", "--json").stdout)
        assert (running["id"], running["tool"], running["state"]) == (job, "crawl", "running")
        assert json.loads(overspill("stats", "--json").stdout)["sessions"][0]["live"] is True
        assert overspill("verify").stdout == b"1 checked, 0 changed.\n"
        not_there_yet = overspill("artifacts", "show", job)
        assert (not_there_yet.returncode, not_there_yet.stdout) == (2, b"")
        nothing = b"Nothing to remove. --live also removes the 1 output of live sessions.\n"
        assert overspill("artifacts", "clean", "--force").stdout == nothing

        live.stdin.write("still there?\n")
        live.stdin.flush()
        assert live.stdout.readline() == "'line\\n'\n"

        assert overspill("artifacts", "clean", "--live", "--force").stdout == b"Removed 1 stored output (25 KB).\n"
        live.stdin.write("still there?\n")
        live.stdin.flush()
        assert live.stdout.readline().startswith(("'Tool output expired", "'line"))
        live.stdin.close()
        assert live.wait(timeout=30) == 0
    assert overspill("jobs").stdout == b"No background jobs in live sessions.\n"
