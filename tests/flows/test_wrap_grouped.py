"""`overspill wrap --grouped` writes one more entry, which reads what all the others store, and `unwrap` takes it away again."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

import pytest
from client_files import CLAUDE_CODE, CLAUDE_DESKTOP, CODEX, CURSOR, VS_CODE
from forked import run as run_forked
from hubs import HubFront
from wire import OVERSPILL, every

PROGRAM = Path(sys.executable).with_name("overspill")
FILES = {
    ".claude.json": ("claude-code", CLAUDE_CODE),
    ".config/Claude/claude_desktop_config.json": ("claude-desktop", CLAUDE_DESKTOP),
    ".cursor/mcp.json": ("cursor", CURSOR),
    ".config/Code/User/mcp.json": ("vscode", VS_CODE),
    ".codex/config.toml": ("codex", CODEX),
}


def environ(home: Path) -> dict[str, str]:
    return {"HOME": str(home), "PATH": f"{PROGRAM.parent}{os.pathsep}{os.environ['PATH']}", "OVERSPILL_HUB": "off"}


def overspill(home: Path, *args: str) -> subprocess.CompletedProcess[str]:
    return run_forked(args, env=environ(home), cwd=home, capture_output=True, text=True)


@pytest.mark.skipif(sys.platform == "darwin", reason="the places are those of Linux")
@pytest.mark.parametrize("place", FILES)
@pytest.mark.parametrize("keeps_copies", [True, False])
def test_unwrapping_restores_the_file(place: str, keeps_copies: bool, tmp_path: Path):
    client, text = FILES[place]
    if client == "codex" and not keeps_copies:
        pytest.skip("comments within a list of TOML come back only from a copy")
    file = tmp_path / place
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    done = overspill(tmp_path, "wrap", client, "--grouped")
    assert done.returncode == 0, done.stderr
    assert "The server overspill offers the tools that read what they store." in done.stdout
    wrapped = file.read_text()
    assert wrapped.count("--group") > 1
    assert len(re.findall(rf'"serve",\s*"{client}"', wrapped)) == 1
    assert "Nothing to change" in overspill(tmp_path, "wrap", client, "--grouped").stdout
    if not keeps_copies:
        for copy in file.parent.glob("*.bak"):
            copy.unlink()
    done = overspill(tmp_path, "unwrap", client)
    assert done.returncode == 0, done.stderr
    assert "The server overspill is removed." in done.stdout
    assert file.read_text() == text


def write(home: Path, **servers: object) -> Path:
    file = home / ".cursor" / "mcp.json"
    file.parent.mkdir(exist_ok=True)
    file.write_text(json.dumps({"mcpServers": servers}, indent=2))
    return file


def entry() -> dict[str, object]:
    command, *args = every()
    return {"command": command, "args": args}


def test_the_entries_that_it_writes_work_together(tmp_path: Path):
    file = write(tmp_path, a=entry(), b=entry(), own={**entry(), "cwd": str(tmp_path)})
    overspill(tmp_path, "wrap", "cursor", "--grouped")
    found = json.loads(file.read_text())["mcpServers"]
    assert {each["command"] for each in found.values()} == {str(PROGRAM)}
    with ExitStack() as stack:
        fronts = {
            name: stack.enter_context(HubFront([*OVERSPILL, *each["args"]], environ(tmp_path), tmp_path, forked=True))
            for name, each in found.items()
        }
        for front in fronts.values():
            front.hello()
        offering = [name for name, front in fronts.items() if "get_tool_output" in front.names()]
        assert offering == ["overspill", "own"]
        for name in ("a", "b"):
            said = fronts[name].text("lines", {"count": 2_000})
            handle = re.search(r"get_tool_output\(id=\"?([\w-]+)", said)
            assert handle, said
            args = {"id": handle[1], "mode": "slice", "slice": {"lines": "1-1"}}
            assert "line 1: the quick brown fox" in fronts["overspill"].text("get_tool_output", args)


def test_it_goes_with_the_last_server_that_is_unwrapped(tmp_path: Path):
    file = write(tmp_path, a=entry(), b=entry())
    overspill(tmp_path, "wrap", "cursor", "--grouped")
    overspill(tmp_path, "unwrap", "cursor", "--server", "a")
    assert sorted(json.loads(file.read_text())["mcpServers"]) == ["a", "b", "overspill"]
    overspill(tmp_path, "unwrap", "cursor", "--server", "b")
    assert json.loads(file.read_text())["mcpServers"] == {"a": entry(), "b": entry()}


def test_another_server_of_that_name_is_left_alone(tmp_path: Path):
    file = write(tmp_path, a=entry(), overspill={"command": "theirs"})
    before = file.read_text()
    done = overspill(tmp_path, "wrap", "cursor", "--grouped")
    assert done.returncode == 2
    assert "already has a server 'overspill', and it is another one" in done.stderr
    assert file.read_text() == before


def test_print_shows_the_entry_and_writes_nothing(tmp_path: Path):
    file = write(tmp_path, a=entry())
    before = file.read_text()
    assert "+ overspill: serve cursor" in overspill(tmp_path, "wrap", "cursor", "--grouped", "--print").stdout
    assert file.read_text() == before


def test_without_a_client_it_says_what_it_needs(tmp_path: Path):
    done = overspill(tmp_path, "wrap", "--grouped")
    assert done.returncode == 2
    assert "--grouped needs a client" in done.stderr
