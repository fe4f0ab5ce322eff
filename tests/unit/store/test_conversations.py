"""Whose conversation a process works for, and when that conversation is over."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from overspill.store.conversations import client_of, conversation_of, is_over

TELL = "import os; from overspill.store.conversations import conversation_of; print(conversation_of(os.getpid()))"


def test_it_is_the_process_that_started_it_and_over_when_that_has_ended():
    assert not is_over(conversation_of(os.getpid()))
    start = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {TELL!r}], check=True)"
    with subprocess.Popen([sys.executable, "-c", start], stdout=subprocess.PIPE, text=True) as client:
        theirs = client.communicate(timeout=60)[0].strip()
    assert client_of(theirs) == client.pid
    assert is_over(theirs)


def test_programs_that_only_start_others_are_not_clients(tmp_path: Path):
    """Shells that stay, and `uv`, which is the parent of what it runs."""
    for name in ("uv", "fish"):
        shutil.copy("/bin/sh", tmp_path / name)
    for launcher in ("sh", str(tmp_path / "uv"), str(tmp_path / "fish")):
        done = subprocess.run([launcher, "-c", f'"{sys.executable}" -c "{TELL}"; :'], capture_output=True, text=True, timeout=60)
        assert client_of(done.stdout.strip()) == os.getpid(), done.stderr


def test_a_script_that_starts_overspill_is_no_client(tmp_path: Path):
    script = tmp_path / "start-overspill"
    script.write_text(f'#!/bin/sh\n"{sys.executable}" -c "{TELL}"\n:\n')
    script.chmod(0o700)
    done = subprocess.run([str(script)], capture_output=True, text=True, timeout=60)
    assert client_of(done.stdout.strip()) == os.getpid(), done.stderr


@pytest.mark.skipif(not os.path.exists("/bin/ps"), reason="there is no ps")
def test_where_ps_says_when_a_client_started_the_time_zone_does_not_matter():
    elsewhere = f"import sys; sys.platform = 'darwin'; {TELL}"
    said = [
        subprocess.run([sys.executable, "-c", elsewhere], env={**os.environ, "TZ": zone}, capture_output=True, text=True).stdout
        for zone in ("UTC", "Asia/Tokyo")
    ]
    assert client_of(said[0].strip()) == os.getpid()
    assert said[0] == said[1]


def test_a_later_process_with_the_same_number_is_another():
    machine, pid, start = conversation_of(os.getpid()).split("-")
    assert is_over(f"{machine}-{pid}-{int(start) - 1}")


@pytest.mark.parametrize("unknown", ["", "x", "worker", "00000000-1-1", "a-b-c", "00000000-99999999-1"])
def test_of_a_client_elsewhere_or_unknown_nobody_says_that_it_has_ended(unknown: str):
    assert not is_over(unknown)


@pytest.mark.skipif(os.path.exists("/proc/1") and os.stat("/proc/1").st_uid == os.getuid(), reason="process 1 may be a client")
def test_orphans_belong_to_no_client():
    assert conversation_of(1 << 30) == conversation_of(1) == ""
