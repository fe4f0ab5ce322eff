"""CSV, TSV and other rows with a delimiter."""

from __future__ import annotations

import csv
import io
import mmap
import re
from collections.abc import Callable, Iterator
from functools import partial
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from overspill.sql.tables.table import (
    EXTRA,
    MAX_COLUMNS,
    Found,
    RowWriter,
    Unreadable,
    join_notes,
    quote,
    quote_name,
)
from overspill.tables.delimited import NUMBER, Dialect, find_dialect, is_blank_row
from overspill.tables.names import make_unique
from overspill.text.humanize import count_noun, format_size

_SAMPLE_BYTES = 256_000
_MAX_HEADING_BYTES = 1 << 20
MAX_SHORT_BYTES = 4_096
MAX_FIELD_CHARS = 1 << 26
_LINE_END = re.compile(rb"[\r\n]")
_CR_ALONE = re.compile(rb"\r(?!\n)")
_LF_ALONE = re.compile(rb"(?<!\r)\n")


class Heading(NamedTuple):
    """The first row of a table, below `above` rows and `blank` ones, and whether it names the columns."""

    mark: str
    cells: list[str]
    has_names: bool
    above: int
    blank: int

    @property
    def first(self) -> int:
        """How many rows come before it."""
        return self.above + self.blank

    @property
    def note(self) -> str:
        return f"{count_noun(self.above, 'row')} above the header left out." if self.above else ""


def find_few_rows(source: Path, work: Callable[[], Path]) -> list[Found]:
    """In a text that is too short to be recognised as a table. Whoever asks for a table expects one."""
    with source.open("rb") as file:
        dialect = find_short_dialect(file.read(MAX_SHORT_BYTES + 1))
    return find_delimited(source, work, dialect) if dialect else []


def find_short_dialect(text: bytes) -> Dialect | None:
    """Of such a text; None if it is longer, or has no rows."""
    lines = [line for line in text.decode("utf-8-sig", "replace").splitlines() if line.strip()]
    return find_dialect([*lines, ""], min_rows=2) if len(text) <= MAX_SHORT_BYTES else None


def read_heading(text: mmap.mmap | bytes, dialect: Dialect | None = None) -> Heading:
    found = _LINE_END.search(text, _SAMPLE_BYTES, _MAX_HEADING_BYTES)  # whole lines: one may name thousands of columns
    sample = bytes(text[: found.start() if found else _MAX_HEADING_BYTES])
    lines = list(io.StringIO(sample.decode("utf-8-sig", "replace"), newline=None))
    dialect = dialect or find_dialect([line.rstrip("\n") for line in lines if line.strip()]) or Dialect(",")
    csv.field_size_limit(MAX_FIELD_CHARS)
    cells, number, blank = list[str](), 0, 0
    rows = csv.reader(lines, delimiter=dialect.mark)
    for row in rows:
        is_blank = is_blank_row(row)
        if not is_blank and number == dialect.above:
            cells = row
            if rows.line_num == len(lines) and len(sample) == _MAX_HEADING_BYTES < len(text):
                raise Unreadable(f"the row that names its columns is longer than {format_size(_MAX_HEADING_BYTES)}.")
            break
        number, blank = number + (not is_blank), blank + is_blank
    return Heading(dialect.mark, cells, not any(map(NUMBER.match, cells)), dialect.above, blank)


def find_delimited(source: Path, work: Callable[[], Path], dialect: Dialect | None = None) -> list[Found]:
    with source.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as text:
        heading = read_heading(text, dialect)
        ends_differ = _end_differently(text, heading)
        rows = None if ends_differ else _count_rows(text, heading)
    names = make_unique(heading.cells if heading.has_names else [""] * len(heading.cells))
    if ends_differ or len(names) > MAX_COLUMNS:
        return [_read_row_by_row(source, heading, names, work())]
    columns = ", ".join(f"{quote(name)}: 'VARCHAR'" for name in names)
    reader = (
        f"read_csv({quote(str(source))}, auto_detect=false, delim={quote(heading.mark)}, quote='\"', escape='\"', "
        f"skip={heading.first}, header={str(heading.has_names).lower()}, "
        f"columns={{{columns}}}, allow_quoted_nulls=false)"
    )
    # DuckDB refuses rows with more or fewer cells than the header. It is many times faster where there are none.
    otherwise = partial(_read_row_by_row, source, heading, names, work())
    return [Found(reader, "rowid + 1", rows=rows, note=heading.note, otherwise=otherwise)]


def _end_differently(text: mmap.mmap, heading: Heading) -> bool:
    """Whether lines end in ways of which DuckDB takes one, and finds no other rows: without a word."""
    if text.find(b"\r") < 0:
        return False
    return bool(_CR_ALONE.search(text) or (heading.first and _LF_ALONE.search(text)))


def _count_rows(text: mmap.mmap, heading: Heading) -> int | None:
    """None if there are quotes, between which lines may end."""
    if text.find(b'"') >= 0:
        return None
    lines = sum(not line.isspace() for line in islice(iter(text.readline, b""), heading.first, None))
    return max(0, lines - heading.has_names)


def _read_row_by_row(source: Path, heading: Heading, names: list[str], target: Path) -> Found:
    csv.field_size_limit(MAX_FIELD_CHARS)
    extra = make_unique([*names, EXTRA])[-1]
    writer = RowWriter(target, names)
    ragged = bad = 0
    with source.open(encoding="utf-8-sig", errors="replace", newline="") as file:
        rows = _rows(csv.reader((line.replace("\0", "") for line in file), delimiter=heading.mark))
        table = (row for row in islice(rows, heading.first, None) if row != [])  # blank lines are no rows
        for number, cells in enumerate(table, 1 - heading.has_names):
            bad += cells is None
            if number < 1 or cells is None:
                continue
            ragged += len(cells) != len(names)
            row: dict[str, str | None] = {name: cell or None for name, cell in zip(names, cells, strict=False)}
            if len(cells) > len(names):
                row[extra] = heading.mark.join(cells[len(names) :])
            writer.write(number, row)
    uneven = (
        f"{count_noun(ragged, 'row')} with more or fewer cells than the header; more are in {quote_name(extra)}."
        if ragged
        else ""
    )
    return writer.finish(bad_rows=bad, note=join_notes(heading.note, uneven), last=extra)


def _rows(reader: Iterator[list[str]]) -> Iterator[list[str] | None]:
    """None for a row that cannot be read."""
    while True:
        try:
            yield next(reader)
        except StopIteration:
            return
        except csv.Error:  # a cell larger than any we read
            yield None
