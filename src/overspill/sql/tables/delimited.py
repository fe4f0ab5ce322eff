"""CSV, TSV and other rows with a delimiter."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable, Iterator
from pathlib import Path

from overspill.lexical.kinds.delimited import find_delimiter
from overspill.sql.tables.table import EXTRA, Found, RowWriter, make_unique, quote, quote_name

SAMPLE_BYTES = 256_000
MAX_SHORT_BYTES = 4_096
MAX_FIELD_CHARS = 1 << 26
_NUMBER = re.compile(r"\s*[-+]?[\d.,]*\d\s*%?$")


def find_few_rows(source: Path, work: Callable[[], Path]) -> list[Found]:
    """In a text that is too short to be recognised as a table. Whoever asks for a table expects one."""
    with source.open("rb") as file:
        mark = find_short_mark(file.read(MAX_SHORT_BYTES + 1))
    return find_delimited(source, work, mark) if mark else []


def find_short_mark(text: bytes) -> str:
    """The delimiter of such a text; empty if it is longer, or has none."""
    lines = [line for line in text.decode("utf-8-sig", "replace").splitlines() if line.strip()]
    return find_delimiter([*lines, ""], min_rows=2) if len(text) <= MAX_SHORT_BYTES else ""


def read_dialect(sample: bytes, mark: str = "") -> tuple[str, list[str], bool]:
    """The delimiter, the cells of the first row, and whether it is a header."""
    text = sample[:SAMPLE_BYTES].decode("utf-8-sig", "replace")
    mark = mark or find_delimiter([line for line in text.splitlines() if line.strip()]) or ","
    header: list[str] = next(csv.reader(io.StringIO(text), delimiter=mark), list[str]())
    return mark, header, not any(map(_NUMBER.match, header))


def find_delimited(source: Path, work: Callable[[], Path], mark: str = "") -> list[Found]:
    with source.open("rb") as file:
        mark, header, has_header = read_dialect(file.read(SAMPLE_BYTES), mark)
    names = make_unique(header if has_header else [""] * len(header))
    columns = ", ".join(f"{quote(name)}: 'VARCHAR'" for name in names)
    reader = (
        f"read_csv({quote(str(source))}, auto_detect=false, delim={quote(mark)}, quote='\"', escape='\"', "
        f"header={str(has_header).lower()}, columns={{{columns}}}, allow_quoted_nulls=false)"
    )
    # DuckDB refuses rows with more or fewer cells than the header. It is many times faster where there are none.
    return [Found(reader, "rowid + 1", otherwise=lambda: _read_row_by_row(source, mark, names, work(), has_header=has_header))]


def _read_row_by_row(source: Path, mark: str, names: list[str], target: Path, *, has_header: bool) -> Found:
    csv.field_size_limit(MAX_FIELD_CHARS)
    writer = RowWriter(target, names)
    ragged = bad = 0
    with source.open(encoding="utf-8-sig", errors="replace", newline="") as file:
        rows = _rows(csv.reader((line.replace("\0", "") for line in file), delimiter=mark))
        for number, cells in enumerate((row for row in rows if row != []), int(not has_header)):  # blank lines are no rows
            bad += cells is None
            if number == 0 or cells is None:
                continue
            ragged += len(cells) != len(names)
            row: dict[str, str | None] = {name: cell or None for name, cell in zip(names, cells, strict=False)}
            if len(cells) > len(names):
                row[EXTRA] = mark.join(cells[len(names) :])
            writer.write(number, row)
    note = f"{ragged:,} rows have more or fewer cells than the header; more are in {quote_name(EXTRA)}." if ragged else ""
    return writer.finish(bad_rows=bad, note=note)


def _rows(reader: Iterator[list[str]]) -> Iterator[list[str] | None]:
    """None for a row that cannot be read."""
    while True:
        try:
            yield next(reader)
        except StopIteration:
            return
        except csv.Error:  # a cell larger than any we read
            yield None
