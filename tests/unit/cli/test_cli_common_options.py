"""-q, -v and --color work in every command, except in a hook, which takes whatever its client passes."""

from __future__ import annotations

import json
from pathlib import Path

import click
import pytest
from commands import Place, on_a_terminal

from overspill.cli import COMMANDS, overspill

HIT = "\x1b[1;31mzebra\x1b[0m"


def list_commands() -> list[tuple[str, click.Command]]:
    context = click.Context(overspill)
    found: list[tuple[str, click.Command]] = []
    for name in COMMANDS:
        command = overspill.get_command(context, name)
        assert command is not None
        group = command.commands if isinstance(command, click.Group) else {"": command}
        found += [(f"{name} {each}".strip(), leaf) for each, leaf in group.items()]
    return found


@pytest.mark.parametrize(("name", "command"), list_commands(), ids=[name for name, _ in list_commands()])
def test_every_command_takes_them_once(name: str, command: click.Command):
    spellings = [spelling for param in command.params for spelling in param.opts]
    for option in ("-q", "--quiet", "-v", "--verbose", "--color"):
        assert spellings.count(option) == (0 if name == "hook" else 1)


def test_quiet_keeps_errors_and_drops_everything_else(place: Place):
    Path("a.txt").write_text("one\n")
    assert "No match in a.txt." in place.overspill("extract", "zebra", "a.txt").err
    assert place.overspill("extract", "zebra", "a.txt", "-q") == (1, "", "")
    assert place.overspill("extract", "zebra", "nowhere.txt", "--quiet").err == (
        "overspill: error: nowhere.txt cannot be read: No such file or directory.\n"
    )


def test_verbose_tells_what_is_done(place: Place):
    Path("a.txt").write_text("one zebra\n")
    assert place.overspill("extract", "zebra", "a.txt").err == ""
    assert "overspill: Tool 'extract' extracted from session-" in place.overspill("extract", "zebra", "a.txt", "-v").err
    assert place.overspill("extract", "zebra", "a.txt").err == ""  # only while that command ran


@pytest.mark.parametrize("options", [("-q", "-v"), ("-v", "-q")])
def test_both_at_once_is_a_mistake(place: Place, options: tuple[str, str]):
    result = place.overspill("stats", *options)
    assert result.code == 2
    assert result.err.startswith("overspill: error: Use -q or -v, not both.\n")


def test_another_color_is_a_mistake(place: Place):
    assert "'sometimes' is not one of 'auto', 'always', 'never'" in place.overspill("stats", "--color", "sometimes").err


def test_they_also_stand_before_the_command(place: Place):
    Path("a.txt").write_text("one zebra\n")
    assert place.overspill("-q", "extract", "lion", "a.txt") == (1, "", "")
    assert "overspill: Tool 'extract' extracted from session-" in place.overspill("-v", "extract", "zebra", "a.txt").err
    assert HIT in place.overspill("--color", "always", "extract", "zebra", "a.txt").out
    assert HIT not in place.overspill("--color", "always", "extract", "zebra", "a.txt", "--color", "auto").out
    assert place.overspill("-q", "extract", "zebra", "a.txt", "-v").err.startswith("overspill: error: Use -q or -v, not both.\n")
    assert HIT not in place.overspill("extract", "zebra", "a.txt").out  # only that command


@pytest.mark.parametrize(
    ("variables", "options", "is_colored"),
    [
        ({}, (), False),
        ({"FORCE_COLOR": "1"}, (), True),
        ({"FORCE_COLOR": "0"}, (), False),
        ({"FORCE_COLOR": "1", "NO_COLOR": "1"}, (), False),
        ({"NO_COLOR": "1"}, ("--color", "always"), True),
        ({"FORCE_COLOR": "1"}, ("--color", "never"), False),
    ],
)
def test_variables_turn_colors_on_and_off(
    place: Place, monkeypatch: pytest.MonkeyPatch, variables: dict[str, str], options: tuple[str, ...], is_colored: bool
):
    Path("a.txt").write_text("one zebra\n")
    for name in ("NO_COLOR", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    found = place.overspill("extract", "zebra", "a.txt", *options)
    assert (HIT in found.out) == is_colored
    failed = place.overspill("extract", "zebra", "nowhere.txt", *options)
    assert failed.err.startswith("overspill: \x1b[31m\x1b[1merror:\x1b[0m nowhere" if is_colored else "overspill: error: nowhere")


def test_json_has_no_colors_in_a_pipe(place: Place, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert "\x1b" not in place.overspill("stats", "--json").out


def test_json_has_colors_on_a_terminal(place: Place, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv("NO_COLOR", raising=False)
    place.keep(a='x "quoted": \x1b[31m\n')
    _, shown = on_a_terminal("stats", "--json")
    assert '\x1b[34;1m"kept"\x1b[0m: 1' in shown
    _, plain = on_a_terminal("stats", "--json", "--color", "never")
    assert "\x1b" not in plain
    assert shown.replace("\x1b[34;1m", "").replace("\x1b[32m", "").replace("\x1b[2m", "").replace("\x1b[0m", "") == plain


def test_json_on_a_terminal_has_nothing_that_controls_it(place: Place):
    text = "a\x9b31m \u202e \U000e0041 é 日 \x07\n"
    (kept,) = place.keep(a=text)
    _, shown = on_a_terminal("artifacts", "show", kept.artifact_id, "--json", "--color", "never")
    assert all(char.isprintable() or char in "\r\n" for char in shown)
    assert json.loads(shown)["text"] == text
