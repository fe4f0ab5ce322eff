"""What a command says when standard output or standard error cannot be written, whether or not Python buffers them."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from subprocess import DEVNULL, PIPE

import pytest
from commands import Place

FULL = Path("/dev/full")
NO_SPACE = b"overspill: error: Reading or writing failed: No space left on device.\n"
COMMANDS = {
    "an option": ["--version"],
    "help": ["artifacts", "--help"],
    "a table": ["config"],
    "an exit code": ["extract", "three", "words.txt"],
}
BUFFERING = {"buffered": {}, "unbuffered": {"PYTHONUNBUFFERED": "1"}}
EACH = [("buffered", command) for command in COMMANDS] + [("unbuffered", "an exit code")]

needs_full_device = pytest.mark.skipif(not FULL.exists(), reason="needs a device that is always full")


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Place:
    found = Place(tmp_path, monkeypatch, capsys)
    Path("words.txt").write_text("one\ntwo\nthree\n")
    return found


@pytest.fixture
def unread() -> Iterator[int]:
    reading, writing = os.pipe()
    os.close(reading)
    yield writing
    os.close(writing)


def environ(buffering: str) -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"} | BUFFERING[buffering]


@needs_full_device
@pytest.mark.parametrize(("buffering", "command"), EACH)
def test_a_full_disk_under_standard_output_is_reported_in_one_line(place: Place, buffering: str, command: str) -> None:
    with FULL.open("wb") as full:
        done = place.process(*COMMANDS[command], env=environ(buffering), stdout=full, stderr=PIPE)
    assert (done.returncode, done.stderr) == (2, NO_SPACE)


@pytest.mark.parametrize(("buffering", "command"), EACH)
@pytest.mark.slow
def test_a_reader_that_goes_away_ends_a_command_like_the_signal(place: Place, unread: int, buffering: str, command: str) -> None:
    done = place.process(*COMMANDS[command], env=environ(buffering), stdout=unread, stderr=PIPE)
    assert (done.returncode, done.stderr) == (141, b"")


@needs_full_device
@pytest.mark.parametrize("command", [["nonsense"], ["artifacts", "show", "nonsense"]])
def test_an_error_that_cannot_be_printed_keeps_its_exit_code(place: Place, command: list[str]) -> None:
    with FULL.open("wb") as full:
        done = place.process(*command, env=environ("buffered"), stdout=DEVNULL, stderr=full)
    assert done.returncode == 2


@needs_full_device
@pytest.mark.slow
def test_a_report_that_cannot_be_printed_waits_for_no_tool(place: Place) -> None:
    script = [
        {"calls": [{"tool": "hang", "args": {}}, {"tool": "greet", "args": {}}]},
        {"calls": [{"tool": "agent__final_report", "args": {"content": "<ANSWER>"}}]},
    ]
    Path("f.py").write_text("import threading\ndef hang():\n    threading.Event().wait()\ndef greet():\n    return 'hello'\n")
    Path("script.json").write_text(json.dumps(script))
    Path("a.ai").write_text("---\nmodels: scripted/script.json\nasyncTimeoutSecs: 0.05\n---\nYou wait.\n")
    with FULL.open("wb") as full:
        command = ("run", "a.ai", "x", "--function", "f.py:hang", "--function", "f.py:greet", "--snapshot", "s.gz")
        done = place.process(*command, env=environ("buffered"), stdout=full, stderr=PIPE)
    assert (done.returncode, done.stderr.splitlines(keepends=True)[-1]) == (2, NO_SPACE)
    assert Path("s.gz").is_file()


@pytest.mark.parametrize("variables", [{"FORCE_COLOR": "1"}, {"FORCE_COLOR": "1", "TERM": "dumb"}])
@pytest.mark.slow
def test_no_progress_is_drawn_into_a_file(place: Place, variables: dict[str, str]) -> None:
    done = place.process("extract", "three", "words.txt", env=environ("buffered") | variables, capture_output=True)
    assert (done.returncode, done.stderr) == (0, b"")
