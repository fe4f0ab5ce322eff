"""`overspill hook` and `overspill serve`: a coding agent's large outputs are stored, and only its own project reads them."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from commands import SOURCE, bare_environment
from extras import OFFERED
from forked import Forked
from frames import TOO_LARGE
from waiting import wait_until

from overspill import handles
from overspill.cli.commands import hook as command
from overspill.settings.files import WORKING_DIRECTORY_NAMES
from overspill.text import tokens

LARGE = "".join(f"line {number} of many\n" for number in range(1, 2001))


class Agent:
    """A client that calls hooks, with a home and a project of its own."""

    def __init__(self, root: Path, project: str = "project") -> None:
        self.project = root / project
        self.project.mkdir(exist_ok=True)
        self.env = bare_environment(root)

    def start(self, *args: str) -> subprocess.Popen[bytes]:
        pipe = subprocess.PIPE
        return Forked(args, env=self.env, cwd=self.project, stdin=pipe, stdout=pipe, stderr=pipe)

    def hook(self, client: str, event: object) -> tuple[int, bytes, str]:
        data = event if isinstance(event, bytes) else json.dumps(event).encode()
        process = self.start("hook", client)
        out, err = process.communicate(data, timeout=60)
        return process.returncode, out, err.decode()

    def serve(self, client: str, *requests: dict[str, Any]) -> dict[int, Any]:
        """The results of requests to `overspill serve`, by id."""
        with self.serving(client) as ask:
            return ask(*requests)

    @contextmanager
    def serving(self, client: str) -> Generator[Callable[..., dict[int, Any]]]:
        """A server that runs until the end, and what sends it requests."""
        hello = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
        opening = [
            {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": hello},
            {"jsonrpc": "2.0", "method": "notifications/initialized"},
        ]
        process = self.start("serve", client)
        assert process.stdin is not None
        stdin, stdout = process.stdin, process.stdout
        assert stdout is not None

        def ask(*requests: dict[str, Any]) -> dict[int, Any]:
            for message in [*opening, *({"jsonrpc": "2.0", **request} for request in requests)]:
                stdin.write(json.dumps(message).encode() + b"\n")
            stdin.flush()
            wanted: set[int] = {request["id"] for request in requests} | ({0} if opening else set())
            opening.clear()
            found: dict[int, Any] = {}
            while found.keys() < wanted:
                answer = json.loads(stdout.readline())
                if "id" in answer:
                    found[answer["id"]] = answer.get("result")
            return found

        try:
            yield ask
        finally:
            process.communicate(timeout=60)

    def read(self, client: str, name: str) -> str:
        return self.serve(client, read_first_line(name))[1]["content"][0]["text"]


def read_first_line(name: str, id: int = 1) -> dict[str, Any]:
    args = {"id": name, "mode": "slice", "slice": {"lines": "1-1"}}
    return {"id": id, "method": "tools/call", "params": {"name": "get_tool_output", "arguments": args}}


@pytest.fixture
def agent(tmp_path: Path) -> Agent:
    return Agent(tmp_path)


def bash(stdout: str, **more: object) -> dict[str, Any]:
    response = {"stdout": stdout, "stderr": "", "interrupted": False, "isImage": False, **more}
    return {"hook_event_name": "PostToolUse", "tool_name": "Bash", "tool_input": {"command": "x"}, "tool_response": response}


def find_name(shown: str) -> str:
    return shown.split("stored as ")[1].split(".")[0]


def test_a_large_output_of_bash_is_replaced_in_its_own_shape(agent: Agent):
    code, out, err = agent.hook("claude-code", bash(LARGE))
    assert (code, err) == (0, "")
    answer = json.loads(out)["hookSpecificOutput"]
    assert answer["hookEventName"] == "PostToolUse"
    shown = answer["updatedToolOutput"].pop("stdout")
    assert answer["updatedToolOutput"] == {"stderr": "", "interrupted": False, "isImage": False}
    assert len(shown) < 3000
    assert agent.read("claude-code", find_name(shown)) == "line 1 of many\n"


@pytest.mark.slow
def test_read_and_grep_are_replaced_in_their_own_shapes(agent: Agent):
    file = {"filePath": "/x", "content": LARGE, "numLines": 2000}
    event = {"hook_event_name": "PostToolUse", "tool_name": "Read", "tool_response": {"type": "text", "file": file}}
    read = json.loads(agent.hook("claude-code", event)[1])["hookSpecificOutput"]["updatedToolOutput"]
    assert (read["type"], read["file"]["filePath"], read["file"]["numLines"]) == ("text", "/x", 2000)
    assert "stored as out_" in read["file"]["content"]
    event = {"hook_event_name": "PostToolUse", "tool_name": "Grep", "tool_response": {"mode": "content", "content": LARGE}}
    grep = json.loads(agent.hook("claude-code", event)[1])["hookSpecificOutput"]["updatedToolOutput"]
    assert grep["mode"] == "content"
    assert "stored as out_" in grep["content"]


@pytest.mark.slow
def test_gemini_cli_is_answered_in_its_own_form(agent: Agent):
    event = {"hook_event_name": "AfterTool", "tool_name": "run_shell_command", "tool_response": {"llmContent": LARGE}}
    code, out, _ = agent.hook("gemini-cli", event)
    answer = json.loads(out)
    assert (code, answer["decision"]) == (0, "deny")
    assert answer["reason"].startswith(f"[Not an error: the tool has run.]\n{TOO_LARGE}")


@pytest.mark.promise("small-things-untouched")
@pytest.mark.parametrize("stdout", ["", "small\n", "x" * 12_000])
def test_small_outputs_stay_and_leave_nothing(agent: Agent, stdout: str):
    assert agent.hook("claude-code", bash(stdout)) == (0, b"", "")
    assert not list(agent.project.parent.rglob("journal.jsonl"))


@pytest.mark.slow
@pytest.mark.promise("nothing-lost")
@pytest.mark.parametrize(
    ("client", "event", "why"),
    [
        ("claude-code", b"x" * 20_000, "the event cannot be read"),
        ("claude-code", b'{"a": 1}' + b" " * 20_000, "the event cannot be read"),
        ("claude-code", b"\xff" * 20_000, "the event cannot be read"),
        ("claude-code", bash(LARGE) | {"hook_event_name": "PreToolUse"}, "the event is 'PreToolUse', not PostToolUse"),
        ("claude-code", bash(LARGE) | {"tool_name": "NoSuchTool"}, "has a form that cannot be replaced"),
        ("claude-code", bash(LARGE) | {"tool_response": LARGE}, "has a form that cannot be replaced"),
        ("claude-code", bash(LARGE, persistedOutputPath="/etc/passwd"), "Claude Code has stored this output itself"),
        ("gemini-cli", bash(LARGE), "the event is 'PostToolUse', not AfterTool"),
        ("nosuch-client", bash(LARGE), "takes one of claude-code, gemini-cli"),
        ("--help-me", bash(LARGE), "takes one of claude-code, gemini-cli"),
    ],
)
def test_whatever_cannot_be_replaced_stays(agent: Agent, client: str, event: Any, why: str):
    code, out, err = agent.hook(client, event)
    assert (code, out) == (0, b"")
    assert err.startswith("overspill: The original output stays: ")
    assert why in err
    assert len(err.splitlines()) == 1


@pytest.mark.parametrize("event", [b"", b"not JSON", b"[1]", b'{"tool_name": "Bash"}'])
def test_a_small_event_that_cannot_be_read_is_told_too(agent: Agent, event: bytes):
    code, out, err = agent.hook("claude-code", event)
    assert (code, out) == (0, b"")
    assert err.startswith("overspill: The original output stays: the event cannot be read: ")
    assert len(err.splitlines()) == 1


def test_an_event_of_200_mb_stays(agent: Agent):
    process = agent.start("hook", "claude-code")
    assert process.stdin is not None
    try:
        for _ in range(200):
            process.stdin.write(b"x" * 1_000_000)
    except BrokenPipeError:
        pass
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out) == (0, b"")
    assert b"larger than 67,108,864 bytes" in err


def test_a_store_that_cannot_be_used_leaves_the_original(agent: Agent):
    (agent.project.parent / ".local").write_text("a file where a folder should be")
    code, out, err = agent.hook("claude-code", bash(LARGE))
    assert (code, out) == (0, b"")
    assert "The original output stays" in err


@pytest.mark.slow
def test_what_looks_like_a_reference_in_a_command_is_left_alone(agent: Agent):
    event = bash(LARGE) | {"tool_input": {"command": "{{output:out_3f7k9q}}"}}
    assert b"stored as out_" in agent.hook("claude-code", event)[1]


@pytest.mark.promise("nobody-elses")
@pytest.mark.slow
def test_a_project_reads_only_its_own_outputs(agent: Agent, tmp_path: Path):
    name = find_name(json.loads(agent.hook("claude-code", bash(LARGE))[1])["hookSpecificOutput"]["updatedToolOutput"]["stdout"])
    other = Agent(tmp_path, "other")
    assert other.read("claude-code", name) == f"Unknown tool ID: {name}"
    assert agent.read("gemini-cli", name) == f"Unknown tool ID: {name}"


@pytest.mark.slow
def test_serve_offers_the_retrieval_tools_and_nothing_else(agent: Agent):
    listed = agent.serve("claude-code", {"id": 1, "method": "tools/list"})[1]["tools"]
    assert [tool["name"] for tool in listed] == OFFERED


@pytest.mark.slow
def test_twenty_hooks_at_once_store_twenty_outputs(agent: Agent):
    running = [agent.start("hook", "claude-code") for _ in range(20)]
    names = set[str]()
    for number, process in enumerate(running):
        out, _ = process.communicate(json.dumps(bash(f"{number} {LARGE}")).encode(), timeout=300)
        names.add(find_name(json.loads(out)["hookSpecificOutput"]["updatedToolOutput"]["stdout"]))
    assert len(names) == 20
    assert {agent.read("claude-code", name).split()[0] for name in sorted(names)[:3]} <= {str(number) for number in range(20)}


def test_a_small_output_loads_neither_sessions_nor_models():
    code = (
        "import io, sys; sys.stdin = io.TextIOWrapper(io.BytesIO(b'{}')); sys.argv = ['overspill', 'hook', 'claude-code']\n"
        "from overspill.cli import overspill\n"
        "overspill.main(['hook', 'claude-code'], standalone_mode=False)\n"
        "print([name for name in ('overspill.session', 'overspill.settings', 'anyio', 'mcp') if name in sys.modules])"
    )
    env = {"PATH": os.environ["PATH"], "HOME": "/nonexistent", "PYTHONPATH": str(SOURCE)}
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout == "[]\n"


def test_the_quick_way_knows_every_settings_file():
    assert command.SETTINGS_FILES == WORKING_DIRECTORY_NAMES


def start(source: str) -> dict[str, Any]:
    return {"hook_event_name": "SessionStart", "source": source, "session_id": "x"}


@pytest.mark.parametrize("source", ["compact", "resume"])
def test_after_a_conversation_was_shortened_what_can_still_be_read_is_listed(agent: Agent, source: str):
    _, out, _ = agent.hook("claude-code", bash(LARGE))
    name = find_name(json.loads(out)["hookSpecificOutput"]["updatedToolOutput"]["stdout"])
    code, out, err = agent.hook("claude-code", start(source))
    answer = json.loads(out)["hookSpecificOutput"]
    first, line = answer["additionalContext"].splitlines()
    assert (code, err, answer["hookEventName"]) == (0, "", "SessionStart")
    assert first.startswith("Outputs stored earlier in this project")
    assert line.startswith(f"- {name}: Bash")
    assert agent.read("claude-code", name) == "line 1 of many\n"


def store_many(agent: Agent, count: int) -> list[str]:
    """Their names, oldest first."""
    shown = [agent.hook("claude-code", bash(f"{number}\n{LARGE}"))[1] for number in range(count)]
    return [find_name(json.loads(out)["hookSpecificOutput"]["updatedToolOutput"]["stdout"]) for out in shown]


def read_note(agent: Agent) -> list[str]:
    """The names in it."""
    note = json.loads(agent.hook("claude-code", start("compact"))[1])["hookSpecificOutput"]["additionalContext"]
    assert tokens.count(note).tokens <= 150
    return re.findall(r"^- (out_\w+):", note, re.MULTILINE)


def test_a_note_of_many_outputs_is_short_and_names_the_newest(agent: Agent):
    names = store_many(agent, 12)
    noted = read_note(agent)
    assert len(noted) >= 4
    assert noted == names[::-1][: len(noted)]


def test_a_note_also_names_what_other_processes_read(agent: Agent):
    """One is a server that still runs, as it does when an agent compacts its conversation; the other is a shell."""
    names = store_many(agent, 12)
    often, lately, once = names[:3]
    with agent.serving("claude-code") as ask:
        for number, name in enumerate([once, often, often], 1):
            assert ask(read_first_line(name, number))[number]["content"][0]["text"] == f"{names.index(name)}\n"
        newer = store_many(agent, 6)
        assert b"line 1 of many" in agent.start("get", lately).communicate(timeout=60)[0]
        noted = wait_until(lambda: read_note(agent), lambda noted: once in noted)
        assert noted[:4] == [lately, often, newer[-1], once]
    (stored,) = [path for path in agent.project.parent.rglob("*") if path.name.endswith(handles.ending(often))]
    stored.unlink()
    assert often not in read_note(agent)


@pytest.mark.parametrize(
    ("client", "event"),
    [
        ("claude-code", start("compact")),
        ("claude-code", start("startup")),
        ("gemini-cli", start("compact")),
        ("gemini-cli", start("resume")),
    ],
)
def test_nothing_is_said_where_nothing_was_stored_or_nothing_was_forgotten(tmp_path: Path, client: str, event: dict[str, Any]):
    Agent(tmp_path, "other").hook("claude-code", bash(LARGE))  # another project's
    assert Agent(tmp_path).hook(client, event)[1] == b""
