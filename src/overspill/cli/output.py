"""What commands share: their name, standard input, JSON and times."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, BinaryIO

import click

from overspill.cli.stderr import inform
from overspill.cli.terminal import on_terminal
from overspill.text.lenient_json import dumps


def program() -> str:
    """What you type to call this program again. In a clone it is seldom on the PATH."""
    called, on_path = Path(sys.argv[0]), shutil.which("overspill")
    needs_path = called.name == "overspill" and os.path.isfile(called) and not (on_path and called.samefile(on_path))
    return shlex.quote(str(called)) if needs_path else "overspill"


def standard_input(action: str) -> BinaryIO:
    if sys.stdin is None:  # pyright: ignore[reportUnnecessaryComparison]  # None when the parent process closed it
        raise click.UsageError("Standard input is closed.")
    if sys.stdin.isatty():
        inform(f"{action} from the terminal; end with Ctrl-D.")
    return sys.stdin.buffer


json_lines_option = click.option("--jsonl", "as_lines", is_flag=True, help="Print JSON, one object on each line.")


def print_json(value: Any) -> None:
    """On one line, except on a terminal. As bytes, because JSON is UTF-8 in every locale."""
    click.echo(dumps(value, indent=2) if on_terminal() else dumps(value))


def print_lines(values: Iterable[Any]) -> None:
    """Each as JSON on a line."""
    for value in values:
        click.echo(dumps(value))


def format_time(milliseconds: int) -> str:
    return _to_datetime(milliseconds).astimezone().strftime("%Y-%m-%d %H:%M:%S")


def format_iso(milliseconds: int) -> str:
    return _to_datetime(milliseconds).isoformat(timespec="milliseconds")


def _to_datetime(milliseconds: int) -> datetime:
    """A damaged journal may contain any number. One that is not a valid time becomes 1970."""
    try:
        return datetime.fromtimestamp(milliseconds / 1000, UTC)
    except (OverflowError, ValueError, OSError):
        return datetime.fromtimestamp(0, UTC)
