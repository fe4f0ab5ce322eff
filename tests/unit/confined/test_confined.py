"""A worker process can open nothing, ends in time, and its answer up to there is not lost."""

from __future__ import annotations

import ctypes
import fcntl
import os
import subprocess
import sys
from pathlib import Path

import pytest
from pdfs import assemble, page_objects
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
    assert (done.output, done.is_complete, done.is_late) == (b"begun\n", False, True)


@pytest.mark.slow
def test_a_worker_that_waits_for_ever_is_killed(tmp_path: Path):
    code = "import threading\nprint('begun', flush=True)\nthreading.Event().wait()\n"
    done = make_worker(tmp_path, code, seconds=2).run(b"")
    assert (done.is_complete, done.is_late) == (False, True)
    assert done.output in (b"begun\n", b"")


@pytest.mark.parametrize("end", ["os.kill(os.getpid(), signal.SIGKILL)", "os.abort()", "sys.exit(1)"])
def test_a_worker_that_is_killed_or_fails_is_not_late(tmp_path: Path, end: str):
    code = f"import os, signal\nlimits.limit_files(0)\nlimits.limit_seconds(60)\n{end}\n"
    done = make_worker(tmp_path, code).run(b"")
    assert (done.output, done.is_complete, done.is_late) == (b"", False, False)


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


CHECK_SCHEMA = """
from overspill.schema import find_misfit
find_misfit({"properties": {"a": {"uniqueItems": True}}}, {"a": [{"n": n} for n in range(100_000)]})
"""
READ_PDF = """
import sys
from pathlib import Path
from overspill.decoding.limits import Limits
from overspill.decoding.pdf import read_pages
from overspill.store.readers import BytesReader
read_pages(BytesReader(Path(sys.argv[1]).read_bytes()), "", Limits(pdf_seconds=8))
"""
BECOME_REAPER = 36  # of prctl: orphans below this process become its children
BUSY_SECONDS = 1.0  # of processor time: then it has begun


@pytest.mark.slow
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="looks at processes in /proc")
@pytest.mark.parametrize("work", [CHECK_SCHEMA, READ_PDF], ids=["schema", "pdf"])
def test_a_worker_that_is_busy_ends_by_itself_when_its_parent_is_killed(work: str, tmp_path: Path):
    slow_page = b"BT /F1 12 Tf " + b"(A) Tj " * 1_000_000 + b" ET"
    (tmp_path / "slow.pdf").write_bytes(assemble(page_objects([slow_page])))
    prctl = ctypes.CDLL(None).prctl
    assert prctl(BECOME_REAPER, 1, 0, 0, 0) == 0
    try:
        with subprocess.Popen([sys.executable, "-c", work, str(tmp_path / "slow.pdf")]) as process:
            wait_until(lambda: any(used_seconds(child) > BUSY_SECONDS for child in list_children(process.pid)))
            (worker,) = list_children(process.pid)
            process.kill()
        _, status = os.waitpid(worker, 0)
    finally:
        prctl(BECOME_REAPER, 0, 0, 0, 0)
    assert os.waitstatus_to_exitcode(status) == 1  # and not by the signal that its limit sends


def list_children(pid: int) -> list[int]:
    return [int(child) for file in Path(f"/proc/{pid}/task").glob("*/children") for child in file.read_text().split()]


def used_seconds(pid: int) -> float:
    user, system = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11:13]
    return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")


def can_lock(fd: int) -> bool:
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
