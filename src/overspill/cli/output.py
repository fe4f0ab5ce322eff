"""What commands share: which stores they look at, and how they print tables, facts and JSON."""

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

from overspill.cli.settings import lasting_store, load_settings
from overspill.cli.stderr import inform, warn
from overspill.cli.terminal import console
from overspill.errors import StoreError
from overspill.retrieval.archive import Archive
from overspill.settings import Settings
from overspill.store.files.failures import explain_failures
from overspill.store.files.store import FileStore
from overspill.store.open import open_store
from overspill.store.protocols import Store
from overspill.text.humanize import escape_invisible
from overspill.text.lenient_json import dumps

_UNBOUNDED_WIDTH = 100_000


def archive(preset: str | None, config: Path | None, assignments: Sequence[str]) -> Archive:
    """The configured store, the proxy's, and the folder in this project where the artifacts preset stores outputs."""
    settings = load_settings(preset, config, assignments).settings
    stores = {store.url: store for store in map(open_store, (settings.store_dir, lasting_store()))}
    project = open_store(Settings(preset="artifacts").store_dir)
    if project.url not in stores and _can_open(project):
        stores[project.url] = project
    return Archive(list(stores.values()), warn=warn)


def _can_open(store: Store) -> bool:
    """A store in the working directory that cannot be opened must not hide the other stores."""
    if not isinstance(store, FileStore) or not (store.root.is_symlink() or store.root.exists()):
        return False
    try:
        with explain_failures(f"open {store.root}"), store.place.open():
            return True
    except StoreError as problem:
        warn(f"{problem} Skipping it.")
        return False


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


def print_json(value: Any) -> None:
    click.echo(dumps(value, indent=2))  # bytes, because JSON is UTF-8 in every locale


def print_table(title: str, columns: Sequence[str], rows: Sequence[Sequence[str]], *, numbers: Sequence[str] = ()) -> None:
    """Empty columns are left out. The ID column never wraps, so that you can copy an ID."""
    table = Table(title=title, box=box.SQUARE, title_justify="left")
    shown = [index for index in range(len(columns)) if any(row[index] for row in rows)]
    for column in (columns[index] for index in shown):
        table.add_column(column, justify="right" if column in numbers else "left", overflow="fold", no_wrap=column == "ID")
    for row in rows:
        table.add_row(*(Text(escape_invisible(row[index])) for index in shown))
    _print(table)


def print_facts(title: str, facts: Sequence[tuple[str, str]]) -> None:
    table = Table(title=title, box=box.SQUARE, title_justify="left", show_header=False)
    for name, value in facts:
        table.add_row(name, Text(escape_invisible(value), overflow="fold"))
    _print(table)


def _print(table: Table) -> None:
    terminal = console()
    if Measurement.get(terminal, terminal.options.update(width=_UNBOUNDED_WIDTH), table).maximum > terminal.width:
        table.padding = 0
    terminal.print(table)


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
