"""Folders that may not be looked into: each command says so in a line, whatever it wanted there."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

# All is imported before, since who is nobody may not be able to read the packages; and root may look into everything.
NOBODY = """
import os, sys
import encodings.idna, traceback
import overspill.cli.commands.help, overspill.cli.tables, overspill.cli.commands.doctor.command, overspill.cli.commands.run
import overspill.cli.commands.wrap, overspill.mcp.proxy.http, overspill.mcp.proxy.stdio
import overspill.cli.commands.doctor.servers
from overspill.cli import main
if os.getuid() == 0:
    os.setuid(65534)
main(sys.argv[1:])
"""


@pytest.fixture
def sealed(tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / "sealed"
    folder.mkdir(mode=0)
    yield folder
    folder.chmod(0o700)


def said(home: str | Path, *args: str | Path) -> tuple[int, str, str]:
    # Nobody may not write down either what was covered.
    ours = {name: value for name, value in os.environ.items() if not name.startswith("COVERAGE")}
    environ = {**ours, "HOME": str(home), "XDG_CONFIG_HOME": str(home), "XDG_STATE_HOME": "/nowhere"}
    command = [sys.executable, "-c", NOBODY, *map(str, args)]
    done = subprocess.run(command, env=environ, cwd="/", input="", capture_output=True, text=True, timeout=60, check=False)
    return done.returncode, done.stdout, done.stderr


def test_unreadable_settings_are_named(sealed: Path) -> None:
    words = f"overspill: error: {sealed / 'overspill' / 'config.yaml'} cannot be read: Permission denied.\n"
    assert said(sealed, "config") == (2, "", words)


def test_an_unreadable_client_file_is_named(sealed: Path) -> None:
    file = sealed / "mcp.json"
    assert said("/nowhere", "wrap", file) == (2, "", f"overspill: error: {file} cannot be read: Permission denied.\n")
    code, out, err = said(sealed, "wrap")
    assert (code, out) == (2, "")
    assert f"{sealed / '.claude.json'} cannot be read: Permission denied. Skipping it.\n" in err
    assert "There is nothing to wrap on this machine. Name a client (claude-code, " in err
    assert "On this machine" not in err


def test_an_unreadable_folder_for_a_snapshot_is_named_before_the_run(sealed: Path) -> None:
    file = sealed / "run.json.gz"
    words = f"overspill: error: {file} cannot be read: Permission denied.\n"
    assert said("/nowhere", "run", "a.ai", "x", "--snapshot", file) == (2, "", words)


def test_an_unreadable_store_is_a_problem(sealed: Path) -> None:
    code, out, err = said("/nowhere", "doctor", "--set", f"storeDir={sealed / 'store'}")
    assert (code, err) == (1, "")
    assert f"wrong  store: Nothing can be stored in {sealed / 'store'}: you cannot write to " in out


def test_a_proxy_with_an_unwritable_store_says_so_in_one_line_and_works(sealed: Path) -> None:
    store = sealed / "store"
    line = (
        "overspill: Nothing can be stored, so large results are cut. "
        f"Could not open a session in {store}: Permission denied. Check storeDir, or set another. "
        "Each large result tries the store again.\n"
    )
    assert said("/nowhere", "proxy", "--set", f"storeDir={store}", "--", "cat") == (0, "", line)
