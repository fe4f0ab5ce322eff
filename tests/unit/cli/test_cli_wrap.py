"""`overspill wrap` and `overspill unwrap` as a user meets them."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from client_files import CLAUDE_CODE, CLAUDE_DESKTOP, CURSOR
from commands import RUN, SOURCE, Place, Result, on_a_terminal

from overspill.cli.launching import find_launch
from overspill.errors import BadRequest

# The limit ends with the command, because coverage writes a file, too.
WITH_SMALL_FILES = """
import resource
from overspill.cli import main
usual = resource.getrlimit(resource.RLIMIT_FSIZE)
resource.setrlimit(resource.RLIMIT_FSIZE, (5000, usual[1]))
try:
    main()
finally:
    resource.setrlimit(resource.RLIMIT_FSIZE, usual)
"""


@pytest.fixture
def cursor(place: Place) -> Path:
    file = place.root / ".cursor" / "mcp.json"
    file.parent.mkdir()
    file.write_text(CURSOR)
    return file


def copies(file: Path) -> list[Path]:
    return sorted(file.parent.glob("*.bak"))


def plain(result: Result, place: Place, file: Path) -> str:
    """Without what is different every time."""
    out = result.out.replace(str(place.root), "HOME")
    for copy in copies(file):
        out = out.replace(copy.name, "COPY")
    return out


def test_a_lone_surrogate_in_a_servers_name_is_preserved(place: Place, cursor: Path):
    text = '{"mcpServers": {"a\\ud800b": {"command": "cat", "args": ["\\ud83d"]}}}'
    cursor.write_text(text)
    result = place.overspill("wrap", "cursor", "--command", "overspill")
    assert (result.code, result.err) == (0, "")
    assert "a\\ud800b" in result.out
    assert json.loads(cursor.read_text())["mcpServers"]["a\ud800b"] == {
        "command": "overspill",
        "args": ["proxy", "--name", "a\ud800b", "--group", "cursor", "--", "cat", "\ud83d"],
    }
    assert place.overspill("unwrap", "cursor").code == 0
    assert cursor.read_text() == text


def test_a_client_is_wrapped_and_unwrapped_by_its_name(place: Place, cursor: Path):
    result = place.overspill("wrap", "cursor", "--command", "overspill")
    assert (result.code, result.err) == (0, "")
    assert (
        plain(result, place, cursor)
        == """\
These servers now run through Overspill:
  web
  jot
The server overspill offers the tools that read what they store.
Not changed:
  old: it speaks SSE, and the proxy speaks stdio and streamable HTTP.
Changed HOME/.cursor/mcp.json.
The original is in HOME/.cursor/COPY, secrets included. Remove it when you no longer need it.
Restart Cursor, or turn the servers off and on in its settings, under Tools & MCP.
To undo: overspill unwrap cursor
"""
    )
    (copy,) = copies(cursor)
    assert copy.read_text() == CURSOR

    result = place.overspill("unwrap", "cursor")
    assert (result.code, result.err) == (0, "")
    assert (
        plain(result, place, cursor)
        == """\
These servers no longer run through Overspill:
  web
  jot
The server overspill is removed.
Changed HOME/.cursor/mcp.json.
It is the same as before, so its copies are removed.
Restart Cursor, or turn the servers off and on in its settings, under Tools & MCP.
"""
    )
    assert cursor.read_text() == CURSOR
    assert not copies(cursor)


def test_nothing_is_written_when_nothing_changes(place: Place, cursor: Path):
    assert place.overspill("unwrap", "cursor").out == f"Nothing to change in {cursor}.\n"
    place.overspill("wrap", "cursor")
    before = cursor.stat().st_mtime_ns
    result = place.overspill("wrap", "cursor")
    assert result.out == (
        "Not changed:\n"
        "  web: it already runs through Overspill.\n"
        "  jot: it already runs through Overspill.\n"
        "  old: it speaks SSE, and the proxy speaks stdio and streamable HTTP.\n"
        f"Nothing to change in {cursor}.\n"
    )
    assert (result.code, len(copies(cursor)), cursor.stat().st_mtime_ns) == (0, 1, before)


def test_print_shows_entries_without_their_secrets_and_writes_nothing(place: Place):
    file = Path("claude_desktop_config.json")
    file.write_text(CLAUDE_DESKTOP)
    result = place.overspill("wrap", str(file), "--command", "overspill", "--print", "--each")
    assert result == (
        0,
        """\
time
 {
-      "command": "uvx",
-      "args": ["mcp-server-time", "--local-timezone=Europe/Paris"]
+      "command": "overspill",
+      "args": ["proxy", "--name", "time", "--", "uvx", "mcp-server-time", "--local-timezone=Europe/Paris"]
     }

linear
 {
-      "command": "npx",
-      "args": ["-y", "mcp-remote", "https://mcp.linear.app/sse", "--header", "…"],
+      "command": "overspill",
+      "args": ["proxy", "--name", "linear", "--", "npx", "-y", "mcp-remote", "https://mcp.linear.app/sse", "--header", "…"],
       "env": {
         "TOKEN": "…"
       }
     }

Nothing was written.
""",
        "",
    )
    assert file.read_text() == CLAUDE_DESKTOP
    assert os.listdir() == [str(file)]


def test_secrets_of_every_kind_are_hidden(place: Place):
    entries = {
        "a": {
            "command": "x",
            "args": ["--api-key", "SECRET", "--token=SECRET", "postgres://u:SECRET@h/d", "--verbose"],
            "env": {},
        },
        "b": {"url": "https://h.example/mcp?key=SECRET"},
        "c": {"url": "http://localhost/mcp", "headers": {"X-Key": "SECRET"}},
        "d": {"command": "x", "env": "SECRET"},
    }
    Path("mcp.json").write_text(json.dumps({"mcpServers": entries}, indent=2))
    shown = place.overspill("wrap", "mcp.json", "--command", "overspill", "--print")
    assert shown.code == 0
    assert "SECRET" not in shown.out
    assert '"--verbose"' in shown.out
    assert '"X-Key=OVERSPILL_HEADER_X_KEY"' in shown.out
    place.overspill("wrap", "mcp.json", "--command", "overspill")
    shown = place.overspill("unwrap", "mcp.json", "--print")
    assert "SECRET" not in shown.out
    assert shown.out.endswith("Nothing was written.\n")


def test_json_has_the_same_facts(place: Place, cursor: Path):
    result = place.overspill("wrap", "cursor", "--json", "--server", "web", "--server", "old")
    (copy,) = copies(cursor)
    assert result.code == 1
    assert json.loads(result.out) == {
        "file": str(cursor),
        "client": "cursor",
        "written": True,
        "copy": str(copy),
        "servers": [
            {"server": "web", "project": "", "change": "wrapped", "reason": ""},
            {
                "server": "old",
                "project": "",
                "change": "none",
                "reason": "it speaks SSE, and the proxy speaks stdio and streamable HTTP",
            },
        ],
    }
    again = json.loads(place.overspill("wrap", str(cursor), "--json", "--server", "web").out)
    assert (again["written"], again["copy"], again["client"]) == (False, None, "cursor")


def test_wrapping_a_project_file_says_what_sharing_it_needs(place: Place):
    Path(".mcp.json").write_text('{"mcpServers": {"a": {"command": "x"}}}')
    result = place.overspill("wrap", ".mcp.json")
    assert (
        "If you share this file, everyone needs Overspill at the same path, or wrap it with --command overspill.\n" in result.out
    )
    assert result.out.endswith("To undo: overspill unwrap .mcp.json\n")


def test_servers_of_one_project_are_told_apart(place: Place):
    (place.root / ".claude.json").write_text(CLAUDE_CODE)
    result = place.overspill("wrap", "claude-code")
    assert "  postgres (project /home/ada/shop)\n" in result.out
    assert "Restart Claude Code; `/mcp` there lists the servers.\n" in result.out


def test_a_link_is_followed_and_reported(place: Place):
    dotfiles = place.root / "dotfiles"
    dotfiles.mkdir()
    (dotfiles / "cursor.json").write_text(CURSOR)
    (place.root / ".cursor").mkdir()
    (place.root / ".cursor" / "mcp.json").symlink_to(dotfiles / "cursor.json")
    result = place.overspill("wrap", "cursor")
    link = place.root / ".cursor" / "mcp.json"
    assert f"Changed {dotfiles / 'cursor.json'}. {link} is still a link to it.\n" in result.out
    assert link.is_symlink()
    assert len(copies(dotfiles / "cursor.json")) == 1


def test_the_command_is_by_default_this_program_by_its_full_path(place: Place):
    Path("mcp.json").write_text('{"mcpServers": {"a": {"command": "x"}}}')
    place.overspill("wrap", "mcp.json")
    command = Path(json.loads(Path("mcp.json").read_text())["mcpServers"]["a"]["command"])
    assert command == Path(sys.executable).with_name("overspill")
    assert command.is_file()


def test_the_undo_command_names_this_program_as_it_was_called(place: Place):
    Path("mcp.json").write_text('{"mcpServers": {"a": {"command": "x"}}}')
    program = Path(sys.executable).with_name("overspill")
    env = {"HOME": str(place.root), "PYTHONPATH": str(SOURCE), "PATH": "/usr/bin:/bin"}
    for path, called in (("", shlex.quote(str(program))), (f"{program.parent}:", "overspill")):
        env["PATH"] = f"{path}/usr/bin:/bin"
        done = subprocess.run([program, "wrap", "mcp.json"], env=env, capture_output=True, text=True, timeout=60, check=True)
        assert done.stdout.endswith(f"\nTo undo: {called} unwrap mcp.json\n")
        assert place.overspill("unwrap", "mcp.json").code == 0


def test_a_program_without_a_known_path_needs_the_command_option(place: Place):
    python = place.root / "bin" / "python"
    python.parent.mkdir()
    python.symlink_to(Path(sys.executable).resolve())
    env = {"PYTHONPATH": os.pathsep.join(path for path in sys.path if path), "PATH": "", "HOME": str(place.root)}
    command = [python, "-c", RUN, "wrap", "--print"]
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "overspill: error: Cannot tell how a client should start Overspill. Give the command with --command.\n"


@pytest.mark.parametrize("module", ["mcp", "mcp_types"])
@pytest.mark.slow
def test_nothing_is_wrapped_if_the_proxy_cannot_run(place: Place, cursor: Path, module: str):
    assert place.without(module, "wrap", "cursor") == (
        2,
        "",
        "overspill: error: The proxy needs the package mcp, which is not installed or too old. "
        "In a clone of Overspill: `pip install '.[mcp]'`.\n",
    )
    assert (cursor.read_text(), copies(cursor)) == (CURSOR, [])
    assert place.without(module, "wrap", "cursor", "--command", "overspill").code == 0  # another one, which may have it
    assert place.without(module, "unwrap", "cursor").code == 0
    assert cursor.read_text() == CURSOR


def test_print_without_a_file_shows_what_to_write_for_any_other_client(place: Place):
    shown = place.overspill("wrap", "--print", "--command", "overspill")
    assert shown.code == 0
    assert '"command": "overspill"' in shown.out
    assert shown.out.endswith("To go back, remove everything up to `--`.\n")
    entries = json.loads(place.overspill("wrap", "--print", "--json", "--command", "uvx overspill").out)
    files = entries["mcpServers"]["files"]
    assert (files["command"], files["args"][:6]) == ("uvx", ["overspill", "proxy", "--name", "files", "--", "npx"])


def test_without_a_name_everything_on_the_machine_is_shown_and_nothing_written_unasked(place: Place, cursor: Path):
    result = place.overspill("wrap", "--command", "overspill")
    assert (result.code, result.out) == (
        2,
        f"Cursor:\n  run web, jot through Overspill, in {cursor}\n"
        f"  add the server overspill, which reads what they store, in {cursor}\n",
    )
    assert result.err == (
        "overspill: error: Nothing was written, because there is no terminal to ask you on. Use --all, or name a client.\n"
    )
    assert cursor.read_text() == CURSOR
    cursor.unlink()
    result = place.overspill("wrap", "--command", "overspill")
    assert (result.code, result.out) == (2, "")
    assert "There is nothing to wrap on this machine. Name a client (claude-code, " in result.err


@pytest.mark.parametrize(("answer", "is_written"), [(b"y\n", True), (b"n\n", False)])
def test_on_a_terminal_you_are_asked(place: Place, cursor: Path, answer: bytes, is_written: bool):
    code, seen = on_a_terminal("wrap", "--command", "overspill", answer=answer)
    assert "run web, jot through Overspill" in seen
    assert (code, cursor.read_text() != CURSOR) == (0 if is_written else 130, is_written)


def test_all_wraps_every_client_and_skips_what_cannot_be_read(place: Place, cursor: Path):
    desktop = place.root / "config" / "Claude" / "claude_desktop_config.json"
    desktop.parent.mkdir()
    desktop.write_text("not JSON")
    (place.root / ".codex").mkdir()
    (place.root / ".codex" / "config.toml").write_text('[mcp_servers.a]\ncommand = "x"\n')
    assert "Nothing was written." in place.overspill("wrap", "--all", "--print").out
    assert cursor.read_text() == CURSOR
    result = place.overspill("wrap", "--all", "--command", "overspill")
    assert result.code == 0
    assert "claude_desktop_config.json" in result.err
    assert desktop.read_text() == "not JSON"
    assert "overspill" in cursor.read_text()
    assert "overspill" in (place.root / ".codex" / "config.toml").read_text()


@pytest.mark.parametrize("options", [["--server", "a"], ["--json"], ["cursor", "--all"]])
def test_options_that_do_not_go_together_are_refused(place: Place, cursor: Path, options: list[str]):
    assert place.overspill("wrap", *options).code == 2
    assert cursor.read_text() == CURSOR


def test_a_program_in_a_cache_is_never_written(place: Place, monkeypatch: pytest.MonkeyPatch):
    program = place.root / ".cache" / "uv" / "archive-v0" / "x" / "bin" / "overspill"
    program.parent.mkdir(parents=True)
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    monkeypatch.setattr(sys, "argv", [str(program)])
    monkeypatch.setattr(sys, "executable", str(program.with_name("python")))
    monkeypatch.setenv("PATH", str(program.parent))
    with pytest.raises(BadRequest, match="is in a cache"):
        find_launch({})
    lasting = place.root / "bin" / "overspill"
    lasting.parent.mkdir()
    lasting.write_text("#!/bin/sh\n")
    monkeypatch.setattr(sys, "argv", [str(lasting)])
    assert find_launch({}) == [str(lasting)]


def test_a_client_without_a_file_hints_at_the_projects_file(place: Place):
    next_step = "Add one there first, or name the file that has yours."
    missing = place.root / "config" / "Code" / "User" / "mcp.json" if sys.platform == "linux" else None
    result = place.overspill("wrap", "vscode")
    assert result.code == 2
    if missing:
        assert result.err == f"overspill: error: VS Code has no servers: {missing} does not exist. {next_step}\n"
    Path(".vscode").mkdir()
    Path(".vscode/mcp.json").write_text("{}")
    assert place.overspill("wrap", "vscode").err.endswith(" This folder has its own servers in .vscode/mcp.json.\n")


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["wrap", "cursr"], "cursr does not exist. Did you mean 'cursor'?"),
        (
            ["unwrap", "x.json"],
            "x.json does not exist. The clients you can name are claude-code, claude-desktop, cursor, vscode, windsurf, cline, "
            "codex, gemini-cli, opencode, zed, goose.",
        ),
        (["wrap", "."], ". is not a regular file."),
        (["wrap", "mcp.json", "--server", "b"], "mcp.json has no server 'b'. Its servers: a."),
        (["wrap", "a", "--command="], "--command is empty. Write the command that starts Overspill, e.g. --command overspill."),
        (["wrap", "mcp.json", "--command", "'"], "--command ': No closing quotation."),
        (["wrap", "broken.json"], 'broken.json is not usable JSON, line 1, column 2: a key in "…" is missing.'),
    ],
)  # fmt: skip
def test_a_mistake_is_one_line_and_exit_code_2(place: Place, args: list[str], message: str):
    Path("mcp.json").write_text('{"mcpServers": {"a": {"command": "x"}}}')
    Path("broken.json").write_text("{")
    assert place.overspill(*args) == (2, "", f"overspill: error: {message}\n")


def test_a_write_that_fails_leaves_everything_as_it_was(place: Place):
    text = json.dumps({"mcpServers": {"a": {"command": "x" * 5000}}})
    Path("mcp.json").write_text(text)
    env = {**os.environ, "PYTHONPATH": str(SOURCE)}
    command = [sys.executable, "-c", WITH_SMALL_FILES, "wrap", "mcp.json"]
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == (
        f"overspill: error: {Path('mcp.json').absolute()} cannot be changed: File too large. Nothing was written. "
        "Its folder must be writable, and the disk needs room for a copy.\n"
    )
    assert Path("mcp.json").read_text() == text
    assert os.listdir() == ["mcp.json"]


def test_what_cannot_be_undone_ends_with_code_1(place: Place):
    text = '{"mcpServers": {"all": {"command": "overspill", "args": ["proxy", "--config", "mcp.json"]}}}'
    Path("mcp.json").write_text(text)
    result = place.overspill("unwrap", "mcp.json")
    assert (result.code, result.out) == (
        1,
        "Not changed:\n  all: its original entry is unknown; change it by hand.\nNothing to change in mcp.json.\n",
    )


def test_names_in_a_file_cannot_control_the_terminal(place: Place):
    Path("mcp.json").write_text('{"mcpServers": {"\\u001b[31mred": {"command": "x"}}}')
    assert "\\x1b[31mred" in place.overspill("wrap", "mcp.json").out


FORGED = "files\nNothing was written.\u2028overspill: error"


@pytest.mark.parametrize(
    "command",
    [("wrap", "mcp.json"), ("wrap", "mcp.json", "--print"), ("unwrap", "mcp.json"), ("wrap", "mcp.json", "--server", "x")],
)
def test_names_in_a_file_cannot_add_lines(place: Place, command: tuple[str, ...]):
    server, refused = {"command": "x"}, {FORGED: 1}
    Path("mcp.json").write_text(json.dumps({"mcpServers": {FORGED: server, f"{FORGED}2": refused}, "projects": {}}))
    if command[0] == "unwrap":
        place.overspill("wrap", "mcp.json")
    result = place.overspill(*command)
    assert FORGED.partition("\n")[0] + "\\n" in result.out + result.err
    dry = ["Nothing was written."] if "--print" in command else []
    assert [line for line in (result.out + result.err).splitlines() if line.startswith("Nothing was")] == dry


def test_keys_in_a_file_cannot_add_lines_to_an_error(place: Place):
    for name, text in (("mcp.json", json.dumps({FORGED: 1})), ("mcp.toml", f"{json.dumps(FORGED)} = 1\n" * 2)):
        Path(name).write_text(text)
        result = place.overspill("wrap", name)
        assert (result.code, len(result.err.splitlines())) == (2, 1)
        assert "files\\n" in result.err


def test_the_proxy_names_servers_of_a_file_on_one_line(place: Place):
    Path("mcp.json").write_text(json.dumps({"mcpServers": {FORGED: {"command": "no-such-program"}}}))
    for options in ((), ("--server", "x")):
        result = place.overspill("proxy", "--config", "mcp.json", *options)
        assert len(result.err.splitlines()) == 1
        assert "files\\n" in result.err
