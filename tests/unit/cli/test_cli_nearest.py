"""What comes nearest is not taken for an answer."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

LOG = "".join(f"INFO {'step' if number % 3 else 'part'} {number} done\n" for number in range(3000))
RUN = "from overspill.cli import main; main()"


def extract(place: Path, question: str) -> subprocess.CompletedProcess[str]:
    (place / "build.log").write_text(LOG)
    environ = {"HOME": str(place), "XDG_CONFIG_HOME": str(place), "TMPDIR": str(place), "LANG": "C.UTF-8"}
    command = [sys.executable, "-c", RUN, "extract", question, "build.log"]
    return subprocess.run(command, cwd=place, env=environ, capture_output=True, text=True, timeout=60, check=False)


def test_standard_error_says_that_nothing_fits_and_standard_output_has_what_comes_nearest(tmp_path: Path) -> None:
    absent = extract(tmp_path, "which lawyer signed the insurance contract of the last step")
    assert absent.stderr == "overspill: Nothing in build.log seems to answer that. This comes nearest.\n"
    assert "INFO step" in absent.stdout
    assert absent.returncode == 0
    assert extract(tmp_path, "step 2998").stderr == ""
