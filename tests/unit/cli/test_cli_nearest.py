"""What comes nearest is not taken for an answer."""

from __future__ import annotations

import subprocess
from pathlib import Path

import forked
import pytest
from commands import Place

LOG = "".join(f"INFO {'step' if number % 3 else 'part'} {number} done\n" for number in range(3000))


def extract(place: Path, question: str, *options: str) -> subprocess.CompletedProcess[str]:
    (place / "build.log").write_text(LOG)
    environ = {"HOME": str(place), "XDG_CONFIG_HOME": str(place), "TMPDIR": str(place), "LANG": "C.UTF-8"}
    return forked.run(["extract", question, "build.log", *options], cwd=place, env=environ, capture_output=True, text=True)


def test_standard_error_says_that_nothing_fits_and_standard_output_has_what_comes_nearest(tmp_path: Path) -> None:
    absent = extract(tmp_path, "which lawyer signed the insurance contract of the last step")
    assert absent.stderr == "overspill: Nothing in build.log seems to answer that. This comes nearest.\n"
    assert "INFO step" in absent.stdout
    assert absent.returncode == 1
    found = extract(tmp_path, "step 2998")
    assert (found.stderr, found.returncode) == ("", 0)


@pytest.mark.parametrize("options", [("--json",), ("build.log",), ("--jsonl",)])
def test_the_exit_code_says_so_to_a_program(tmp_path: Path, options: tuple[str, ...]) -> None:
    assert extract(tmp_path, "which lawyer signed the insurance contract of the last step", *options).returncode == 1
    assert extract(tmp_path, "step 2998", *options).returncode == 0


def test_get_says_so_too(place: Place) -> None:
    (kept,) = place.keep(log=LOG)
    absent = place.overspill("get", kept.name, "--ask", "which lawyer signed the insurance contract of the last step")
    assert (absent.code, absent.err) == (
        1, f"overspill: Nothing in {kept.name} seems to answer that. This comes nearest.\n",
    )  # fmt: skip
    assert place.overspill("get", kept.name, "--ask", "step 2998").code == 0
