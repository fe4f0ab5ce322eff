"""What commands share: their name, standard input, JSON and times."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, BinaryIO, TypeVar

import click

from overspill.cli.terminal import has_color, inform, on_terminal
from overspill.text.humanize import to_datetime
from overspill.text.lenient_json import dumps
from overspill.text.regex import Match, regex

Command = TypeVar("Command", bound=Callable[..., Any])
_JSON_TOKEN = regex(rb'("(?:[^"\\]++|\\.?)*+"?)(:?)|\bnull\b')
"""Keys, texts and nulls in JSON that we wrote."""


def program() -> str:
    """Return what you type to call this program again: in a clone, it is seldom on the PATH."""
    called, on_path = Path(sys.argv[0]), shutil.which("overspill")
    needs_path = called.name == "overspill" and os.path.isfile(called) and not (on_path and called.samefile(on_path))
    return shlex.quote(str(called)) if needs_path else "overspill"


def standard_input(asks: str = "") -> BinaryIO:
    if sys.stdin is None:  # pyright: ignore[reportUnnecessaryComparison]  # None when the parent process closed it
        raise click.UsageError("Standard input is closed.")
    if asks:
        ask_to_type(sys.stdin.buffer, asks)
    return sys.stdin.buffer


def ask_to_type(file: BinaryIO, what: str) -> None:
    if file.isatty():
        inform(f"{what} from the terminal; end with Ctrl-D.")


def json_options(meaning: str = "Print JSON.") -> Callable[[Command], Command]:
    """--json and --jsonl, as the parameters `as_json` and `as_lines`, for a command that prints records."""

    def add(command: Command) -> Command:
        lines = click.option("--jsonl", "as_lines", is_flag=True, help="Print JSON, one object on each line.")
        return click.option("--json", "as_json", is_flag=True, help=meaning)(lines(command))

    return add


def print_records(records: Iterable[Any], *, as_lines: bool) -> None:
    """Print them as JSON: a list, or one line for each."""
    if not as_lines:
        print_json(list(records))
        return
    for record in records:
        click.echo(_escape_invisible(dumps(record)) if on_terminal() else dumps(record))


def print_json(value: Any) -> None:
    """On one line, except on a terminal. As bytes, because JSON is UTF-8 in every locale. Colors would break it for programs."""
    if not on_terminal():
        click.echo(dumps(value))
        return
    shown = _escape_invisible(dumps(value, indent=2))
    click.echo(_JSON_TOKEN.sub(_mark_token, shown) if has_color() else shown)


def _escape_invisible(written: bytes) -> bytes:
    """Escape control and format characters in strings of JSON, because they could control a terminal."""
    text = written.decode()
    return "".join(char if char.isprintable() or char == "\n" else json.dumps(char)[1:-1] for char in text).encode()


def _mark_token(found: Match[bytes]) -> bytes:
    return b"\x1b[%sm%s\x1b[0m%s" % (b"34;1" if found[2] else b"32", *found.groups()) if found[1] else b"\x1b[2mnull\x1b[0m"


def format_time(milliseconds: int) -> str:
    return to_datetime(milliseconds).astimezone().strftime("%Y-%m-%d %H:%M:%S")


def format_iso(milliseconds: int) -> str:
    return to_datetime(milliseconds).isoformat(timespec="milliseconds")
