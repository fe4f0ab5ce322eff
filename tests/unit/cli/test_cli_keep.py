"""`overspill keep`: a command runs as it would without it, and what it prints is small or stored."""

from __future__ import annotations

import json
import os
import re
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from commands import bare_environment, on_a_terminal
from forked import Forked
from forked import run as run_forked
from upstream import is_alive
from waiting import until, wait_until

LOG = "".join(f"INFO step {i} done\n" for i in range(3000)) + "ERROR step 3000 failed: no space left on device\n"
PRINT_LOG = "for i in range(3000): print('INFO step', i, 'done')\nprint('ERROR step 3000 failed: no space left on device')"


class Shell:
    """Real processes with a home of their own."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.env = {**bare_environment(root), "TMPDIR": str(root)}

    def start(self, *args: str, **options: Any) -> subprocess.Popen[bytes]:
        options = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "env": self.env, "cwd": self.root} | options
        return Forked(args, **options)

    def run(self, *args: str, stdin: bytes | None = None) -> subprocess.CompletedProcess[bytes]:
        given: dict[str, Any] = {"stdin": subprocess.DEVNULL} if stdin is None else {"input": stdin}
        return run_forked(args, env=self.env, cwd=self.root, capture_output=True, **given)

    def keep(self, *args: str, stdin: bytes | None = None) -> subprocess.CompletedProcess[bytes]:
        return self.run("keep", *args, stdin=stdin)

    def get(self, name: str, *args: str) -> str:
        ended = self.run("get", name, *args)
        assert ended.returncode == 0, ended.stderr
        return ended.stdout.decode()

    def exported(self, name: str) -> bytes:
        return self.run("artifacts", "export", name, "-").stdout

    def leave(self, *args: str) -> str:
        """Keep a command that goes to the background, and return its id."""
        ended = self.keep("--background-after", "0.2", "--", *args)
        assert ended.returncode == 0, ended.stderr
        return find_id(ended.stdout)


def find_id(shown: bytes) -> str:
    found = re.search(rb"(out_[0-9a-z]{6,12}|art_[0-9]+_[0-9a-f]{19})", shown)
    assert found is not None, shown
    return found[1].decode()


@pytest.fixture
def shell(tmp_path: Path) -> Iterator[Shell]:
    return Shell(tmp_path)


@pytest.mark.promise("small-things-untouched")
@pytest.mark.parametrize(
    "printed",
    [
        pytest.param(b"no line end", marks=pytest.mark.slow),
        pytest.param(b"", marks=pytest.mark.slow),
        "a\r\nh\u00e9\tc\n\n".encode(),
    ],
)
def test_small_output_is_printed_byte_for_byte(shell: Shell, printed: bytes):
    ended = shell.keep("--", sys.executable, "-c", f"import sys; sys.stdout.buffer.write({printed!r})")
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, printed, b"")
    piped = shell.keep(stdin=printed)
    assert (piped.returncode, piped.stdout, piped.stderr) == (0, printed, b"")


@pytest.mark.slow
def test_small_output_leaves_nothing_behind(shell: Shell):
    shell.keep("--", "echo", "hi")
    assert not list(shell.root.rglob("journal.jsonl"))


@pytest.mark.promise("nothing-lost")
def test_large_output_is_stored_whole_and_answered_with_what_was_asked_for(shell: Shell):
    ended = shell.keep("--for", "which step failed", "--", sys.executable, "-c", PRINT_LOG)
    assert ended.returncode == 0
    assert len(ended.stdout) < 12_288
    assert b"ERROR step 3000 failed: no space left on device" in ended.stdout
    name = find_id(ended.stdout)
    assert f"overspill get {name}".encode() in ended.stdout
    assert shell.run("artifacts", "show", name).stdout == LOG.encode()


def test_a_pipe_is_kept_as_a_command_is(shell: Shell):
    ended = shell.keep("--for", "which step failed", stdin=LOG.encode())
    assert b"ERROR step 3000 failed" in ended.stdout
    assert shell.run("artifacts", "show", find_id(ended.stdout)).stdout == LOG.encode()


@pytest.mark.slow
def test_a_file_as_standard_input_is_kept(shell: Shell):
    (shell.root / "log").write_text(LOG)
    with (shell.root / "log").open("rb") as file:
        process = shell.start("keep", stdin=file)
        out, _ = process.communicate(timeout=60)
    assert shell.run("artifacts", "show", find_id(out)).stdout == LOG.encode()


@pytest.mark.slow
def test_the_card_names_the_command_that_reads_on(shell: Shell):
    out = shell.keep(stdin=LOG.encode()).stdout.decode()
    (command,) = re.findall(r"^Next: (overspill get .*?)(?:, or with .*)?$", out, re.MULTILINE)
    assert "get_tool_output" not in out
    assert shell.run(*shlex.split(command)[1:]).returncode in (0, 1)


@pytest.mark.slow
def test_names_that_the_output_chose_are_quoted_for_the_shell(shell: Shell):
    rows = [{"$(touch owned)": number, "x": "y" * 20} for number in range(1000)]
    out = shell.keep(stdin=json.dumps({"a;touch owned;`id`": rows}).encode()).stdout.decode()
    for command in re.findall(r"overspill get .*", out):
        plain = re.sub(r"'[^']*'", "", command)
        assert not set(plain) & set("$;`|&<>")


@pytest.mark.parametrize("code", [1, pytest.param(255, marks=pytest.mark.slow)])
def test_the_exit_code_is_the_commands(shell: Shell, code: int):
    assert shell.keep("--", "sh", "-c", f"exit {code}").returncode == code


@pytest.mark.slow
def test_options_of_the_command_are_not_ours(shell: Shell):
    assert shell.keep("printf", "%s", "--help").stdout == b"--help"


def test_standard_error_is_the_commands(shell: Shell):
    ended = shell.keep("--", "sh", "-c", "echo out; echo err >&2")
    assert (ended.stdout, ended.stderr) == (b"out\n", b"err\n")


@pytest.mark.slow
def test_standard_input_is_the_commands(shell: Shell):
    assert shell.keep("--", "cat", stdin=b"from us").stdout == b"from us"


def test_a_signal_that_ends_the_command_ends_keep(shell: Shell):
    ended = shell.keep("--", "sh", "-c", "echo before; kill -KILL $$")
    assert (ended.returncode, ended.stdout) == (-signal.SIGKILL, b"before\n")


@pytest.mark.parametrize(
    "number", [signal.SIGTERM, *(pytest.param(number, marks=pytest.mark.slow) for number in (signal.SIGHUP, signal.SIGINT))]
)
def test_a_signal_that_reaches_keep_reaches_the_command_which_may_handle_it(shell: Shell, number: signal.Signals):
    handling = "trap 'echo handled; exit 5' TERM HUP INT; echo ready >&2; while :; do sleep 0.05; done"
    process = shell.start("keep", "--", "sh", "-c", handling, start_new_session=True)
    assert process.stderr is not None
    assert process.stderr.readline() == b"ready\n"
    process.send_signal(number)
    out, _ = process.communicate(timeout=60)
    assert (process.returncode, out) == (5, b"handled\n")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("command", "code", "words"),
    [
        (["nosuch-command"], 127, "nosuch-command: command not found."),
        pytest.param(["/"], 126, "/ could not be started: Permission denied.", marks=pytest.mark.slow),
    ],
)
def test_a_command_that_cannot_start_ends_as_in_a_shell(shell: Shell, command: list[str], code: int, words: str):
    for options in ([], ["--background-after", "5"]):
        ended = shell.keep(*options, "--", *command)
        assert (ended.returncode, ended.stdout, ended.stderr.decode()) == (code, b"", f"overspill: error: {words}\n")


def without_store(shell: Shell) -> list[str]:
    (shell.root / "file").write_text("")
    return ["--set", f"storeDir={shell.root / 'file'}"]


@pytest.mark.promise("nothing-lost")
@pytest.mark.parametrize("options", [[], pytest.param(["--background-after", "0"], marks=pytest.mark.slow)])
def test_if_nothing_can_be_stored_the_command_runs_and_all_of_its_output_passes(shell: Shell, options: list[str]):
    script = "import os; os.write(1, b'\\xff\\x00' + b'x' * 300_000); os.write(2, b'problem\\n'); os._exit(3)"
    ended = shell.keep(*without_store(shell), *options, "--", sys.executable, "-c", script)
    assert (ended.returncode, ended.stdout) == (3, b"\xff\x00" + b"x" * 300_000)
    ours, theirs = ended.stderr.decode().splitlines()
    assert ours.startswith(
        "overspill: warning: Nothing can be stored, so all of the output follows. Could not open a session in "
    )
    assert theirs == "problem"


def test_if_nothing_can_be_stored_standard_input_passes(shell: Shell):
    ended = shell.keep(*without_store(shell), stdin=LOG.encode())
    assert (ended.returncode, ended.stdout) == (0, LOG.encode())
    assert b"Nothing can be stored" in ended.stderr


def test_if_nothing_can_be_stored_a_command_still_ends_as_in_a_shell(shell: Shell):
    options = without_store(shell)
    assert shell.keep(*options, "--", "no-such-command").returncode == 127
    assert shell.keep(*options, "--", "sh", "-c", "kill -TERM $$").returncode == -signal.SIGTERM


def test_if_nothing_can_be_stored_output_passes_as_it_comes_until_nobody_reads(shell: Shell):
    process = shell.start("keep", *without_store(shell), "--", "yes")
    assert process.stdout is not None
    assert process.stdout.readline() == b"y\n"
    process.stdout.close()
    process.communicate(timeout=60)
    assert process.returncode == 128 + signal.SIGPIPE


@pytest.mark.slow
def test_a_terminal_gets_no_control_characters_if_nothing_can_be_stored(shell: Shell, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("HOME", str(shell.root))
    script = "import os; os.write(1, b'a\\033[31m\\xc3'); os.write(1, b'\\xa9\\n')"
    code, seen = on_a_terminal("keep", *without_store(shell), "--", sys.executable, "-c", script)
    assert code == 0
    assert "\x1b[31m" not in seen
    assert "[31mé" in seen


@pytest.mark.parametrize("options", [[], pytest.param(["--background-after", "60"], marks=pytest.mark.slow)])
def test_a_reader_that_is_gone_ends_keep_as_it_ends_any_command(shell: Shell, options: list[str]):
    reading, writing = os.pipe()
    os.close(reading)
    process = shell.start("keep", *options, "--", "echo", "hello", stdout=writing)
    os.close(writing)
    _, err = process.communicate(timeout=60)
    assert (process.returncode, err) == (128 + signal.SIGPIPE, b"")


@pytest.mark.parametrize(
    "options", [[], *(pytest.param(["--background-after", when], marks=pytest.mark.slow) for when in ("60", "0"))]
)
def test_an_answer_that_cannot_be_written_is_one_line(shell: Shell, options: list[str]):
    with Path("/dev/full").open("wb") as full:
        process = shell.start("keep", *options, "--", "echo", "hello", stdout=full)
        _, err = process.communicate(timeout=60)
    assert (process.returncode, err) == (2, b"overspill: error: Reading or writing failed: No space left on device.\n")


def test_background_needs_a_command(shell: Shell):
    ended = shell.keep("--background-after", "1", stdin=b"")
    assert ended.returncode == 2
    assert b"--background-after needs a command" in ended.stderr


@pytest.mark.slow
def test_a_terminal_gets_no_control_characters(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    code, seen = on_a_terminal("keep", "--", "printf", "a\\033[31mb")
    assert code == 0
    assert "\x1b[31m" not in seen


@pytest.mark.slow
def test_a_quick_command_never_reaches_the_background(shell: Shell):
    ended = shell.keep("--background-after", "60", "--", "sh", "-c", "echo out; echo err >&2; exit 4")
    assert (ended.returncode, ended.stdout, ended.stderr) == (4, b"out\n", b"err\n")


@pytest.mark.slow
@pytest.mark.promise("no-turn-blocked")
def test_a_slow_command_keeps_running_and_its_output_can_be_read_meanwhile(shell: Shell):
    go = shell.root / "go"
    os.mkfifo(go)
    id = shell.leave("sh", "-c", f"echo one; echo problem >&2; read _ < {go}; echo two; echo late >&2; exit 3")
    running = shell.get(id)
    assert "one\n" in running
    assert "[Still running, for " in running
    go.write_text("\n")
    ended = shell.get(id, "--wait", "60")
    assert "one\ntwo\nlate\n" in ended
    assert "[The command ended with exit code 3.]" in ended
    assert "Still running" not in ended


@pytest.mark.slow
async def test_nobody_waits_for_streams_of_a_command_in_the_background(shell: Shell):
    """`communicate` returns when every process that has the pipes has closed them."""
    go = shell.root / "go"
    os.mkfifo(go)
    id = shell.leave("sh", "-c", f"read _ < {go}")
    assert "It has printed nothing so far." in shell.get(id)
    go.write_text("\n")
    await until(lambda: b"exit code 0" in shell.run("get", id, "--wait", "60").stdout)


@pytest.mark.slow
async def test_a_killed_keeper_leaves_what_was_stored(shell: Shell):
    go = shell.root / "go"
    os.mkfifo(go)
    id = shell.leave("sh", "-c", f"echo one; echo $PPID; read _ < {go}")
    keeper = int(shell.get(id).splitlines()[1])
    os.kill(keeper, signal.SIGKILL)
    await until(lambda: b"Interrupted" in shell.run("get", id).stdout)
    assert shell.get(id).startswith("one\n")


@pytest.mark.slow
def test_a_signal_before_the_background_ends_the_command(shell: Shell):
    process = shell.start("keep", "--background-after", "60", "--", "sh", "-c", "echo ready >&2; exec sleep 100")
    assert process.stderr is not None
    assert process.stderr.readline() == b"ready\n"
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=60)
    assert process.returncode == -signal.SIGTERM


FAMILY = "sh -c 'trap \"\" TERM; echo $$; exec sleep 100' & sleep 100 & echo $!; wait"
"""Prints the ids of two processes that it started. Only one of them heeds SIGTERM."""
MODES = [[], ["--background-after", "60"]]


def start_family(shell: Shell, *options: str, **how: Any) -> tuple[subprocess.Popen[bytes], list[int]]:
    """With their standard output on standard error, so that they can be read while they run."""
    process = shell.start("keep", *options, "--", "sh", "-c", f"({FAMILY}) >&2", **({"stdin": subprocess.DEVNULL} | how))
    assert process.stderr is not None
    return process, sorted(int(process.stderr.readline()) for _ in range(2))


@pytest.mark.parametrize("options", MODES)
def test_sigterm_reaches_every_process_of_the_command(shell: Shell, options: list[str]):
    process = shell.start("keep", *options, "--", "sh", "-c", "sleep 100 & echo $! >&2; wait", stdin=subprocess.DEVNULL)
    assert process.stderr is not None
    child = int(process.stderr.readline())
    process.terminate()
    process.communicate(timeout=60)
    assert process.returncode == -signal.SIGTERM
    wait_until(lambda: not is_alive(child))


@pytest.mark.parametrize("options", MODES)
def test_killing_keep_leaves_nothing_of_the_command_running(shell: Shell, options: list[str]):
    process, family = start_family(shell, *options)
    assert all(map(is_alive, family))
    process.kill()
    process.wait(60)
    wait_until(lambda: not any(map(is_alive, family)))
    process.communicate(timeout=60)


KILLED_EARLY = """
import os, signal, subprocess
from overspill.cli import main

class Started(subprocess.Popen):
    def __init__(self, command, **options):
        super().__init__(command, **options)
        if command[0] == "sleep":
            os.write(1, b"%d" % self.pid)
            os.kill(os.getpid(), signal.SIGKILL)

subprocess.Popen = Started
main()
"""


def test_killing_keep_in_the_moment_that_it_starts_the_command_leaves_nothing_of_it_running(shell: Shell):
    line = [sys.executable, "-c", KILLED_EARLY, "keep", "--", "sleep", "100"]
    ended = subprocess.run(
        line, env=shell.env, cwd=shell.root, stdin=subprocess.DEVNULL, capture_output=True, timeout=60, check=False
    )
    assert ended.returncode == -signal.SIGKILL
    wait_until(lambda: not is_alive(int(ended.stdout)))


def test_killing_keep_on_a_terminal_leaves_nothing_of_the_command_running(shell: Shell):
    controller, terminal = os.openpty()
    with open(controller, "rb"), open(terminal, "rb") as mine:
        process, family = start_family(shell, stdin=mine, start_new_session=True)
        process.kill()
        process.wait(60)
        wait_until(lambda: not any(map(is_alive, family)))
        process.communicate(timeout=60)


@pytest.mark.promise("nothing-lost")
@pytest.mark.parametrize("lines", [3, 20_000])
@pytest.mark.parametrize("options", [*MODES, ["--set", "storeDir=/dev/null/none"]])
def test_keep_ends_with_the_command_and_not_with_what_the_command_left_running(shell: Shell, lines: int, options: list[str]):
    command = f"sleep 100 2>/dev/null & echo $! > left; seq {lines}; printf end; exit 3"
    ended = shell.keep(*options, "--", "sh", "-c", command)
    left = int((shell.root / "left").read_text())
    assert is_alive(left)
    os.kill(left, signal.SIGKILL)
    assert ended.returncode == 3
    whole = "".join(f"{number}\n" for number in range(1, lines + 1)) + "end"
    is_stored = lines > 3 and "--set" not in options
    assert (shell.exported(find_id(ended.stdout)) if is_stored else ended.stdout) == whole.encode()


def test_a_process_that_the_command_left_and_that_never_stops_printing_does_not_keep_keep(shell: Shell):
    ended = shell.keep("--", "sh", "-c", "yes left 2>/dev/null & echo $! > left; sleep 0.1; exit 4")
    assert ended.returncode == 4
    wait_until(lambda: not is_alive(int((shell.root / "left").read_text())))  # nobody reads what it prints


@pytest.mark.slow
def test_twenty_at_once_store_twenty_outputs(shell: Shell):
    running = [shell.start("keep", stdin=subprocess.PIPE) for _ in range(20)]
    names = set[str]()
    for number, process in enumerate(running):
        out, _ = process.communicate(f"{number}\n".encode() * 10_000, timeout=60)
        assert process.returncode == 0
        names.add(name := find_id(out))
        assert shell.get(name, "--lines", "10000-10000") == f"{number}\n"
    assert len(names) == 20
