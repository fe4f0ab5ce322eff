"""How commands print tables and facts: framed on a terminal, and for programs with a tab between cells."""

from __future__ import annotations

from collections.abc import Sequence

import click
from rich import box
from rich.table import Table
from rich.text import Text

from overspill.cli import layout
from overspill.cli.consoles import console
from overspill.cli.terminal import on_terminal
from overspill.text.humanize import escape_invisible, escape_line

_MAX_ROWS_OF_RICH = 100  # Rich takes a millisecond for each


def print_table(
    title: str,
    columns: Sequence[str],
    rows: Sequence[Sequence[str]],
    *,
    numbers: Sequence[str] = (),
    id: str = "ID",
    unseen: str = "",
) -> None:
    """On a terminal, the column `unseen` and empty ones are left out. The column `id` never wraps, so that you can copy an ID."""
    if not on_terminal():
        _print_plain([columns, *rows])
        return
    table = Table(title=title, box=box.SQUARE, title_justify="left")
    seen = [index for index, column in enumerate(columns) if column != unseen]
    shown = [index for index in seen if any(row[index] for row in rows) or not rows]
    for column in (columns[index] for index in shown):
        justify = "right" if column in numbers else "left"
        table.add_column(column, justify=justify, overflow="fold", no_wrap=column == id)
    cells = [[escape_invisible(row[index]) for index in shown] for row in rows]
    if len(rows) > _MAX_ROWS_OF_RICH:
        layout.print_long_table(console(), table, cells)
    else:
        layout.print_table(console(), table, cells)


def print_facts(title: str, facts: Sequence[tuple[str, str]]) -> None:
    if not on_terminal():
        _print_plain(facts)
        return
    table = Table(title=title, box=box.SQUARE, title_justify="left", show_header=False)
    for name, value in facts:
        table.add_row(name, Text(escape_invisible(value), overflow="fold"))
    layout.print_table(console(), table, ())


def _print_plain(rows: Sequence[Sequence[str]]) -> None:
    for row in rows:
        click.echo("\t".join(escape_line(cell).replace("\t", "\\t") for cell in row))
