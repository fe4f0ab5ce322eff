"""What the commands that look at stored outputs share: which stores, tables, JSON."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, BinaryIO

import click
from rich import box
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

from overspill.cli.config import lasting_store, load_settings
from overspill.cli.messages import say
from overspill.cli.terminal import console
from overspill.errors import StoreError
from overspill.retrieval.archive import Archive
from overspill.settings import Settings
from overspill.store.files.failures import explain_failures
from overspill.store.files.store import FileStore
from overspill.store.open import open_store
from overspill.store.protocols import Store
from overspill.text.humanize import visible
from overspill.text.lenient_json import dumps

_ENDLESS = 100_000


def archive(preset: str | None, config: Path | None, assignments: Sequence[str]) -> Archive:
    """The configured store, the one that lasts, and the folder of this project where the artifacts preset keeps its own."""
    settings = load_settings(preset, config, assignments).settings
    stores = {store.url: store for store in map(open_store, (settings.store_dir, lasting_store()))}
    project = open_store(Settings(preset="artifacts").store_dir)
    if project.url not in stores and _can_open(project):
        stores[project.url] = project
    return Archive(list(stores.values()), warn=say)


def _can_open(store: Store) -> bool:
    """A working directory that somebody else made must not keep you from your other stores."""
    if not isinstance(store, FileStore) or not (store.root.is_symlink() or store.root.exists()):
        return False
    try:
        with explain_failures(f"open {store.root}"), store.place.open():
            return True
    except StoreError as problem:
        say(f"{problem} It is passed over.")
        return False


def program() -> str:
    """What to type to call this program again: in a clone it is seldom on the PATH."""
    called, found = Path(sys.argv[0]), shutil.which("overspill")
    named = called.name == "overspill" and os.path.isfile(called) and not (found and called.samefile(found))
    return shlex.quote(str(called)) if named else "overspill"


def standard_input(reading: str) -> BinaryIO:
    if sys.stdin is None:  # pyright: ignore[reportUnnecessaryComparison]  # closed by whoever started us
        raise click.UsageError("Standard input is closed, so nothing can be read from it.")
    if sys.stdin.isatty():
        click.echo(f"{reading} from the terminal; end with Ctrl-D.", err=True)
    return sys.stdin.buffer


def print_json(value: Any) -> None:
    click.echo(dumps(value, indent=2))  # as bytes: JSON is UTF-8 in every locale


def print_table(title: str, columns: Sequence[str], rows: Sequence[Sequence[str]], *, numbers: Sequence[str] = ()) -> None:
    """A column with nothing in it is left out. Where room is short, others give way to the ID: it is there to be copied."""
    table = Table(title=title, box=box.SQUARE, title_justify="left")
    used = [at for at in range(len(columns)) if any(row[at] for row in rows)]
    for column in (columns[at] for at in used):
        table.add_column(column, justify="right" if column in numbers else "left", overflow="fold", no_wrap=column == "ID")
    for row in rows:
        table.add_row(*(Text(visible(row[at])) for at in used))
    _print(table)


def print_facts(title: str, facts: Sequence[tuple[str, str]]) -> None:
    table = Table(title=title, box=box.SQUARE, title_justify="left", show_header=False)
    for name, value in facts:
        table.add_row(name, Text(visible(value), overflow="fold"))
    _print(table)


def _print(table: Table) -> None:
    shown = console()
    if Measurement.get(shown, shown.options.update(width=_ENDLESS), table).maximum > shown.width:
        table.padding = 0
    shown.print(table)


def when(milliseconds: int) -> str:
    return _moment(milliseconds).astimezone().strftime("%Y-%m-%d %H:%M:%S")


def iso(milliseconds: int) -> str:
    return _moment(milliseconds).isoformat(timespec="milliseconds")


def _moment(milliseconds: int) -> datetime:
    """A journal may say anything; times nobody can have meant are the beginning of time."""
    try:
        return datetime.fromtimestamp(milliseconds / 1000, UTC)
    except (OverflowError, ValueError, OSError):
        return datetime.fromtimestamp(0, UTC)
