"""What would be released is whole, and every version in the repository is the same."""

import runpy
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


def test_another_version_is_noticed_everywhere():
    check = runpy.run_path(str(ROOT / "scripts" / "check-release"))
    assert check["find_version_problems"](check["read_version"]()) == []
    assert len(check["find_version_problems"]("99.0")) == 7


@pytest.mark.slow
def test_the_built_wheel_is_whole_and_runs():
    done = subprocess.run(
        [sys.executable, str(ROOT / "scripts" / "check-release")], capture_output=True, text=True, timeout=300, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert "can be released" in done.stdout


@pytest.mark.parametrize(
    ("typed", "offered"), [("ke", ["keep"]), ("artifacts ex", ["export"]), ("keep --background", ["--background-after"])]
)
def test_a_shell_completes_commands_and_options(typed: str, offered: list[str]):
    program = Path(sys.executable).with_name("overspill")
    env = {
        "_OVERSPILL_COMPLETE": "bash_complete",
        "COMP_WORDS": f"overspill {typed}",
        "COMP_CWORD": str(len(typed.split())),
        "PATH": "/usr/bin:/bin",
        "HOME": "/nonexistent",
    }
    done = subprocess.run([program], env=env, capture_output=True, text=True, timeout=60, check=True)
    assert [line.partition(",")[2] for line in done.stdout.splitlines()] == offered
