"""`overspill wrap --one` writes one entry that runs all servers of a client, and `unwrap` restores them from that entry."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from client_files import CLAUDE_CODE, CLAUDE_DESKTOP, CODEX, VS_CODE
from forked import run as run_forked
from hubs import HubFront, hub_home
from slow import slow
from wire import every

PROGRAM = Path(sys.executable).with_name("overspill")
APART = """\
{
  // mine
  "mcpServers": {
    "first": {"command": "one", "args": []}, // the first
    "remote": {"url": "https://example.com/mcp"},
    "second": {
      "command": "two", /* of two */
      "env": {"KEY": "s\\u00e9cret \\"quoted\\""},
    },
    // before the third
    "third": { "command":"three" },
  },
}
"""
FILES = {
    ".claude.json": ("claude-code", CLAUDE_CODE, ["filesystem"]),
    ".config/Claude/claude_desktop_config.json": ("claude-desktop", CLAUDE_DESKTOP, ["time"]),
    ".config/Code/User/mcp.json": ("vscode", VS_CODE, ["playwright"]),
    ".cursor/mcp.json": ("cursor", APART, ["first", "second", "third"]),
}


def environ(home: Path) -> dict[str, str]:
    return {"HOME": str(home), "PATH": f"{PROGRAM.parent}{os.pathsep}{os.environ['PATH']}", "OVERSPILL_HUB": "off"}


def overspill(home: Path, *args: str) -> subprocess.CompletedProcess[str]:
    return run_forked(args, env=environ(home), cwd=home, capture_output=True, text=True)


def write(home: Path, content: str, place: str = ".cursor/mcp.json") -> Path:
    file = home / place
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(content)
    return file


def servers(**entries: object) -> str:
    return json.dumps({"mcpServers": entries}, indent=2)


def entry(**more: object) -> dict[str, object]:
    command, *args = every()
    return {"command": command, "args": args, **more}


def read(file: Path) -> dict[str, Any]:
    return json.loads(file.read_text())["mcpServers"]


@pytest.mark.skipif(sys.platform == "darwin", reason="the places are those of Linux")
@pytest.mark.parametrize("place", FILES)
def test_unwrapping_restores_the_file_from_its_copy(place: str, tmp_path: Path):
    client, text, joined = FILES[place]
    file = write(tmp_path, text, place)
    done = overspill(tmp_path, "wrap", client, "--one")
    assert done.returncode == 0, done.stderr
    assert "The entry servers runs them all, and holds their original entries." in done.stdout
    said = done.stdout.split("Not changed:")[0]
    assert [line.strip() for line in said.splitlines() if line.startswith("  ")] == joined
    assert file.read_text().count("--config-env") == 1
    again = overspill(tmp_path, "wrap", client, "--one")
    assert "Nothing to change" in again.stdout, again.stderr
    done = overspill(tmp_path, "unwrap", client)
    assert done.returncode == 0, done.stderr
    assert "The entry servers is removed." in done.stdout
    assert file.read_text() == text
    assert not list(file.parent.glob("*.bak"))


@pytest.mark.skipif(sys.platform == "darwin", reason="the places are those of Linux")
@pytest.mark.parametrize("place", [place for place in FILES if "cursor" not in place])
def test_servers_that_follow_each_other_are_restored_without_the_copy(place: str, tmp_path: Path):
    client, text, _ = FILES[place]
    file = write(tmp_path, text, place)
    overspill(tmp_path, "wrap", client, "--one")
    for copy in file.parent.glob("*.bak"):
        copy.unlink()
    assert overspill(tmp_path, "unwrap", client).returncode == 0
    assert file.read_text() == text


def test_without_the_copy_every_entry_is_restored_with_its_comments(tmp_path: Path):
    file = write(tmp_path, APART)
    overspill(tmp_path, "wrap", "cursor", "--one")
    for copy in file.parent.glob("*.bak"):
        copy.unlink()
    assert overspill(tmp_path, "unwrap", "cursor").returncode == 0
    first, remote, second = APART.index('    "first"'), APART.index('    "remote"'), APART.index('    "second"')
    comment, third = " // the first", '    "third": { "command":"three" }'
    held = APART[first:remote].replace(comment, "") + APART[second : APART.index(third)] + third
    assert file.read_text() == APART[:first] + held + f",{comment}\n" + APART[remote:second] + "  },\n}\n"


@pytest.mark.parametrize("hub", ["on", *slow("off")])
def test_the_entry_works_and_its_servers_do_not_see_each_others_secrets(hub: str, tmp_path: Path):
    show = "import os, sys; open(sys.argv[1], 'w').write(repr(dict(os.environ)))"
    spy = {"command": sys.executable, "args": ["-c", show, str(tmp_path / "seen")], "env": {"MINE": "own-secret"}}
    file = write(tmp_path, servers(a=entry(), b=entry(env={"KEY": "s3cret"}), spy=spy))
    overspill(tmp_path, "wrap", "cursor", "--one")
    found = read(file)
    assert list(found) == ["servers"]
    words = [found["servers"]["command"], *found["servers"]["args"]]
    assert "s3cret" not in " ".join(words)
    own = found["servers"]["env"]
    with hub_home() as home, HubFront(words, {**home.env, **own, "OVERSPILL_HUB": hub}, tmp_path, fork=None) as front:
        front.hello()
        assert {"a__lines", "b__lines", "get_tool_output"} <= set(front.names())
        assert "line 1: the quick brown fox" in front.text("b__lines", {"count": 1})
        assert (home.status() is not None) == (hub == "on")
    seen = (tmp_path / "seen").read_text()
    assert "own-secret" in seen
    assert "s3cret" not in seen


def test_a_server_that_is_new_joins_the_others_and_one_can_leave(tmp_path: Path):
    file = write(tmp_path, servers(a=entry(), b=entry()))
    overspill(tmp_path, "wrap", "cursor", "--one")
    content = json.loads(file.read_text())
    content["mcpServers"]["c"] = entry(cwd=str(tmp_path))
    file.write_text(json.dumps(content, indent=2))
    overspill(tmp_path, "wrap", "cursor", "--one")
    assert list(read(file)) == ["servers"]
    overspill(tmp_path, "unwrap", "cursor", "--server", "b")
    assert sorted(read(file)) == ["b", "servers"]
    assert read(file)["b"] == entry()
    overspill(tmp_path, "unwrap", "cursor")
    assert read(file) == {"a": entry(), "b": entry(), "c": entry(cwd=str(tmp_path))}


@pytest.mark.parametrize("way", ["--one", "--each"])
def test_unwrapping_takes_no_copy_of_a_file_that_was_wrapped_before(way: str, tmp_path: Path):
    file = write(tmp_path, servers(a=entry(), b=entry()))
    overspill(tmp_path, "wrap", "cursor", way, "--server", "a")
    overspill(tmp_path, "wrap", "cursor", "--one")
    overspill(tmp_path, "unwrap", "cursor")
    assert read(file) == {"a": entry(), "b": entry()}


def test_servers_that_cannot_be_in_it_are_named_and_left_alone(tmp_path: Path):
    left: dict[str, dict[str, object]] = {
        "remote": {"url": "https://example.com/mcp"},
        "off": entry(disabled=True),
        "filled": entry(env={"KEY": "${env:KEY}"}),
        "odd": entry(env={"KEY": 1}),
    }
    file = write(tmp_path, servers(a=entry(), **left))
    said = overspill(tmp_path, "wrap", "cursor", "--one").stdout
    assert "remote: it is remote, and one entry holds only servers with a command." in said
    assert "off: only your client understands its key 'disabled'." in said
    assert "filled: it has a $, and your client may fill in something there." in said
    assert "odd: its env or its cwd is not made of strings." in said
    assert {name: each for name, each in read(file).items() if name != "servers"} == left


def test_a_server_that_already_runs_through_overspill_is_left_alone(tmp_path: Path):
    file = write(tmp_path, servers(a=entry()))
    overspill(tmp_path, "wrap", "cursor")
    before = file.read_text()
    assert (
        "a: it already runs through Overspill on its own; unwrap it first."
        in overspill(tmp_path, "wrap", "cursor", "--one").stdout
    )
    assert file.read_text() == before


def test_plain_wrap_leaves_the_entry_alone_and_unwrap_knows_it_whatever_starts_overspill(tmp_path: Path):
    file = write(tmp_path, servers(a=entry()))
    overspill(tmp_path, "wrap", "cursor", "--one", "--command", "start-it")
    wrapped = file.read_text()
    assert "Nothing to change" in overspill(tmp_path, "wrap", "cursor").stdout
    assert file.read_text() == wrapped
    overspill(tmp_path, "unwrap", "cursor")
    assert read(file) == {"a": entry()}


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (servers(a=entry(), servers={"command": "theirs"}), "already has a server 'servers'"),
        ('{"mcpServers": {"a": {"command": "x"}, /* $HOME */ "b": {"command": "y"}}}', "a comment between its servers has a $"),
        (servers(a=entry(env={"KEY": "x" * 130_000})), "more than 120,000 bytes"),
    ],
)
def test_what_it_cannot_write_it_says_and_leaves(content: str, problem: str, tmp_path: Path):
    file = write(tmp_path, content)
    done = overspill(tmp_path, "wrap", "cursor", "--one")
    assert done.returncode == 2
    assert problem in done.stderr
    assert file.read_text() == content


def test_a_file_that_is_not_json_is_left_alone(tmp_path: Path):
    file = write(tmp_path, CODEX, ".codex/config.toml")
    done = overspill(tmp_path, "wrap", "codex", "--one")
    assert done.returncode == 2
    assert "is not JSON, so one entry cannot hold its other entries exactly" in done.stderr
    assert file.read_text() == CODEX


@pytest.mark.parametrize(
    ("held", "problem"),
    [
        ("no json", "OVERSPILL_SERVERS in"),
        ("[]", "has no mcpServers"),
        ('{"mcpServers": []}', "has no mcpServers"),
        ('{"mcpServers": {"a": {}}, "evil": {"b": {}}}', ""),
        ('{"mcpServers": {"kept": {}}}', "has the server 'kept' twice"),
        ('{"mcpServers": {"a": {}, "a": {}}}', "has the server 'a' twice"),
    ],
)
def test_what_an_entry_says_it_holds_is_not_trusted(held: str, problem: str, tmp_path: Path):
    one = {"command": "overspill", "args": ["proxy", "--config-env", "OVERSPILL_SERVERS"], "env": {"OVERSPILL_SERVERS": held}}
    file = write(tmp_path, servers(servers=one, kept=entry()))
    before = file.read_text()
    done = overspill(tmp_path, "unwrap", "cursor")
    assert done.returncode == (2 if problem else 0), done.stderr
    assert problem in done.stderr
    if problem:
        assert file.read_text() == before
    else:
        assert read(file) == {"a": {}, "kept": entry()}


def test_an_entry_that_was_changed_by_hand_is_not_written_anew(tmp_path: Path):
    file = write(tmp_path, servers(a=entry()))
    overspill(tmp_path, "wrap", "cursor", "--one")
    content = json.loads(file.read_text())
    content["mcpServers"]["servers"]["timeout"] = 60
    content["mcpServers"]["b"] = entry()
    file.write_text(json.dumps(content))
    before = file.read_text()
    done = overspill(tmp_path, "wrap", "cursor", "--one")
    assert "was changed by hand. Run overspill unwrap first." in done.stderr
    assert file.read_text() == before
    assert overspill(tmp_path, "unwrap", "cursor").returncode == 0
    assert read(file) == {"a": entry(), "b": entry()}


def test_print_shows_the_entry_without_secrets_and_writes_nothing(tmp_path: Path):
    file = write(tmp_path, servers(a=entry(env={"KEY": "s3cret"})))
    before = file.read_text()
    said = overspill(tmp_path, "wrap", "cursor", "--one", "--print").stdout
    assert "+ servers: proxy --config-env OVERSPILL_SERVERS" in said
    assert "s3cret" not in said
    assert file.read_text() == before


@pytest.mark.parametrize(
    ("args", "problem"),
    [
        (["--one"], "--one needs a client"),
        (["claude-code", "--one", "--each"], "--one works without --each"),
        (["claude-code", "--one", "--hooks"], "--hooks is a second command"),
    ],
)
def test_options_that_do_not_fit(args: list[str], problem: str, tmp_path: Path):
    done = overspill(tmp_path, "wrap", *args)
    assert done.returncode == 2
    assert problem in done.stderr
