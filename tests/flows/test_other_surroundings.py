"""The commands as users call them whose machines are set up differently: variables, homes, umasks and paths with spaces."""

from __future__ import annotations

import hashlib
import json
import os
import pwd
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from commands import SOURCE, on_a_terminal

pytestmark = pytest.mark.slow

EXAMPLES = Path(__file__).parents[2] / "examples"
PROGRAM = Path(sys.executable).with_name("overspill")
SETTINGS = ("--config", "my settings.yaml")
SURROUNDINGS: dict[str, dict[str, str | None]] = {
    "bare": {},
    "unbuffered": {"PYTHONUNBUFFERED": "1"},
    "no bytecode": {"PYTHONDONTWRITEBYTECODE": "1"},
    "LANG=C": {"LANG": "C"},
    "ASCII": {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"},
    "TERM=dumb": {"TERM": "dumb"},
    "FORCE_COLOR": {"FORCE_COLOR": "1", "COLUMNS": "40"},
    "no HOME": {"HOME": None, "XDG_CONFIG_HOME": "/nowhere", "XDG_STATE_HOME": "/nowhere"},
    "HOME that does not exist": {"HOME": "/nowhere/at all"},
    "HOME that is no folder": {"HOME": os.devnull},
}
UNKNOWN_USER = 54321
# All is imported before, since that user may not be able to read the packages.
AS_UNKNOWN_USER = f"""
import os, sys
import overspill.cli.commands.artifacts, overspill.cli.commands.help, overspill.cli.commands.wrap, overspill.cli.tables
import overspill.mcp.proxy.http, overspill.mcp.proxy.stdio, overspill.cli.serving
from overspill.cli import main
os.setuid({UNKNOWN_USER})
main(sys.argv[1:])
"""


class Machine:
    """Somebody's folder with spaces in its path, and the variables that are set there."""

    def __init__(self, folder: Path, changes: dict[str, str | None], umask: int = -1) -> None:
        folder.mkdir()
        self.folder, self.umask = folder, umask
        home = folder / "home"
        home.mkdir()
        own = {"PATH": os.environ["PATH"], "HOME": str(home), "LANG": "C.UTF-8"}
        bare: dict[str, str | None] = {**own, "OVERSPILL_HUB": "off"}
        self.environ = {name: value for name, value in (bare | changes).items() if value is not None}
        settings = {
            "storeDir": str(folder / "the store"),
            "retention": "keep",
            "functions": {"deployment_log": f"{EXAMPLES / 'functions.py'}:deployment_log"},
        }
        (folder / SETTINGS[1]).write_text(json.dumps(settings))
        (folder / "mcp.json").write_text('{"mcpServers": {"a": {"command": "cat"}}}')

    def overspill(self, *args: str | Path) -> bytes:
        options: dict[str, Any] = {"cwd": self.folder, "env": self.environ, "umask": self.umask, "timeout": 60}
        done = subprocess.run([PROGRAM, *args], capture_output=True, check=False, **options)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def live_a_day(self) -> None:
        """An agent runs, what it kept is found again, whole, and a client's file is changed and changed back."""
        question = "Why did the deployment fail?"
        kept = ("--snapshot", "a run.json.gz", "--accounting", "an account.jsonl")
        assert b"FATAL deployment rolled back" in self.overspill("run", EXAMPLES / "scripted.ai", question, *kept, *SETTINGS)
        (facts,) = json.loads(self.overspill("artifacts", "list", "--json", *SETTINGS))
        shown = self.overspill("artifacts", "show", facts["artifact_id"], *SETTINGS)
        assert hashlib.sha256(shown).hexdigest() == facts["sha256"]
        before = (self.folder / "mcp.json").read_bytes()
        self.overspill("wrap", "mcp.json")
        assert b"proxy" in (self.folder / "mcp.json").read_bytes()
        self.overspill("unwrap", "mcp.json")
        assert (self.folder / "mcp.json").read_bytes() == before


@pytest.mark.parametrize("changes", SURROUNDINGS.values(), ids=SURROUNDINGS)
def test_the_commands_do_the_same_whatever_is_set(tmp_path: Path, changes: dict[str, str | None]) -> None:
    Machine(tmp_path / "my files", changes).live_a_day()


@pytest.mark.parametrize("umask", [0o077, 0o000])
def test_what_the_commands_write_is_its_owners_alone_whatever_the_umask(tmp_path: Path, umask: int) -> None:
    machine = Machine(tmp_path / "my files", {}, umask)
    before = set(machine.folder.iterdir())
    machine.live_a_day()
    written = [each for each in machine.folder.iterdir() if each not in before]
    below = [each for place in written for each in (place, *place.rglob("*"))]
    assert {place.name for place in written} == {"the store", "a run.json.gz", "an account.jsonl"}
    assert [place for place in below if stat.S_IMODE(place.stat().st_mode) & 0o077] == []


@pytest.mark.parametrize("term", [None, "dumb", "a-terminal-of-tomorrow"])
def test_a_terminal_may_be_of_any_kind_or_none(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, term: str | None) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("TERM", raising=False)
    if term is not None:
        monkeypatch.setenv("TERM", term)
    code, seen = on_a_terminal("config")
    assert code == 0
    assert "toolResponseMaxBytes" in seen


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become a user whom the system does not know")
@pytest.mark.parametrize("command", ["config", "artifacts list", "wrap cursor", "proxy -- cat"])
def test_a_user_without_a_home_is_told_so(command: str) -> None:
    with pytest.raises(KeyError):
        pwd.getpwuid(UNKNOWN_USER)
    environ = {"PATH": os.environ["PATH"], "PYTHONPATH": str(SOURCE), "OVERSPILL_HUB": "off"}
    call = [sys.executable, "-c", AS_UNKNOWN_USER, *command.split()]
    done = subprocess.run(call, cwd="/", env=environ, capture_output=True, text=True, timeout=60, check=False)
    words = "overspill: error: HOME is not set, and the system does not know your home directory. Set HOME.\n"
    assert (done.returncode, done.stdout, done.stderr) == (2, "", words)
