"""Every command line that we teach an agent is one that the program takes."""

import shlex

import pytest
from click.testing import CliRunner

from overspill.cli import overspill
from overspill.wording.shell import SKILL

LINES = [line.strip() for line in SKILL.splitlines() if line.startswith("    ")]


@pytest.mark.parametrize("line", LINES)
def test_the_command_parses(line: str):
    words = shlex.split(line.rpartition("| ")[2])
    assert words[0] == "overspill"
    command = overspill.get_command(overspill.make_context("overspill", [], resilient_parsing=True), words[1])
    assert command is not None
    command.make_context(words[1], words[2:])


def test_the_skill_is_printed():
    printed = CliRunner().invoke(overspill, ["skill"])
    assert (printed.exit_code, printed.output) == (0, SKILL)
    assert CliRunner().invoke(overspill, ["skill", "--header"]).output.endswith(f"---\n\n{SKILL}")
