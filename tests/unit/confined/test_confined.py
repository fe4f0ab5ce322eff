"""A worker process can open nothing, ends in time, and its answer up to there is not lost."""

from __future__ import annotations

import fcntl
import subprocess
import sys
from pathlib import Path

import pytest
from waiting import wait_until

from overspill.confined.worker import Worker

BEGIN = """
import sys
sys.path[:] = sys.argv[1:]
from overspill.confined import limits
"""


def make_worker(folder: Path, code: str, seconds: float = 60) -> Worker:
    script = folder / "worker.py"
    script.write_text(BEGIN + code)
    return Worker(script, max_running=1, max_seconds=seconds)


@pytest.mark.parametrize(
    "attempt",
    ["open('/dev/null')", "import socket; socket.socket()", "import os; os.pipe()", "bytearray(1 << 32)"],
    ids=["file", "connection", "pipe", "memory"],
)
def test_a_worker_can_open_nothing(tmp_path: Path, attempt: str):
    code = f"""
import os, socket
def attempt():
    try:
        {attempt}
    except (OSError, MemoryError) as error:
        print(type(error).__name__)
if sys.stdin.read() == "confined":
    limits.give_up_everything_else(1 << 30)
attempt()
"""
    worker = make_worker(tmp_path, code)
    assert worker.run(b"confined").output in (b"OSError\n", b"MemoryError\n")
    if "bytearray" not in attempt:
        assert worker.run(b"free").output == b""


@pytest.mark.slow
def test_a_worker_ends_when_it_has_used_its_processor_time(tmp_path: Path):
    done = make_worker(tmp_path, "limits.limit_seconds(1)\nprint('begun', flush=True)\nwhile True: pass\n").run(b"")
    assert (done.output, done.is_complete) == (b"begun\n", False)


@pytest.mark.slow
def test_a_worker_that_waits_for_ever_is_killed(tmp_path: Path):
    code = "import threading\nprint('begun', flush=True)\nthreading.Event().wait()\n"
    done = make_worker(tmp_path, code, seconds=2).run(b"")
    assert not done.is_complete
    assert done.output in (b"begun\n", b"")


def test_a_worker_gets_its_work_and_nothing_of_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("SECRET", "yours")
    done = make_worker(tmp_path, "import os\nprint(sys.stdin.read(), os.environ.get('SECRET'))\n").run(memoryview(b"work"))
    assert (done.output, done.is_complete) == (b"work None\n", True)


def test_a_worker_ends_when_the_process_that_started_it_is_killed(tmp_path: Path):
    held = tmp_path / "held"
    held.touch()
    make_worker(
        tmp_path,
        f"""
import fcntl
limits.end_with_reader()
held = open({str(held)!r})
fcntl.flock(held, fcntl.LOCK_EX)
open({str(tmp_path / "begun")!r}, "w")
while True: pass
""",
    )
    start = f"""
from pathlib import Path
from overspill.confined.worker import Worker
Worker(Path({str(tmp_path / "worker.py")!r}), max_running=1, max_seconds=60).run(b"")
"""
    with subprocess.Popen([sys.executable, "-c", start]) as process:
        wait_until((tmp_path / "begun").exists)
        process.kill()
    with held.open() as file:
        wait_until(lambda: can_lock(file.fileno()))


def can_lock(fd: int) -> bool:
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
