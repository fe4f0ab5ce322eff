"""CSV, TSV and other rows with a delimiter, where DuckDB reads them as we do. It is many times faster."""

from __future__ import annotations

import mmap
from collections.abc import Callable
from pathlib import Path

from overspill.sql.tables.json_type import quote
from overspill.sql.tables.table import MAX_COLUMNS, Found
from overspill.tables.delimited import Heading, find_total, has_lone_returns, iterate_rows
from overspill.tables.rows import list_omissions, read_heading
from overspill.text import pieces
from overspill.text.humanize import quote_line
from overspill.text.patterns import compile_pattern

_BLANK_LINE = compile_pattern(rb"\n[\n\r \t]")
"""Or one that may be."""


def read_at_once(text: mmap.mmap, source: Path, otherwise: Callable[[], Found]) -> Found | None:
    """None if DuckDB would find other rows or cells."""
    heading = read_heading(text)
    names, mark = heading.format.names, heading.format.mark
    has_quotes = text.find(b'"') >= 0
    # Without a word, DuckDB finds other rows where lines end with CR alone, and other cells where blanks are before quotes.
    is_quoted_late = has_quotes and any(text.find(before + b' "') >= 0 for before in (mark.encode(), b"\n"))
    if len(names) > MAX_COLUMNS or "rowid" in map(str.lower, names) or is_quoted_late or has_lone_returns(text, 0, len(text)):
        return None
    columns = ", ".join(f"{quote(name)}: 'VARCHAR'" for name in names)
    reader = (
        f"read_csv({quote(str(source))}, auto_detect=false, delim={quote(mark)}, quote='\"', escape='\"', "
        f"skip={heading.count_skipped(text)}, header=false, columns={{{columns}}}, allow_quoted_nulls=false)"
    )
    rows = _count_rows(text, heading, has_quotes=has_quotes)
    # It refuses rows with more or fewer cells than the header.
    total = find_total(text, heading)
    notes = [f"{omission.count:,} {omission.what}." for omission in list_omissions(text, heading)]
    notes += [f"The last row sums up others: {quote_line(total)}."] if total else []
    return Found(reader, "rowid + 1", rows=rows, note=" ".join(notes), otherwise=otherwise)


def _count_rows(text: mmap.mmap, heading: Heading, *, has_quotes: bool) -> int | None:
    """None if lines may end inside of cells, unless DuckDB may lose rows because they do not end alike."""
    first, size = heading.first, len(text)
    if not has_quotes and not _BLANK_LINE.search(text):
        return _count(text, b"\n") + (text[-1:] != b"\n") - text[:first].count(b"\n")
    if has_quotes and (text.find(b"\r") < 0 or _count(text, b"\r") == _count(text, b"\n")):
        return None
    return sum(1 for _ in iterate_rows(text, heading.format.mark, first, size, has_quotes=has_quotes))


def _count(text: mmap.mmap, sign: bytes) -> int:
    return sum(text[at : at + pieces.PIECE_BYTES].count(sign) for at in range(0, len(text), pieces.PIECE_BYTES))
