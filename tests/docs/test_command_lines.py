"""Every command line the documentation shows is one that the program takes."""

from __future__ import annotations

import re
import shlex
from contextlib import suppress
from pathlib import Path

import click
import pytest

from overspill.cli import overspill

ROOT = Path(__file__).parents[2]
PAGES = sorted([ROOT / "README.md", *(ROOT / "docs").rglob("*.md")])

_SHELL = re.compile(r"^```sh\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def command_lines(page: Path) -> list[list[str]]:
    """The arguments of each call of `overspill` or `scripts/overspill`, also behind a pipe."""
    found: list[list[str]] = []
    for block in _SHELL.findall(page.read_text(encoding="utf-8")):
        for line in block.replace("\\\n", " ").splitlines():
            lexer = shlex.shlex(line, posix=True, punctuation_chars="|<>;&")
            lexer.whitespace_split = True
            words = list(lexer)
            for start, word in enumerate(words):
                begins = start == 0 or set(words[start - 1]) <= set("|<>;&")
                if begins and word in ("overspill", "scripts/overspill"):
                    rest = words[start + 1 :]
                    end = next((place for place, each in enumerate(rest) if set(each) <= set("|<>;&")), len(rest))
                    found.append(rest[:end])
    return found


def parse(args: list[str]) -> None:
    """A click error where the command line is wrong; nothing runs."""
    command: click.Command = overspill
    context = click.Context(command, info_name="overspill", **command.context_settings)
    while isinstance(command, click.Group) and args and not args[0].startswith("-"):
        _, found, args = command.resolve_command(context, args)
        assert found is not None
        command = found
        context = click.Context(command, parent=context, info_name=command.name)
    with suppress(click.exceptions.Exit):  # by which --help ends
        command.make_context(command.name, list(args), parent=context.parent)


LINES = [(page.name, args) for page in PAGES for args in command_lines(page)]


@pytest.mark.parametrize(("page", "args"), LINES, ids=[f"{page}: {' '.join(args)}"[:80] for page, args in LINES])
def test_a_command_line_of_the_documentation_is_understood(page: str, args: list[str]) -> None:
    parse(args)


def test_a_wrong_command_line_would_be_noticed() -> None:
    with pytest.raises(click.UsageError):
        parse(["artifacts", "show"])
    with pytest.raises(click.UsageError):
        parse(["extract", "x", "--colour"])


def test_the_readme_shows_the_command_line() -> None:
    assert command_lines(ROOT / "README.md")
