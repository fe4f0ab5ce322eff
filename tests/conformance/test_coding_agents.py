"""The real Claude Code and Gemini CLI, with a stand-in for their APIs: what each does with `overspill hook` and `serve`.

What is seen here is what docs/coding-agents.md and `overspill doctor` say about these versions.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
from frames import TOO_LARGE
from model_apis import AnthropicApi, Call, GeminiApi, ScriptedApi, serving
from official import Node
from packages import CODING_AGENTS

from overspill.hooks.shapes import OBSERVED

pytestmark = pytest.mark.slow

PROGRAM = Path(sys.executable).with_name("overspill")
NUMBERS = "seq 1 3000"
REWRITE = """\
import json, shlex, sys
event = json.load(sys.stdin)
command = shlex.join([sys.argv[1], "keep", "--", "bash", "-c", event["tool_input"]["command"]])
answer = {"hookEventName": "PreToolUse", "updatedInput": {"command": command}}
print(json.dumps({"hookSpecificOutput": answer}))
"""
BASE = "ANTHROPIC_BASE_URL"
SECOND_LINE = {"id": "NAME", "mode": "slice", "slice": {"lines": "2-2"}}


class User:
    """A home, a project, and the command line in them."""

    def __init__(self, root: Path, **variables: str) -> None:
        self.home, self.project = root / "home", root / "project"
        for folder in (self.home, self.project):
            folder.mkdir()
        (self.project / "numbers.txt").write_text("".join(f"number {line}\n" for line in range(1, 2001)))
        self.variables = variables

    def run(self, command: Sequence[str | Path], **variables: str) -> subprocess.CompletedProcess[str]:
        path = f"{PROGRAM.parent}{os.pathsep}{os.environ['PATH']}"
        env = {"HOME": str(self.home), "PATH": path, "LANG": "C.UTF-8", "NO_PROXY": "127.0.0.1", "OVERSPILL_HUB": "off"}
        env |= {**self.variables, **variables}
        given = {"env": env, "cwd": self.project, "stdin": subprocess.DEVNULL}
        return subprocess.run(command, capture_output=True, text=True, timeout=300, check=False, **given)  # type: ignore[call-overload]

    def overspill(self, *args: str) -> str:
        done = self.run([PROGRAM, *args])
        assert (done.returncode, done.stderr) == (0, "")
        return done.stdout


def play(user: User, command: Sequence[str], api: ScriptedApi, url_variable: str) -> list[str]:
    with serving(api):
        done = user.run(command, **{url_variable: api.url})
    assert len(api.results) == len(api.calls), (done.returncode, done.stdout[-2000:], done.stderr[-2000:])
    return api.results


def test_the_pinned_versions_are_those_that_doctor_speaks_of():
    pinned = {"claude-code": "@anthropic-ai/claude-code", "gemini-cli": "@google/gemini-cli"}
    assert {client: seen.versions[-1] for client, seen in OBSERVED.items()} == {
        client: CODING_AGENTS[package] for client, package in pinned.items()
    }


def test_claude_code_shows_what_the_hook_answers(coding_agents: Node, tmp_path: Path):
    user = User(tmp_path, ANTHROPIC_API_KEY="none", CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC="1", DISABLE_AUTOUPDATER="1")
    file = user.home / ".claude.json"
    file.write_text('{"hasCompletedOnboarding": true}')
    user.overspill("wrap", "claude-code", "--hooks")
    numbers = str(user.project / "numbers.txt")
    calls: list[Call] = [
        ("Bash", {"command": NUMBERS}),
        ("Bash", {"command": "echo small"}),
        ("Bash", {"command": f"{NUMBERS}; exit 3"}),
        ("Bash", {"command": "seq 1 20000"}),
        ("Read", {"file_path": numbers}),
        ("Grep", {"pattern": "number", "path": numbers, "output_mode": "content", "head_limit": 1900}),
        ("mcp__overspill__get_tool_output", SECOND_LINE),
    ]
    command = coding_agents.program("claude", "-p", "go", "--allowedTools", "Bash,Read,Grep,mcp__overspill")
    large, small, failed, huge, read, grep, retrieved = play(user, command, AnthropicApi(calls), "ANTHROPIC_BASE_URL")
    assert large.startswith(TOO_LARGE)
    assert small == "small"
    assert "2999\n3000" in failed  # no event, as doctor says
    assert TOO_LARGE not in huge  # Claude Code has stored it itself
    assert "stored as out_" not in huge
    assert "stored as out_" in read
    assert "stored as out_" in grep
    assert retrieved == "2\n"
    user.overspill("unwrap", "claude-code")
    assert "overspill" not in file.read_text()
    assert not (user.home / ".claude" / "settings.json").exists()


@pytest.mark.parametrize("again", ["/compact", "go on"])
def test_claude_code_names_stored_outputs_again_after_compaction_and_when_it_resumes(
    coding_agents: Node, tmp_path: Path, again: str
):
    user = User(tmp_path, ANTHROPIC_API_KEY="none", CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC="1", DISABLE_AUTOUPDATER="1")
    (user.home / ".claude.json").write_text('{"hasCompletedOnboarding": true}')
    user.overspill("wrap", "claude-code", "--hooks")
    tools = ("--allowedTools", "Bash,mcp__overspill")
    (large,) = play(
        user, coding_agents.program("claude", "-p", "go", *tools), AnthropicApi([("Bash", {"command": NUMBERS})]), BASE
    )
    name = large.split("stored as ")[1].split(".")[0]
    if again == "/compact":
        with serving(api := AnthropicApi([])):
            user.run(coding_agents.program("claude", "-p", again, "--continue"), ANTHROPIC_BASE_URL=api.url)
    api = AnthropicApi([])
    with serving(api):
        user.run(coding_agents.program("claude", "-p", "what is stored?", "--continue", *tools), ANTHROPIC_BASE_URL=api.url)
    assert f"- {name}: Bash" in api.asked
    assert (TOO_LARGE in api.asked) == (again != "/compact")  # what it was told of the output is gone
    read = AnthropicApi([("mcp__overspill__get_tool_output", {**SECOND_LINE, "id": name})])
    assert play(user, coding_agents.program("claude", "-p", "read it", *tools), read, BASE) == ["2\n"]


@pytest.mark.promise("everything-reachable")
def test_after_compaction_claude_code_reads_every_kept_output_by_its_name(coding_agents: Node, tmp_path: Path):
    """What its own tools returned, and what a server behind the proxy did, with the retrieval tool and in its shell."""
    user = User(tmp_path, ANTHROPIC_API_KEY="none", CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC="1", DISABLE_AUTOUPDATER="1")
    server = {"type": "stdio", "command": sys.executable, "args": [str(Path(__file__).parents[1] / "servers" / "rows.py")]}
    (user.home / ".claude.json").write_text(json.dumps({"hasCompletedOnboarding": True, "mcpServers": {"rows": server}}))
    user.overspill("wrap", "claude-code", "--hooks")
    numbers = str(user.project / "numbers.txt")
    calls: list[Call] = [
        ("Bash", {"command": NUMBERS}),
        ("Read", {"file_path": numbers}),
        ("Grep", {"pattern": "number", "path": numbers, "output_mode": "content", "head_limit": 1900}),
        ("mcp__rows__huge", {"size": 50_000}),
    ]
    tools = ("--allowedTools", "Bash,Read,Grep,mcp__overspill,mcp__rows")
    kept = play(user, coding_agents.program("claude", "-p", "go", *tools), AnthropicApi(calls), BASE)
    names = [shown.split("stored as ")[1].split(".")[0] for shown in kept]
    with serving(api := AnthropicApi([])):
        user.run(coding_agents.program("claude", "-p", "/compact", "--continue"), ANTHROPIC_BASE_URL=api.url)
    part = {"mode": "slice", "slice": {"lines": "1-1"}}
    reads: list[Call] = [("mcp__overspill__get_tool_output", {"id": name, **part}) for name in names]
    reads += [("Bash", {"command": f"{PROGRAM} get {name} --lines 1-1"}) for name in names]
    api = AnthropicApi(reads)
    found = play(user, coding_agents.program("claude", "-p", "read them", "--continue", *tools), api, BASE)
    assert all(f"- {name}: " in api.asked for name in names[:3])  # the note; the server's own are not in it
    assert TOO_LARGE not in api.asked  # it was compacted
    for text, first in zip(found, ["1", "number 1", "1:number 1", "xxxx"] * 2, strict=True):
        assert [line for line in text.splitlines() if line.startswith(first)], text


def test_claude_code_checks_permissions_against_the_command_that_a_hook_answers(coding_agents: Node, tmp_path: Path):
    """Why no hook puts commands through `overspill keep`: it would hide them from the user's own rules."""
    user = User(tmp_path, ANTHROPIC_API_KEY="none", CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC="1", DISABLE_AUTOUPDATER="1")
    (user.home / ".claude.json").write_text('{"hasCompletedOnboarding": true}')
    script = tmp_path / "rewrite.py"
    script.write_text(REWRITE)
    (user.project / "sub").mkdir()
    settings = user.home / ".claude" / "settings.json"
    settings.parent.mkdir()
    rules = {"deny": ["Bash(touch *)"], "allow": ["Bash"]}
    hook = {"type": "command", "command": f"{sys.executable} {script} {PROGRAM}"}
    command = coding_agents.program("claude", "-p", "go")
    for hooks in ({}, {"PreToolUse": [{"matcher": "Bash", "hooks": [hook]}]}):
        settings.write_text(json.dumps({"permissions": rules, "hooks": hooks}))
        calls: list[Call] = [("Bash", {"command": each}) for each in (f"{NUMBERS}; exit 3", "touch made.txt", "cd sub", "pwd")]
        failed, _, _, where = play(user, command, AnthropicApi(calls), "ANTHROPIC_BASE_URL")
        is_rewritten = bool(hooks)
        assert (TOO_LARGE in failed, "Exit code 3" in failed) == (is_rewritten, True)
        assert (user.project / "made.txt").exists() == is_rewritten
        assert where.strip().endswith("/sub") != is_rewritten


def test_gemini_cli_shows_what_the_hook_answers(coding_agents: Node, tmp_path: Path):
    user = User(tmp_path, GEMINI_API_KEY="none", GEMINI_CLI_TRUST_WORKSPACE="true")
    file = user.home / ".gemini" / "settings.json"
    file.parent.mkdir()
    before = '{"security": {"auth": {"selectedType": "gemini-api-key"}}, "privacy": {"usageStatisticsEnabled": false}}\n'
    file.write_text(before)
    user.overspill("wrap", "gemini-cli", "--hooks")
    calls: list[Call] = [
        ("run_shell_command", {"command": NUMBERS}),
        ("run_shell_command", {"command": "echo small"}),
        ("run_shell_command", {"command": f"{NUMBERS}; exit 3"}),
        ("read_file", {"file_path": str(user.project / "numbers.txt")}),
        ("mcp_overspill_get_tool_output", SECOND_LINE),
    ]
    command = coding_agents.program("gemini", "-p", "go", "--yolo", "-m", "gemini-2.5-flash")
    large, small, failed, read, retrieved = play(user, command, GeminiApi(calls), "GOOGLE_GEMINI_BASE_URL")
    assert f"[Not an error: the tool has run.]\\n{TOO_LARGE}" in large
    assert "small" in small
    assert "stored as out_" in failed
    assert "stored as out_" in read
    assert "Output: 1\\n" in retrieved  # the second line of what Gemini CLI puts round it
    user.overspill("unwrap", "gemini-cli")
    assert "overspill" not in file.read_text()
