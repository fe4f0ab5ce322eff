"""`overspill wrap` writes one more entry, which reads what all the others store, and `unwrap` takes it away again."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tomllib
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from client_files import CLAUDE_CODE, CLAUDE_DESKTOP, CODEX, CURSOR, VS_CODE
from forked import run as run_forked
from hubs import HubFront, hub_home
from slow import slow
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
    done = overspill(tmp_path, "wrap", client)
    assert done.returncode == 0, done.stderr
    assert "The server overspill offers the tools that read what they store." in done.stdout
    wrapped = file.read_text()
    assert wrapped.count("--group") > 1
    assert len(re.findall(rf'"serve",\s*"{client}"', wrapped)) == 1
    assert "Nothing to change" in overspill(tmp_path, "wrap", client).stdout
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


def words_of(entry: dict[str, Any]) -> list[str]:
    """The command of an entry, in any client's form."""
    command = entry["command"]
    return command if isinstance(command, list) else [command, *entry["args"]]


@pytest.mark.parametrize("hub", ["on", "off"])
@pytest.mark.parametrize("place", [".cursor/mcp.json", *slow(".codex/config.toml", ".config/opencode/opencode.json")])
def test_the_entries_that_it_writes_work_together(place: str, hub: str):
    a, own = entry(), {**entry(), "cwd": "."}
    with hub_home() as home, ExitStack() as stack:
        file = home.folder / place
        file.parent.mkdir(parents=True)
        if file.suffix == ".toml":
            written = (
                f"[mcp_servers.{name}]\ncommand = {json.dumps(a['command'])}\nargs = {json.dumps(a['args'])}\n" for name in "ab"
            )
            file.write_text("\n".join(written))
        elif "opencode" in place:
            local = {"type": "local", "command": every(), "enabled": True}
            file.write_text(json.dumps({"mcp": {"a": local, "b": local}}))
        else:
            file.write_text(json.dumps({"mcpServers": {"a": a, "b": a, "own": own}}))
        assert overspill(home.folder, "wrap", str(file)).returncode == 0
        found: Any = tomllib.loads(file.read_text()) if file.suffix == ".toml" else json.loads(file.read_text())
        env = {**home.env, "OVERSPILL_HUB": hub}
        servers: dict[str, Any] = next(iter(found.values()))
        commands = {name: words_of(each) for name, each in servers.items()}
        assert {words[0] for words in commands.values()} == {str(PROGRAM)}
        fronts = {
            name: stack.enter_context(HubFront([*OVERSPILL, *words[1:]], env, home.folder)) for name, words in commands.items()
        }
        for front in fronts.values():
            front.hello()
        offering = {name for name, front in fronts.items() if "get_tool_output" in front.names()}
        assert offering == {"overspill", "own"} & set(fronts)
        for name in ("a", "b"):
            said = fronts[name].text("lines", {"count": 2_000})
            handle = re.search(r"get_tool_output\(id=\"?([\w-]+)", said)
            assert handle, said
            args = {"id": handle[1], "mode": "slice", "slice": {"lines": "1-1"}}
            assert "line 1: the quick brown fox" in fronts["overspill"].text("get_tool_output", args)


def test_it_goes_with_the_last_server_that_is_unwrapped(tmp_path: Path):
    file = write(tmp_path, a=entry(), b=entry())
    overspill(tmp_path, "wrap", "cursor")
    overspill(tmp_path, "unwrap", "cursor", "--server", "a")
    assert sorted(json.loads(file.read_text())["mcpServers"]) == ["a", "b", "overspill"]
    overspill(tmp_path, "unwrap", "cursor", "--server", "b")
    assert json.loads(file.read_text())["mcpServers"] == {"a": entry(), "b": entry()}


def test_what_an_earlier_wrap_wrote_is_converted_and_unwrapped_as_before(tmp_path: Path):
    for place, (client, text) in FILES.items():
        file = tmp_path / place
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        overspill(tmp_path, "wrap", client, "--each")
        each = file.read_text()
        assert "--group" not in each
        said = overspill(tmp_path, "wrap", client).stdout
        assert "already ran through Overspill, and now leave the tools that read their outputs to the server overspill" in said
        assert file.read_text().count("--group") > 1
        assert "Nothing to change" in overspill(tmp_path, "wrap", client).stdout
        said = overspill(tmp_path, "wrap", client, "--each").stdout
        assert "already ran through Overspill, and now offer the tools that read their outputs" in said
        assert "The server overspill is removed." in said
        overspill(tmp_path, "wrap", client)
        overspill(tmp_path, "unwrap", client)
        assert file.read_text() == text, client


@pytest.mark.parametrize("way", [(), ("--each",)])
def test_unwrapping_takes_no_copy_in_which_a_server_was_wrapped_already(way: tuple[str, ...], tmp_path: Path):
    file = write(tmp_path, a=entry(), b=entry())
    overspill(tmp_path, "wrap", "cursor", "--server", "a", *way)
    overspill(tmp_path, "wrap", "cursor", *way)
    overspill(tmp_path, "unwrap", "cursor")
    assert json.loads(file.read_text())["mcpServers"] == {"a": entry(), "b": entry()}


def test_it_is_not_added_for_servers_that_join_no_group(tmp_path: Path):
    own = {**entry(), "cwd": str(tmp_path)}
    file = write(tmp_path, a=own)
    said = overspill(tmp_path, "wrap", "cursor").stdout
    assert list(json.loads(file.read_text())["mcpServers"]) == ["a"]
    assert "The server overspill" not in said
    for copy in file.parent.glob("*.bak"):
        copy.unlink()
    overspill(tmp_path, "unwrap", "cursor")
    assert json.loads(file.read_text())["mcpServers"] == {"a": own}


def test_an_entry_written_by_hand_keeps_its_options_and_its_tools(tmp_path: Path):
    mine = {"command": str(PROGRAM), "args": ["proxy", "--name", "mine", "--settings", "mine.yaml", "--", *every()]}
    file = write(tmp_path, a=entry(), mine=mine)
    overspill(tmp_path, "wrap", "cursor")
    found = json.loads(file.read_text())["mcpServers"]
    assert found["mine"] == mine
    assert sorted(found) == ["a", "mine", "overspill"]
    assert "--group" in found["a"]["args"]


@pytest.mark.parametrize(
    ("servers", "options", "why"),
    [
        ({"overspill": {"command": "theirs"}}, (), "another server is called 'overspill'"),
        ({}, ("--command", "docker run overspill"), "docker starts Overspill"),
    ],
)
def test_without_a_place_for_it_each_entry_offers_its_own(
    servers: dict[str, object], options: tuple[str, ...], why: str, tmp_path: Path
):
    file = write(tmp_path, a=entry(), b=entry())
    file.write_text(json.dumps({"mcpServers": {"a": entry(), **servers}}))
    done = overspill(tmp_path, "wrap", "cursor", "--server", "a", *options)
    assert done.returncode == 0, done.stderr
    assert f"Each of them offers the tools that read what it stores, because {why}" in done.stdout
    assert "--group" not in file.read_text()


def test_a_list_of_allowed_servers_is_respected(tmp_path: Path):
    file = tmp_path / ".gemini" / "settings.json"
    file.parent.mkdir()
    for allowed, count in ((["a"], 0), (["a", "overspill"], 1)):
        file.write_text(json.dumps({"mcp": {"allowed": allowed}, "mcpServers": {"a": entry()}}))
        overspill(tmp_path, "wrap", "gemini-cli")
        assert file.read_text().count("--group") == count


def test_it_stays_as_long_as_hooks_need_it(tmp_path: Path):
    file = tmp_path / ".claude.json"
    before = json.dumps({"mcpServers": {"a": entry()}}, indent=2)
    file.write_text(before)
    overspill(tmp_path, "wrap", "claude-code", "--hooks")
    assert sorted(json.loads(file.read_text())["mcpServers"]) == ["a", "overspill"]
    for undo in (("wrap", "claude-code", "--each"), ("wrap", "claude-code"), ("unwrap", "claude-code", "--server", "a")):
        overspill(tmp_path, *undo)
        assert "overspill" in json.loads(file.read_text())["mcpServers"], undo
    overspill(tmp_path, "unwrap", "claude-code")
    assert json.loads(file.read_text()) == json.loads(before)


def test_print_shows_the_entry_and_writes_nothing(tmp_path: Path):
    file = write(tmp_path, a=entry())
    before = file.read_text()
    assert "+ overspill: serve cursor" in overspill(tmp_path, "wrap", "cursor", "--print").stdout
    assert file.read_text() == before
