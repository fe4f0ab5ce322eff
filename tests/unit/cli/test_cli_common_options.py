"""-q, -v and --color work in every command, except in a hook, which takes whatever its client passes."""

from __future__ import annotations

from pathlib import Path

import click
import pytest
from commands import Place

from overspill.cli import COMMANDS, overspill


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


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Place:
    return Place(tmp_path, monkeypatch, capsys)


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
