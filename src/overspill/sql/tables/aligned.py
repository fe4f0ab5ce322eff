"""Columns aligned with spaces or drawn with bars, as `kubectl get`, `ps`, `df`, `ls -l` and SQL shells print them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from mmap import mmap
from pathlib import Path

from overspill.lexical.kinds.columns import COLUMNS
from overspill.lexical.outline import Outline, Table
from overspill.sql.tables.table import MAX_TABLES, Found, RowWriter

_LISTING = re.compile(r"[-dlbcps][-rwxsStT]{9}[.+@]?\s+\d+\s")
_LISTING_COLUMNS = ("mode", "links", "owner", "group", "size", "month", "day", "time", "name")


def find_listing(lines: Iterator[str], target: Path) -> list[Found]:
    """What `ls -l` prints has no header."""
    writer, bad = RowWriter(target, _LISTING_COLUMNS), 0
    for number, line in enumerate(lines, 1):
        cells = line.split(None, len(_LISTING_COLUMNS) - 1)
        if _LISTING.match(line) and len(cells) == len(_LISTING_COLUMNS):
            writer.write(number, dict(zip(_LISTING_COLUMNS, cells, strict=True)))
        else:
            bad += bool(line.strip()) and not line.startswith("total ")
    return [writer.finish(bad_rows=bad)]


def is_listing(lines: list[str]) -> bool:
    entries = [line for line in lines if line.strip() and not line.startswith("total ")]
    matching = sum(_LISTING.match(line) is not None for line in entries)
    return matching > 0 and matching >= 0.8 * len(entries)


def find_aligned(text: mmap | bytes, work: Callable[[], Path]) -> list[Found]:
    outline = Outline()
    COLUMNS.cut(text, 0, len(text), outline, lambda start, end: None)
    lines = _LineNumbers(text)
    return [_read(text, outline, table, lines, work()) for table in outline.tables[: MAX_TABLES + 1]]


def _read(text: mmap | bytes, outline: Outline, table: Table, lines: _LineNumbers, target: Path) -> Found:
    names = table.rows.names
    writer, bad = RowWriter(target, names), 0
    for row in range(table.first, table.last):
        cells = table.rows.split(_line(text, outline.starts[row], outline.ends[row]))
        bad += len(cells) != len(names)
        if len(cells) == len(names):
            writer.write(lines.number(outline.starts[row]), {name: cell or None for name, cell in zip(names, cells, strict=True)})
    return writer.finish(bad_rows=bad)


def _line(text: mmap | bytes, start: int, end: int) -> str:
    return text[start:end].decode("utf-8", "replace").replace("\0", "")


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
