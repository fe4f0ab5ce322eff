"""Columns aligned with spaces or drawn with bars, as `kubectl get`, `ps`, `df`, `ls -l` and SQL shells print them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from itertools import pairwise
from mmap import mmap
from pathlib import Path

from overspill.lexical.kinds.columns import COLUMNS
from overspill.lexical.outline import Outline, Table
from overspill.sql.tables.table import MAX_TABLES, Found, RowWriter, make_unique

_SAMPLED_ROWS = 2_000
_WORD = re.compile(r"\S+")
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
    header = _line(text, outline.label_starts[table.header], outline.label_ends[table.header])
    sampled = range(table.first, min(table.last, table.first + _SAMPLED_ROWS))
    sample = [_line(text, outline.starts[row], outline.ends[row]) for row in sampled]
    split = _split_at_bars if table.cells == "pipes" else _find_split(header, sample)
    names = make_unique(split(header))
    writer, bad = RowWriter(target, names), 0
    for row in range(table.first, table.last):
        cells = split(_line(text, outline.starts[row], outline.ends[row]))
        bad += len(cells) != len(names)
        if len(cells) == len(names):
            writer.write(lines.number(outline.starts[row]), {name: cell or None for name, cell in zip(names, cells, strict=True)})
    return writer.finish(bad_rows=bad)


def _line(text: mmap | bytes, start: int, end: int) -> str:
    return text[start:end].decode("utf-8", "replace").replace("\0", "").rstrip("\r\n").expandtabs()


def _split_at_bars(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip().removeprefix("|").removesuffix("|").split("|")]


def _find_split(header: str, rows: list[str]) -> Callable[[str], list[str]]:
    """Cells begin after gaps that no row crosses. If rows are not aligned, single words are cells, and the last has the rest."""
    gutters = _find_gutters([header, *rows])
    bounds = [
        start for start, end in gutters if _WORD.search(header[:start]) and _begins_cell(header, rows, end, _next(gutters, end))
    ]
    words = header.split()

    def split_at_bounds(line: str) -> list[str]:
        edges = [0, *bounds, max(len(line), bounds[-1] if bounds else 0)]
        return [line[start:end].strip() for start, end in pairwise(edges)]

    def split_words(line: str) -> list[str]:
        return line.split(None, len(words) - 1)

    return split_at_bounds if bounds and len(bounds) + 1 >= 0.7 * len(words) else split_words


def _begins_cell(header: str, rows: list[str], start: int, end: int | None) -> bool:
    """Whether a column begins here. A word of the header that follows another after one space and has nothing below it is part of
    that name: `Mounted on`."""
    is_apart = start < 2 or header[start - 2 : start].isspace()
    return bool(header[start:end].strip()) and (is_apart or any(row[start:end].strip() for row in rows))


def _next(gutters: list[tuple[int, int]], position: int) -> int | None:
    return next((start for start, _ in gutters if start > position), None)


def _find_gutters(lines: list[str]) -> list[tuple[int, int]]:
    """Runs of positions that are blank in every line, between positions that are not."""
    width = max(map(len, lines))
    used = bytearray(width)
    for line in lines:
        for word in _WORD.finditer(line):
            used[word.start() : word.end()] = b"\1" * (word.end() - word.start())
    found = [(gap.start(), gap.end()) for gap in re.finditer(rb"\0+", bytes(used))]
    return [(start, end) for start, end in found if start > 0 and end < width]


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
