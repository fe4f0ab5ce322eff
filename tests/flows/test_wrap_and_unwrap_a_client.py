"""A user wraps each known client with the real program, goes on using the client, and unwraps it again."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from client_files import CLAUDE_CODE, CLAUDE_DESKTOP, CURSOR, VS_CODE

PROGRAM = Path(sys.executable).with_name("overspill")
DATA = "Library/Application Support" if sys.platform == "darwin" else ".config"
PLACES = {
    "claude-code": (".claude.json", CLAUDE_CODE),
    "claude-desktop": (f"{DATA}/Claude/claude_desktop_config.json", CLAUDE_DESKTOP),
    "cursor": (".cursor/mcp.json", CURSOR),
    "vscode": (f"{DATA}/Code/User/mcp.json", VS_CODE),
}


def overspill(home: Path, *args: str) -> str:
    env = {"HOME": str(home), "PATH": f"{PROGRAM.parent}{os.pathsep}{os.environ['PATH']}", "OVERSPILL_HUB": "off"}
    done = subprocess.run([PROGRAM, *args], env=env, cwd=home, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


@pytest.mark.slow
@pytest.mark.parametrize("client", PLACES)
def test_each_known_client_is_wrapped_and_unwrapped(client: str, tmp_path: Path):
    place, text = PLACES[client]
    file = tmp_path / place
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    file.chmod(0o600)

    shown = overspill(tmp_path, "wrap", client, "--print")
    assert file.read_text() == text
    assert str(PROGRAM) in shown

    told = overspill(tmp_path, "wrap", client)
    assert f'"command": "{PROGRAM}"' in file.read_text()
    assert told.endswith(f"To undo: overspill unwrap {client}\n")
    assert {stat.S_IMODE(copy.stat().st_mode) for copy in file.parent.glob("*.bak")} == {0o600}
    assert overspill(tmp_path, "wrap", client).endswith(f"Nothing to change in {file}.\n")

    overspill(tmp_path, "unwrap", client)
    assert file.read_text() == text
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert list(file.parent.glob("*.bak")) == []


def test_a_client_that_writes_its_file_anew_in_between_loses_nothing(tmp_path: Path):
    file = tmp_path / ".claude.json"
    file.write_text(CLAUDE_CODE)
    overspill(tmp_path, "wrap", "claude-code")
    written = json.loads(file.read_text())
    written["numStartups"] = 42
    written["mcpServers"]["new"] = {"type": "stdio", "command": "new", "args": [], "env": {}}
    file.write_text(json.dumps(written, indent=2))

    overspill(tmp_path, "unwrap", "claude-code")
    expected = json.loads(CLAUDE_CODE)
    expected["numStartups"] = 42
    expected["mcpServers"]["new"] = {"type": "stdio", "command": "new", "args": [], "env": {}}
    assert json.loads(file.read_text()) == expected


def test_the_way_back_needs_no_copy(tmp_path: Path):
    file = tmp_path / "mcp.json"
    file.write_text(VS_CODE)
    overspill(tmp_path, "wrap", "mcp.json")
    for copy in tmp_path.glob("*.bak"):
        copy.unlink()
    overspill(tmp_path, "unwrap", "mcp.json")
    assert file.read_text() == VS_CODE
