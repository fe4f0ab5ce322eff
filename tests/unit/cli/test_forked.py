"""A forked `overspill` is like one that is started: other tests of commands rely on it. Here every command is started once."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from commands import RUN, bare_environment
from forked import Forked
from forked import run as run_forked

from overspill.cli import COMMANDS

LOG = "".join(f"INFO step {number} done\n" for number in range(300)) + "ERROR step 300 failed\n"
CALLS = {
    "proxy": ["--", "true"],
    "extract": ["which step failed", "build.log"],
    "keep": ["--", "echo", "hi"],
    "get": ["out_abcdef"],
    "worker": [],
    "skill": [],
    "hook": ["claude-code"],
    "serve": ["claude-code"],
    "sql": ["SELECT count(*) AS n FROM build", "build.log"],
    "run": ["none.ai", "hello"],
    "python": ["print(6 * 7)"],
    "login": ["none"],
    "logout": ["none"],
    "hub": ["status"],
    "snapshot": ["none.gz"],
    "artifacts": ["list"],
    "verify": [],
    "stats": [],
    "jobs": [],
    "view": ["out_abcdef"],
    "wrap": ["none.json"],
    "unwrap": ["none.json"],
    "doctor": ["--help"],
    "config": [],
    "help": ["extract"],
}
QUICK = ("extract", "hook")


@pytest.mark.parametrize("command", [pytest.param(name, marks=() if name in QUICK else pytest.mark.slow) for name in COMMANDS])
def test_a_command_prints_and_ends_the_same_when_it_is_started(tmp_path: Path, command: str):
    (tmp_path / "build.log").write_text(LOG)
    # A store of its own, because other tests add to the default one meanwhile, and `stats` counts.
    env = bare_environment(tmp_path) | {"TMPDIR": str(tmp_path)}
    how = {"cwd": tmp_path, "env": env, "input": b"", "capture_output": True}
    started = subprocess.run([sys.executable, "-c", RUN, command, *CALLS[command]], timeout=60, check=False, **how)
    forked = run_forked([command, *CALLS[command]], **how)
    assert b"Traceback" not in started.stderr
    assert (forked.returncode, forked.stdout, forked.stderr) == (started.returncode, started.stdout, started.stderr)


def test_a_signal_ends_it_and_its_number_is_told(tmp_path: Path):
    with Forked(["extract", "anything"], cwd=tmp_path, env=bare_environment(tmp_path), stdin=subprocess.PIPE) as process:
        assert process.poll() is None
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(0)
        process.send_signal(signal.SIGKILL)
        assert process.wait(60) == -signal.SIGKILL
    assert process.poll() == -signal.SIGKILL


@pytest.mark.parametrize("is_new", [False, True])
def test_it_has_a_session_of_its_own_when_asked(tmp_path: Path, is_new: bool):
    how = {"cwd": tmp_path, "env": bare_environment(tmp_path), "stdin": subprocess.PIPE}
    with Forked(["hook", "claude-code"], **how, start_new_session=is_new) as process:
        assert (os.getsid(process.pid) == process.pid) is is_new
        process.communicate(b"{}", timeout=60)
    assert process.returncode == 0


def test_nothing_of_it_stays_open_here(tmp_path: Path):
    run_forked(["--version"], capture_output=True)  # so that the server runs
    before = set(os.listdir("/dev/fd"))
    for _ in range(3):
        run_forked(["--version"], env=bare_environment(tmp_path), input=b"", capture_output=True)
    assert set(os.listdir("/dev/fd")) == before
