"""`overspill wrap --hooks` and `overspill unwrap`: a client's built-in tools go through Overspill, and no longer."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from client_files import CLAUDE_CODE, GEMINI_CLI
from commands import Place, Result

from overspill.text import jsonc

SETTINGS = """\
{
    // mine
    "model": "opus",
    "hooks": {
        "PostToolUse": [
            {"matcher": "Edit", "hooks": [{"type": "command", "command": "fmt"}]}
        ],
        "Stop": []
    },
    "env": {"KEY": "settings-secret"}
}
"""
HOOK = {"matcher": "Bash|Read|Grep", "hooks": [{"type": "command", "command": "overspill hook claude-code"}]}
REMINDER = {"matcher": "compact|resume", "hooks": [{"type": "command", "command": "overspill hook claude-code"}]}
SERVER = {"type": "stdio", "command": "overspill", "args": ["serve", "claude-code"]}


def wrap(place: Place, client: str = "claude-code", *options: str) -> Result:
    return place.overspill("wrap", client, "--hooks", "--command", "overspill", *options)


def install(place: Place, servers: str | None = CLAUDE_CODE, settings: str | None = SETTINGS) -> tuple[Path, Path]:
    files = place.root / ".claude.json", place.root / ".claude" / "settings.json"
    files[1].parent.mkdir(exist_ok=True)
    for file, text in zip(files, (servers, settings), strict=True):
        if text is not None:
            file.write_text(text)
    return files


def read(file: Path) -> Any:
    return jsonc.scan(file.read_text(), file.name).value


def snapshot(root: Path) -> dict[str, bytes]:
    return {str(file.relative_to(root)): file.read_bytes() for file in sorted(root.rglob("*")) if file.is_file()}


def test_hook_and_server_are_written_and_everything_else_stays(place: Place):
    servers, settings = install(place)
    result = wrap(place)
    assert (result.code, result.err) == (0, "")
    assert result.out.startswith("Outputs of these built-in tools now go through Overspill: Bash, Read, Grep.\n")
    assert "stored on your disk, secrets included" in result.out
    assert result.out.endswith("To undo: overspill unwrap claude-code\n")
    after = read(settings)
    assert after["hooks"]["PostToolUse"][0] == HOOK
    assert after["hooks"]["PostToolUse"][1]["matcher"] == "Edit"
    assert "// mine" in settings.read_text()
    assert read(servers)["mcpServers"]["overspill"] == SERVER
    assert read(servers)["mcpServers"]["filesystem"]["args"][:3] == ["proxy", "--name", "filesystem"]


@pytest.mark.promise("nothing-lost")
@pytest.mark.parametrize(
    "settings",
    [
        SETTINGS,
        None,
        "{}",
        "{ }\n",
        '{"hooks": {}}',
        '{"hooks": {"PostToolUse": []}}\n',
        '{\r\n\t"hooks": {\r\n\t\t"Stop": [ ]\r\n\t}\r\n}',
        '{"a": 1, "hooks": {"PostToolUse": [{"matcher": "X", "hooks": []}]}, } // end',
    ],
)
@pytest.mark.parametrize("servers", [CLAUDE_CODE, '{"numStartups": 1}', '{"mcpServers": {}}', None])
def test_undo_is_byte_for_byte_and_leaves_nothing_behind(place: Place, servers: str | None, settings: str | None):
    install(place, servers, settings)
    before = snapshot(place.root)
    assert wrap(place).code == 0
    assert snapshot(place.root) != before
    again = wrap(place)
    assert (again.code, again.err) == (0, "")
    assert "Nothing to change" in again.out
    undone = place.overspill("unwrap", "claude-code")
    assert (undone.code, undone.err) == (0, "")
    assert undone.out.startswith("Outputs of these built-in tools no longer go through Overspill: Bash, Read, Grep.\n")
    assert snapshot(place.root) == before


def test_gemini_cli_has_both_in_one_file(place: Place):
    file = place.root / ".gemini" / "settings.json"
    file.parent.mkdir()
    file.write_text(GEMINI_CLI)
    assert wrap(place, "gemini-cli").code == 0
    after = read(file)
    (group,) = after["hooks"]["AfterTool"]
    assert group == {
        "matcher": "run_shell_command|read_file",
        "hooks": [{"type": "command", "command": "overspill hook gemini-cli"}],
    }
    assert after["mcpServers"]["overspill"] == {"command": "overspill", "args": ["serve", "gemini-cli"]}
    assert after["mcpServers"]["local"]["command"] == "overspill"
    assert place.overspill("unwrap", "gemini-cli").code == 0
    assert snapshot(file.parent) == {"settings.json": GEMINI_CLI.encode()}


def test_what_was_changed_in_between_stays(place: Place):
    servers, settings = install(place)
    wrap(place)
    for file in (servers, settings):
        written = read(file)
        file.write_text(json.dumps({**written, "new": 1}, indent=2))
    assert place.overspill("unwrap", "claude-code").code == 0
    assert read(settings) == {**jsonc.scan(SETTINGS, "").value, "new": 1}
    assert read(servers) == {**json.loads(CLAUDE_CODE), "new": 1}


def test_hooks_of_others_stay_even_in_the_same_group(place: Place):
    ours, theirs = "overspill hook claude-code", "other hook claude-code"
    hooks = [{"type": "command", "command": command} for command in (theirs, ours, ours)]
    _, settings = install(place, None, json.dumps({"hooks": {"PostToolUse": [{"matcher": "Bash", "hooks": hooks}]}}))
    assert place.overspill("unwrap", "claude-code").code == 0
    assert read(settings) == {"hooks": {"PostToolUse": [{"matcher": "Bash", "hooks": hooks[:1]}]}}


def test_a_program_of_another_name_is_recognised_by_its_server(place: Place):
    servers, settings = install(place)
    before = snapshot(place.root)
    assert place.overspill("wrap", "claude-code", "--hooks", "--command", "'/opt/my tool'").code == 0
    assert read(settings)["hooks"]["PostToolUse"][0]["hooks"][0]["command"] == "'/opt/my tool' hook claude-code"
    assert place.overspill("unwrap", "claude-code").code == 0
    assert snapshot(place.root) == before
    assert servers.exists()


def test_a_projects_file_has_its_hooks_in_the_project(place: Place):
    Path(".mcp.json").write_text('{"mcpServers": {"a": {"command": "x"}}}')
    assert wrap(place, ".mcp.json").code == 0
    made = Path(".claude/settings.json")
    assert read(made) == {"hooks": {"PostToolUse": [HOOK], "SessionStart": [REMINDER]}}
    assert stat.S_IMODE(made.stat().st_mode) == 0o600
    assert place.overspill("unwrap", ".mcp.json").code == 0
    assert not made.exists()
    assert not (place.root / ".claude").exists()


def test_print_and_json_write_nothing_secret(place: Place):
    install(place, settings=json.dumps({"env": {"KEY": "settings-secret"}}))
    before = snapshot(place.root)
    shown = wrap(place, "claude-code", "--print")
    assert (shown.code, shown.err) == (0, "")
    assert "+ hooks.PostToolUse: Bash|Read|Grep: overspill hook claude-code\n" in shown.out
    assert "+ mcpServers.overspill: overspill serve claude-code\n" in shown.out
    assert "secret" not in shown.out
    assert snapshot(place.root) == before
    facts = json.loads(wrap(place, "claude-code", "--json").out)
    assert (facts["client"], facts["written"], facts["hooks"]["written"]) == ("claude-code", True, True)
    assert facts["hooks"]["file"] == str(place.root / ".claude" / "settings.json")
    shown = place.overspill("unwrap", "claude-code", "--print")
    assert "- hooks.PostToolUse: Bash|Read|Grep: overspill hook claude-code\n" in shown.out
    assert shown.out.endswith("Nothing was written.\n")


def test_servers_that_are_overspill_itself_are_not_wrapped(place: Place):
    servers, _ = install(place, json.dumps({"mcpServers": {"mine": SERVER, "x": {"command": "y"}}}))
    assert place.overspill("wrap", "claude-code", "--command", "overspill").code == 0
    assert read(servers)["mcpServers"]["mine"] == SERVER


@pytest.mark.parametrize(
    ("servers", "settings", "message"),
    [
        (CLAUDE_CODE, "[]", "settings.json must be an object."),
        (CLAUDE_CODE, '{"hooks": []}', "hooks in {root}/.claude/settings.json must be an object."),
        (CLAUDE_CODE, '{"hooks": {"PostToolUse": {}}}', "hooks.PostToolUse in {root}/.claude/settings.json must be an array."),
        (CLAUDE_CODE, '{"hooks": {}, "hooks": {}}', "has the key 'hooks' twice. Keep one."),
        (CLAUDE_CODE, "", "settings.json is empty. Remove it, or write {{}} into it, and run this again."),
        (CLAUDE_CODE, "{", "settings.json is not usable JSON, line 1, column 2"),
        ("", SETTINGS, ".claude.json is empty."),
        ('{"mcpServers": []}', SETTINGS, "mcpServers in {root}/.claude.json must be an object."),
        ('{"mcpServers": {"overspill": {"command": "x"}}}', SETTINGS, "already has a server 'overspill', and it is another one."),
    ],
)
def test_a_file_that_cannot_be_changed_is_one_line_and_nothing_is_written(
    place: Place, servers: str, settings: str, message: str
):
    install(place, servers, settings)
    before = snapshot(place.root)
    result = wrap(place)
    assert (result.code, result.out) == (2, "")
    assert message.format(root=place.root) in result.err
    assert len(result.err.splitlines()) == 1
    assert snapshot(place.root) == before


def test_a_client_that_is_not_installed_is_one_line(place: Place):
    result = wrap(place)
    assert (result.code, result.out) == (2, "")
    assert "Claude Code is not installed here: neither" in result.err
    gemini = f"Gemini CLI is not installed here: {place.root / '.gemini' / 'settings.json'} does not exist.\n"
    assert wrap(place, "gemini-cli").err == f"overspill: error: {gemini}"
    assert "Overspill knows no hooks of cursor. --hooks works with claude-code and gemini-cli." in wrap(place, "cursor").err
    assert place.overspill("wrap", "--hooks").code == 2
    assert not (place.root / ".claude.json").exists()


def test_if_one_file_cannot_be_written_the_other_is_as_before(place: Place):
    """The servers are written first, and the disk is too small for the hooks."""
    install(place, settings=json.dumps({"a": "x" * 6000}))
    before = snapshot(place.root)
    code = (
        "import resource; from overspill.cli import main\n"
        "usual = resource.getrlimit(resource.RLIMIT_FSIZE)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (5000, usual[1]))\n"
        "try: main()\nfinally: resource.setrlimit(resource.RLIMIT_FSIZE, usual)"
    )
    command = [sys.executable, "-c", code, "wrap", "claude-code", "--hooks", "--command", "overspill"]
    done = subprocess.run(command, env={**os.environ}, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert "File too large. Nothing was written." in done.stderr
    assert snapshot(place.root) == before
