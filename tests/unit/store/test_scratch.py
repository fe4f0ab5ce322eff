"""Temporary folders of processes that may die."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

from overspill.store.files.scratch import ScratchFolder

HOLD = """
import sys
from overspill.store.files.scratch import ScratchFolder

folder = ScratchFolder("overspill-test-")
(folder.path / "part").write_bytes(b"half of it")
print(folder.path, flush=True)
sys.stdin.read()
"""


@pytest.fixture
def temp(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    return tmp_path


@contextmanager
def holder(temp: Path) -> Generator[tuple[Path, subprocess.Popen[str]]]:
    command, environ = [sys.executable, "-c", HOLD], {**os.environ, "TMPDIR": str(temp)}
    with subprocess.Popen(command, env=environ, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield Path(process.stdout.readline().strip()), process
        finally:
            process.kill()


def test_what_a_killed_process_left_is_removed_and_what_others_hold_stays(temp: Path):
    with holder(temp) as (dead, process), holder(temp) as (living, _):
        process.kill()
        process.wait(30)
        assert (dead / "part").exists()
        with ScratchFolder("overspill-test-") as ours:
            assert set(temp.iterdir()) == {living, ours}
        assert (living / "part").read_bytes() == b"half of it"
        assert set(temp.iterdir()) == {living}


def test_nothing_but_folders_of_that_name_is_removed(temp: Path):
    precious = temp / "precious"
    precious.mkdir()
    (temp / "overspill-test-link").symlink_to(precious)
    (temp / "overspill-test-file").write_text("not a folder")
    (temp / "overspill-other-1").mkdir()
    before = set(temp.iterdir())
    with ScratchFolder("overspill-test-"):
        pass
    assert set(temp.iterdir()) == before


def test_only_its_owner_can_read_it(temp: Path):
    with ScratchFolder("overspill-test-") as folder:
        assert folder.stat().st_mode & 0o077 == 0
