"""`overspill` without a command: on a terminal it finds clients, shows what it would change, and asks. Elsewhere: its help."""

from __future__ import annotations

import os
import pty
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest
from client_files import CLAUDE_CODE, CURSOR
from commands import Place, on_a_terminal
from forked import Forked

from overspill.cli import COMMANDS
from overspill.cli.program import HEADINGS


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Place:
    monkeypatch.delenv("CLAUDE_CONFIG_DIR", raising=False)
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "overspill").write_text("#!/bin/sh\n")
    (tmp_path / "bin" / "overspill").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("NO_COLOR", "1")
    return Place(tmp_path, monkeypatch, capsys)


@pytest.fixture
def claude(place: Place) -> Path:
    file = place.root / ".claude.json"
    file.write_text(CLAUDE_CODE)
    return file


def cursor(place: Place, text: str = CURSOR) -> Path:
    file = place.root / ".cursor" / "mcp.json"
    file.parent.mkdir()
    file.write_text(text)
    return file


def last_line(seen: str) -> str:
    return seen.rstrip().splitlines()[-1]


def test_it_shows_what_it_would_change_and_changes_it_on_yes(place: Place, claude: Path):
    file = cursor(place)
    settings = place.root / ".claude" / "settings.json"
    code, seen = on_a_terminal(answer=b"y\n", columns=400)
    shown, _, done = seen.replace("\r\n", "\n").partition("Do this now? [y/N]")
    assert code == 0
    assert shown == (
        "Claude Code:\n"
        f"  run filesystem, notion, github, postgres (project /home/ada/shop) through Overspill, in {claude}\n"
        f"  add a hook that stores large outputs of Bash, Read, Grep, in {settings}\n"
        f"  add the server that reads them back, in {claude}\n"
        "Cursor:\n"
        f"  run web, jot through Overspill, in {file}\n"
        f"  add the server overspill, which reads what they store, in {file}\n"
    )
    assert "unwrap claude-code" in done
    assert done.rstrip().endswith("unwrap cursor")
    assert "overspill" in file.read_text()
    assert "hook claude-code" in settings.read_text()
    for client in ("claude-code", "cursor"):
        assert place.overspill("unwrap", client).code == 0
    assert (claude.read_text(), file.read_text(), settings.exists()) == (CLAUDE_CODE, CURSOR, False)


@pytest.mark.parametrize("answer", [b"n\n", b"\n", b"\x04", signal.SIGINT], ids=["no", "enter", "end", "Ctrl-C"])
def test_without_a_yes_nothing_is_written(place: Place, claude: Path, answer: bytes | signal.Signals):
    code, seen = on_a_terminal(answer=answer)
    assert (code, last_line(seen)) == (130, "overspill: Nothing was written.")
    assert claude.read_text() == CLAUDE_CODE
    assert not (place.root / ".claude").exists()


def test_another_answer_is_asked_again(place: Place, claude: Path):
    code, seen = on_a_terminal(answer=b"maybe\nno\n")
    assert seen.count("Do this now? [y/N]") == 2
    assert seen.count("Error: 'maybe' is not one of 'y', 'yes', 'n', 'no'.") == 1
    assert (code, claude.read_text()) == (130, CLAUDE_CODE)


def test_no_client_is_one_line(place: Place):
    code, seen = on_a_terminal()
    assert (code, len(seen.splitlines())) == (2, 1)
    assert seen.startswith("overspill: error: There is nothing to wrap on this machine. Name a client (claude-code, ")
    assert seen.rstrip().endswith("`overspill wrap --print` shows what to write. `overspill --help` lists all commands.")


def test_a_client_whose_file_is_broken_does_not_stop_the_others(place: Place, claude: Path):
    file = cursor(place, "not JSON")
    code, seen = on_a_terminal(answer=b"y\n")
    warnings = [line for line in seen.splitlines() if line.startswith("overspill: warning: ")]
    assert len(warnings) == 1
    assert str(file) in warnings[0]
    assert warnings[0].endswith("Skipping it.")
    assert (code, file.read_text()) == (0, "not JSON")
    assert "overspill" in claude.read_text()


def test_a_link_out_of_the_home_is_shown_and_kept(place: Place, tmp_path: Path):
    real = tmp_path / "elsewhere" / "cursor.json"
    real.parent.mkdir()
    real.write_text(CURSOR)
    link = place.root / ".cursor" / "mcp.json"
    link.parent.mkdir()
    link.symlink_to(real)
    code, seen = on_a_terminal(answer=b"y\n", columns=400)
    assert f"  run web, jot through Overspill, in {real}\r\n" in seen
    assert (code, link.readlink()) == (0, real)
    assert "overspill" in real.read_text()


def test_a_link_that_leads_nowhere_is_one_warning(place: Place, claude: Path):
    link = place.root / ".cursor" / "mcp.json"
    link.parent.mkdir()
    link.symlink_to(place.root / "nowhere")
    _, seen = on_a_terminal(answer=b"n\n")
    assert f"overspill: warning: {link} cannot be read: No such file or directory. Skipping it." in seen.splitlines()


def test_a_file_that_is_read_only_does_not_stop_the_others(place: Place, claude: Path):
    file = cursor(place)
    claude.chmod(0o400)
    code, seen = on_a_terminal(answer=b"y\n", columns=400)
    assert f"overspill: error: {claude} is read-only. Nothing was written. To allow it: chmod u+w {claude}\r\n" in seen
    assert (code, claude.read_text()) == (2, CLAUDE_CODE)
    assert "overspill" in file.read_text()


def test_a_second_time_there_is_nothing_to_change(place: Place, claude: Path):
    on_a_terminal(answer=b"y\n")
    assert on_a_terminal() == (0, "overspill: Nothing to change in Claude Code. To check a client: overspill doctor NAME\r\n")


def test_a_client_without_servers_gets_its_hook(place: Place):
    (place.root / ".claude").mkdir()
    _, seen = on_a_terminal(answer=b"n\n")
    assert "Claude Code:\r\n  add a hook that stores large outputs of Bash, Read, Grep" in seen
    assert not (place.root / ".claude.json").exists()


@pytest.mark.parametrize("piped", ["stdin", "stdout"])
def test_without_a_terminal_on_either_side_it_shows_its_help(place: Place, claude: Path, piped: str):
    ours, theirs = pty.openpty()
    streams: dict[str, Any] = {"stdin": theirs, "stdout": theirs, piped: subprocess.PIPE}
    process = Forked((), stderr=subprocess.PIPE, env=dict(os.environ), **streams)
    os.close(theirs)
    _, err = process.communicate(b"y\n" if piped == "stdin" else None, timeout=60)
    os.close(ours)
    assert process.returncode == 2
    assert b"Connect:\n  wrap " in err
    assert b"Do this now?" not in err
    assert claude.read_text() == CLAUDE_CODE


def test_help_lists_every_command_below_one_heading(place: Place):
    shown = place.overspill("--help").out
    assert [name for commands in HEADINGS.values() for name in commands] == list(COMMANDS)
    for heading, commands in HEADINGS.items():
        below = shown.partition(f"\n{heading}:\n")[2].partition("\n\n")[0]
        assert [line.split()[0] for line in below.splitlines()] == list(commands)
