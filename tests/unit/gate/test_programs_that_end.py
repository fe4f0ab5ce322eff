"""A program may end while a search that took too long is still running."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = """
import sys, threading
from overspill import Settings, SyncSession

def read_log():
    lines = [f"2026-11-16 {number:06} order served" for number in range(30_000)]
    return "\\n".join([*lines, "order 4711 was refused", *lines])

def is_searching():
    return any(frame.f_code.co_filename.endswith("re2/__init__.py") for frame in sys._current_frames().values())

with SyncSession(Settings(storeDir=sys.argv[1], intentWithinSecs=0.01)) as session:
    question = {"role": "user", "content": "Which order was refused on 2026-11-16?"}
    session.call("read_log", {}, read_log, messages=[question])
    while not is_searching():
        assert threading.active_count() > 1
print("done", flush=True)
"""


@pytest.mark.parametrize("attempt", range(3))
def test_a_program_that_ends_during_a_search_ends_well(tmp_path: Path, attempt: int):
    """It was aborted where the search was inside the code of RE2."""
    ended = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(tmp_path)], capture_output=True, text=True, timeout=120, check=False
    )
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "done\n", "")
