"""The command line as a process, and `overspill config`."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import NamedTuple, TypeAlias

import pytest
from forked import run as run_forked

from overspill.cli import COMMANDS, main

SOURCE = Path(__file__).parents[3] / "src"
RUN = "from overspill.cli import main; main()"
TIMEOUT = 60


class Result(NamedTuple):
    code: int
    out: str
    err: str


Overspill: TypeAlias = Callable[..., Result]


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "config" / "overspill").mkdir(parents=True)
    (tmp_path / "cwd").mkdir()
    monkeypatch.chdir(tmp_path / "cwd")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("HOME", str(tmp_path))
    return tmp_path


@pytest.fixture
def overspill(place: Path, capsys: pytest.CaptureFixture[str]) -> Overspill:
    def run(*args: str) -> Result:
        with pytest.raises(SystemExit) as end:
            main(args)
        return Result(int(str(end.value.code)), *capsys.readouterr())

    return run


def process(*args: str, code: str = RUN, stdout: int = subprocess.PIPE) -> Result:
    if code == RUN:
        done = run_forked(args, stdout=stdout, stderr=subprocess.PIPE, text=True)
        return Result(done.returncode, done.stdout, done.stderr)
    env = {**os.environ, "PYTHONPATH": str(SOURCE)}
    command = [sys.executable, "-c", code, *args]
    done = subprocess.run(command, env=env, stdout=stdout, stderr=subprocess.PIPE, text=True, timeout=TIMEOUT, check=False)
    return Result(done.returncode, done.stdout, done.stderr)


def test_help_lists_the_commands_and_imports_none_of_them(place: Path) -> None:
    names = "{'rich', 'yaml', 'msgspec', 'anyio', 'mcp', 'overspill.settings'}"
    check = f"import sys, atexit; atexit.register(lambda: print({names} & set(sys.modules), file=sys.stderr)); {RUN}"
    result = process("--help", code=check)
    assert "  config     Show the settings in effect and where each comes from.\n" in result.out
    assert (result.code, result.err) == (0, "set()\n")


def test_the_version_is_that_of_the_installed_package(place: Path) -> None:
    assert process("--version") == (0, f"overspill {version('overspill')}\n", "")


def test_an_unknown_command_gets_the_nearest_one(overspill: Overspill) -> None:
    result = overspill("confgi")
    assert result.code == 2
    assert result.err == (
        "overspill: error: No such command 'confgi'. Did you mean 'config'?\n"
        "\n"
        "Usage: overspill [OPTIONS] [COMMAND] [ARGS]...\n"
        "\n"
        "For more information, try 'overspill --help'.\n"
    )
    assert overspill("xyz").err.startswith("overspill: error: No such command 'xyz'.\n")


@pytest.mark.parametrize(
    ("args", "problem"),
    [
        (["artifacts", "lst"], "No such command 'lst'. Did you mean 'list'?"),
        (["snapshot", "shwo"], "No such command 'shwo'. Did you mean 'show'?"),
        (["config", "--presett", "slow"], "No such option '--presett'. Did you mean '--preset'?"),
        (["artifacts", "list", "--jsno"], "No such option '--jsno'. Did you mean '--json'?"),
        (["extract", "--zzz"], "No such option '--zzz'."),
        (["verify", "one", "two"], "Got unexpected extra argument (two)."),
    ],
)
def test_a_mistyped_command_or_option_gets_one_line_and_the_nearest_name(
    overspill: Overspill, args: list[str], problem: str
) -> None:
    result = overspill(*args)
    assert (result.code, result.out) == (2, "")
    assert result.err.startswith(f"overspill: error: {problem}\n\nUsage: overspill {args[0]} ")


def test_help_is_shown_when_nothing_is_asked_for(overspill: Overspill) -> None:
    assert overspill("--help").code == 0
    assert overspill("--help").out == overspill("-h").out == overspill().err


def test_a_word_that_looks_like_an_option_is_not_a_command(overspill: Overspill) -> None:
    result = overspill("--", "-x")
    assert result.code == 2
    assert "-x" in result.err


def test_an_unknown_option_is_an_error(overspill: Overspill) -> None:
    result = overspill("--bogus")
    assert result.code == 2
    assert "--bogus" in result.err


def test_config_shows_each_value_and_where_it_comes_from(place: Path, overspill: Overspill) -> None:
    (place / "config" / "overspill" / "config.yaml").write_text("storeDir: /mine\ntruncation: {overrides: {Ls: {off: true}}}\n")
    (place / "cwd" / ".overspill.yaml").write_text("previewChars: 3\n")
    result = overspill("config", "--preset", "slow", "--set", "toolOutput.maxChunks=2")
    rows = [line.split(maxsplit=2) for line in result.out.splitlines()]
    assert [cell.strip() for cell in rows[0]] == ["Key", "Value", "From"]
    shown = {key: (value, origin.strip()) for key, value, origin in rows[1:]}
    assert shown["preset"] == ('"slow"', "command line")
    assert shown["toolResponseMaxBytes"] == ("null", "preset slow")
    assert shown["previewChars"] == ("3", ".overspill.yaml")
    assert shown["storeDir"] == ('"/mine"', str(place / "config" / "overspill" / "config.yaml"))
    assert shown["toolOutput.maxChunks"] == ("2", "command line")
    assert shown["toolTimeout"] == ("300.0", "default")
    assert shown["truncation.overrides.ls.off"] == ("true", str(place / "config" / "overspill" / "config.yaml"))
    assert (result.code, result.err) == (0, "")


def test_config_prints_json(overspill: Overspill) -> None:
    result = overspill("config", "--json", "--set", "refs.allow=[{from: a, to: b}]")
    rows = json.loads(result.out)
    assert rows["async"] == {"value": True, "from": "default"}
    assert rows["refs.allow"] == {"value": [{"from": "a", "to": "b"}], "from": "command line"}


def test_a_relative_config_home_is_ignored_for_the_one_at_home(
    place: Path, overspill: Overspill, monkeypatch: pytest.MonkeyPatch
) -> None:
    (place / ".config" / "overspill").mkdir(parents=True)
    (place / ".config" / "overspill" / "config.yml").write_text("maxRunning: 5\n")
    monkeypatch.setenv("XDG_CONFIG_HOME", "relative")
    result = overspill("config", "--json")
    assert json.loads(result.out)["maxRunning"]["value"] == 5


def test_a_named_file_is_read_instead(place: Path, overspill: Overspill) -> None:
    (place / "cwd" / ".overspill.yaml").write_text("maxRunning: 3\n")
    (place / "cwd" / "mine.yaml").write_text("storeDir: /mine\n")
    rows = json.loads(overspill("config", "--json", "--config", "mine.yaml").out)
    assert (rows["maxRunning"]["value"], rows["storeDir"]) == (64, {"value": "/mine", "from": "mine.yaml"})


def test_several_assignments_build_one_section(place: Path, overspill: Overspill) -> None:
    (place / "cwd" / "nothing.yaml").touch()
    sets = ["toolOutput={maxChunks: 2}", "toolOutput.enabled=false", "toolOutput.maxChunks=3", "asyncTokenThreshold="]
    args = [part for each in sets for part in ("--set", each)]
    rows = json.loads(overspill("config", "--json", *args).out)
    assert [rows[key]["value"] for key in ("toolOutput.maxChunks", "toolOutput.enabled", "asyncTokenThreshold")] == [
        3,
        False,
        None,
    ]


def test_warnings_go_to_standard_error(overspill: Overspill) -> None:
    result = overspill("config", "--json", "--set", "asyncToolTTL=3600")
    assert (
        result.err == "overspill: warning: asyncToolTTL on the command line has no effect: outputs live as long as the session.\n"
    )
    assert result.code == 0
    assert json.loads(result.out)


@pytest.mark.parametrize(
    ("assignments", "text"),
    [
        (["maxRunning=0"], "maxRunning is 0 on the command line; allowed: a whole number of at least 1."),
        (["maxRunning"], "--set maxRunning has no value. Write --set maxRunning=VALUE."),
        (["maxRunning=[1"], "--set maxRunning is not usable YAML, line 1: expected ',' or ']', but got '<stream end>'."),
        (
            ["toolOutput=3", "toolOutput.maxChunks=2"],
            "--set toolOutput.maxChunks conflicts with another --set, which sets toolOutput to a value. Keep one of them.",
        ),
    ],
)
def test_a_mistake_is_one_line_and_exit_code_2(overspill: Overspill, assignments: list[str], text: str) -> None:
    result = overspill("config", *(part for each in assignments for part in ("--set", each)))
    assert (result.code, result.out, result.err) == (2, "", f"overspill: error: {text}\n")


def test_an_unknown_preset_is_a_usage_error(overspill: Overspill) -> None:
    result = overspill("config", "--preset", "fast")
    assert result.code == 2
    assert "'fast' is not one of" in result.err


def test_a_reader_that_goes_away_causes_no_message(place: Path) -> None:
    read, write = os.pipe()
    os.close(read)
    result = process("config", stdout=write)
    os.close(write)
    assert (result.code, result.err) == (141, "")


def added(place: Path, monkeypatch: pytest.MonkeyPatch, name: str, body: str) -> None:
    """A command of our own in the table, as every other command gets there."""
    (place / f"{name}_command.py").write_text(
        f"import click, signal\ncommand = click.Command({name!r}, callback=lambda: {body})\n"
    )
    monkeypatch.syspath_prepend(place)
    monkeypatch.setitem(COMMANDS, name, (f"{name}_command:command", ""))


def test_an_interrupt_ends_with_130_and_no_traceback(place: Path, overspill: Overspill, monkeypatch: pytest.MonkeyPatch) -> None:
    added(place, monkeypatch, "busy", "signal.raise_signal(signal.SIGINT)")
    assert overspill("busy") == (130, "", "\n")


def test_a_command_may_choose_its_exit_code(place: Path, overspill: Overspill, monkeypatch: pytest.MonkeyPatch) -> None:
    added(place, monkeypatch, "odd", "click.get_current_context().exit(3)")
    assert overspill("odd") == (3, "", "")


def test_a_shell_can_complete_the_names_of_commands(overspill: Overspill, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("_OVERSPILL_COMPLETE", "fish_complete")
    monkeypatch.setenv("COMP_WORDS", "overspill co")
    monkeypatch.setenv("COMP_CWORD", "co")
    assert "config" in overspill().out


@pytest.mark.parametrize(
    ("typed", "offered"),
    [("wrap cur", "cursor"), ("unwrap claude-d", "claude-desktop"), ("doctor go", "goose"), ("help ext", "extract")],
)
def test_a_shell_can_complete_names(overspill: Overspill, monkeypatch: pytest.MonkeyPatch, typed: str, offered: str) -> None:
    monkeypatch.setenv("_OVERSPILL_COMPLETE", "bash_complete")
    monkeypatch.setenv("COMP_WORDS", f"overspill {typed}")
    monkeypatch.setenv("COMP_CWORD", "2")
    assert overspill() == (0, f"plain,{offered}\n", "")


def test_help_shows_what_the_option_shows(overspill: Overspill) -> None:
    assert overspill("help", "artifacts", "list") == overspill("artifacts", "list", "--help")
    assert overspill("help") == overspill("--help")
    unknown = overspill("help", "artifacts", "lst")
    assert (unknown.code, unknown.err.splitlines()[0]) == (2, "overspill: error: No such command 'lst'. Did you mean 'list'?")
    assert overspill("help", "stats", "more").err.startswith("overspill: error: 'overspill stats' has no commands.")
    assert overspill("-V") == overspill("--version")
