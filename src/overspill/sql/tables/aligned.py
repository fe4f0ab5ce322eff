"""Tables that lines show: columns aligned with spaces, rows with bars, `ls -l` and access logs."""

from __future__ import annotations

from collections.abc import Callable
from itertools import islice
from mmap import mmap
from pathlib import Path

from overspill.sql.tables.table import EXTRA, MAX_TABLES, Found, RowWriter, describe_total, join_notes
from overspill.tables.lines import find_tables, is_sure
from overspill.tables.table import FoundTable


def find_shown(text: mmap | bytes, work: Callable[[], Path], *, is_text: bool = False) -> list[Found]:
    """Of a text that is mostly something else, only what is surely a table."""
    lines = _LineNumbers(text)
    tables = (table for table in find_tables(text, 0, len(text)) if not is_text or is_sure(text, table))
    return [_write(text, table, lines, work()) for table in islice(tables, MAX_TABLES + 1)]


def _write(text: mmap | bytes, table: FoundTable, lines: _LineNumbers, target: Path) -> Found:
    names, split = table.format.names, table.format.split
    writer, bad, cells = RowWriter(target, names), 0, list[str]()
    for start, end in zip(table.starts, table.ends, strict=True):
        cells = split(text[start:end].decode("utf-8", "replace").replace("\0", ""))
        if not cells:
            bad += 1
            continue
        row: dict[str, str | None] = {name: cell or None for name, cell in zip(names, cells, strict=False)}
        if len(cells) > len(names):
            row[EXTRA] = "|".join(cells[len(names) :])
        writer.write(lines.number(start), row)
    notes = [f"{omission.count:,} {omission.what}." for omission in table.omissions]
    return writer.finish(table.title, bad_rows=bad, note=join_notes(*notes, describe_total(cells)))


class _LineNumbers:
    """Line numbers of positions that only grow."""

    def __init__(self, text: mmap | bytes) -> None:
        self._text = text
        self._position = 0
        self._number = 1

    def number(self, position: int) -> int:
        self._number += self._text[self._position : position].count(b"\n")
        self._position = position
        return self._number
