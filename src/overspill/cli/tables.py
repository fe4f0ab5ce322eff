"""How commands print tables and facts: framed on a terminal by Rich, and for programs with a tab between cells."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import zip_longest
from typing import NoReturn

import click
from rich import box
from rich.cells import cell_len, set_cell_size
from rich.console import Console
from rich.measure import Measurement
from rich.table import Column, Table
from rich.text import Text

from overspill.cli.terminal import has_color, on_terminal, watched_on_terminal
from overspill.text.humanize import escape_invisible, escape_line
from overspill.text.regex import regex

_MAX_ROWS_OF_RICH = 100  # Rich takes a millisecond for each row
_RULE = regex(r"├([─┼]+)┤|\|([-+]+)\|")
"""The line that Rich draws below the column names, with or without Unicode."""


class _Console(Console):
    def on_broken_pipe(self) -> NoReturn:
        """Rich would exit with 1. Raise instead, so that every command ends the same way."""
        raise BrokenPipeError


def console() -> Console:
    return _Console(width=None if on_terminal() else 200, color_system="auto" if has_color() else None)


def progress_console() -> Console:
    """For live displays on standard error. `is_interactive` asks for a real terminal, which FORCE_COLOR does not make."""
    return Console(stderr=True, force_terminal=watched_on_terminal())


def print_table(
    title: str,
    columns: Sequence[str],
    rows: Sequence[Sequence[str]],
    *,
    numbers: Sequence[str] = (),
    id: str = "ID",
    unseen: str = "",
) -> None:
    """On a terminal, leave out the column `unseen` and empty columns. The column `id` never wraps, so an ID is easy to copy."""
    if not on_terminal():
        _print_plain([columns, *rows])
        return
    table = Table(title=title, box=box.SQUARE, title_justify="left")
    shown = [index for index, column in enumerate(columns) if column != unseen and (any(row[index] for row in rows) or not rows)]
    for column in (columns[index] for index in shown):
        justify = "right" if column in numbers else "left"
        table.add_column(column, justify=justify, overflow="fold", no_wrap=column == id)
    cells = [[escape_invisible(row[index]) for index in shown] for row in rows]
    (lay_out if len(rows) <= _MAX_ROWS_OF_RICH else lay_out_long)(console(), table, cells)


def print_facts(title: str, facts: Sequence[tuple[str, str]]) -> None:
    if not on_terminal():
        _print_plain(facts)
        return
    table = Table(title=title, box=box.SQUARE, title_justify="left", show_header=False)
    for name, value in facts:
        table.add_row(name, Text(escape_invisible(value), overflow="fold"))
    lay_out(console(), table, ())


def _print_plain(rows: Sequence[Sequence[str]]) -> None:
    for row in rows:
        click.echo("\t".join(escape_line(cell).replace("\t", "\\t") for cell in row))


def lay_out(terminal: Console, table: Table, rows: Sequence[Sequence[str]]) -> None:
    for row in rows:
        table.add_row(*map(Text, row))
    if Measurement.get(terminal, terminal.options.update(width=100_000), table).maximum > terminal.width:
        table.padding = 0
    terminal.print(table)


def lay_out_long(terminal: Console, table: Table, rows: Sequence[Sequence[str]]) -> None:
    """Print a long table as Rich would, but much faster: Rich lays out one row of the longest cells, and we copy its frame."""
    with terminal.capture() as captured:
        lay_out(terminal, table, [[max(cells, key=cell_len) for cells in zip(*rows, strict=True)]])
    lines = captured.get().splitlines()
    number, rule = next((number, found) for number, line in enumerate(lines) if (found := _RULE.fullmatch(line)))
    edge = "│" if rule[1] else "|"
    _, padding, _, _ = table.padding
    widths = [len(dashes) - 2 * padding for dashes in re.split("[┼+]", rule[1] or rule[2])]
    gap = " " * padding
    write = terminal.file.write
    write("\n".join(lines[: number + 1]) + "\n")
    for row in rows:
        folded = [_fold(terminal, *each) for each in zip(row, table.columns, widths, strict=True)]
        for parts in zip_longest(*folded):
            cells = (part or " " * width for part, width in zip(parts, widths, strict=True))
            write(f"{edge}{gap}{f'{gap}{edge}{gap}'.join(cells)}{gap}{edge}\n")
    write(lines[-1] + "\n")


def _fold(terminal: Console, cell: str, column: Column, width: int) -> list[str]:
    """Split a cell into lines that are as wide as its column."""
    if cell_len(cell) <= width:
        cell = cell.rstrip()
        space = " " * (width - cell_len(cell))
        return [space + cell if column.justify == "right" else cell + space]
    if not width:  # on a terminal that is far too narrow
        return [""]
    folded = Text(cell).wrap(terminal, width, justify=column.justify, overflow=column.overflow, no_wrap=column.no_wrap)
    return [set_cell_size(line.plain, width) for line in folded]
