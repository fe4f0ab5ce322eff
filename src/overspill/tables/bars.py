"""Rows with bars between cells: Markdown, the boxes of MySQL, `psql`."""

from __future__ import annotations

import re

from overspill.tables.table import RowFormat

_BAR = re.compile(r"(?<!\\)\|")


class Barred(RowFormat, frozen=True):
    def split(self, row: str) -> list[str]:
        return split_at_bars(row)


def split_at_bars(row: str) -> list[str]:
    cells = _BAR.split(row.strip().removeprefix("|"))
    if len(cells) > 1 and not cells[-1].strip() and row.rstrip().endswith("|"):
        cells.pop()
    return [cell.strip().replace("\\|", "|") for cell in cells]
