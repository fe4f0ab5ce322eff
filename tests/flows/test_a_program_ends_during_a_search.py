"""A search that goes on when its reply was given does not crash the program that ends meanwhile."""

from __future__ import annotations

import subprocess
import sys

import pytest

PROGRAM = """
import sys
from overspill import Settings, SyncSession

log = "\\n".join(f"{number:06} request served in {number % 97} ms" for number in range(20_000))
with SyncSession(Settings(intentWithinSecs=float(sys.argv[1]))) as session:
    session.call("read", {}, lambda: log, intent="Which request was served in 17 ms?")
"""


@pytest.mark.parametrize("seconds", ["0.25", "0.3", "0.35"])
@pytest.mark.slow
def test_a_program_may_end_while_its_output_is_still_searched(seconds: str):
    """The matcher is native code. Where exactly the search is when the program ends depends on the machine."""
    ended = subprocess.run([sys.executable, "-c", PROGRAM, seconds], capture_output=True, text=True, timeout=120, check=False)
    assert (ended.returncode, ended.stderr) == (0, "")
