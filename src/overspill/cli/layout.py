"""Print tables with Rich, and long ones in exactly its form but much faster."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import zip_longest

from rich.cells import cell_len, set_cell_size
from rich.console import Console
from rich.measure import Measurement
from rich.table import Column, Table
from rich.text import Text

_UNBOUNDED_WIDTH = 100_000
_RULE = re.compile(r"├([─┼]+)┤|\|([-+]+)\|")
"""What Rich draws below the names of the columns, with or without Unicode."""


def print_table(terminal: Console, table: Table, rows: Sequence[Sequence[str]]) -> None:
    for row in rows:
        table.add_row(*map(Text, row))
    if Measurement.get(terminal, terminal.options.update(width=_UNBOUNDED_WIDTH), table).maximum > terminal.width:
        table.padding = 0
    terminal.print(table)


def print_long_table(terminal: Console, table: Table, rows: Sequence[Sequence[str]]) -> None:
    """Rich lays out a table of one row, with the longest cell of each column. All other rows are set into its frame."""
    with terminal.capture() as captured:
        print_table(terminal, table, [[max(cells, key=cell_len) for cells in zip(*rows, strict=True)]])
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
    """The lines of a cell, each as wide as its column."""
    if cell_len(cell) <= width:
        cell = cell.rstrip()
        space = " " * (width - cell_len(cell))
        return [space + cell if column.justify == "right" else cell + space]
    if not width:  # on a terminal that is far too narrow
        return [""]
    folded = Text(cell).wrap(terminal, width, justify=column.justify, overflow=column.overflow, no_wrap=column.no_wrap)
    return [set_cell_size(line.plain, width) for line in folded]
