"""A command can be loaded while another thread is loading it, as when two fronts reach a hub that has just started."""

from __future__ import annotations

import sys
from concurrent.futures import ThreadPoolExecutor, wait
from pathlib import Path
from threading import Event

import click
import pytest

from overspill.cli import program

SLOW = """
import sys
import click

began, may_end = sys.slow_import
began.set()
may_end.wait(30)
command = click.Command("slow")
"""


def test_a_command_that_another_thread_is_importing_is_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "slow_command.py").write_text(SLOW)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setitem(program.COMMANDS, "slow", ("slow_command:command", ""))
    began, may_end = Event(), Event()
    monkeypatch.setattr(sys, "slow_import", (began, may_end), raising=False)
    commands = program.Commands()
    with ThreadPoolExecutor(2) as pool, click.Context(commands) as context:
        first = pool.submit(commands.get_command, context, "slow")
        assert began.wait(30)
        second = pool.submit(commands.get_command, context, "slow")
        wait([second], 0.2)  # it would fail by now
        may_end.set()
        assert first.result(30) is second.result(30) is not None
