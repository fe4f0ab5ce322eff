"""CSV, TSV and other rows with a delimiter."""

from __future__ import annotations

import mmap
from collections.abc import Callable
from functools import partial
from pathlib import Path

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
from overspill.tables.delimited import (
    MAX_HEADING_BYTES,
    Heading,
    find_heading,
    find_total,
    has_lone_returns,
    iterate_rows,
    take_heading,
)
from overspill.tables.names import make_unique
from overspill.tables.table import Text
from overspill.text import pieces
from overspill.text.humanize import count_noun, format_size, quote_line
from overspill.text.patterns import compile_pattern

_MAX_SHORT_BYTES = 4_096
_BLANK_LINE = compile_pattern(rb"\n[\n\r \t]")
"""Or one that may be."""


def find_few_rows(text: mmap.mmap, source: Path, work: Callable[[], Path]) -> list[Found]:
    """In a text that is too short to be recognised as a table. Whoever asks for a table expects one."""
    heading = find_short_heading(text)
    return find_delimited(text, source, work, heading) if heading else []


def find_short_heading(text: Text) -> Heading | None:
    """Of such a text; None if it is longer, or has no rows."""
    return find_heading(text, min_rows=2) if len(text) <= _MAX_SHORT_BYTES else None


def read_heading(text: Text) -> Heading:
    heading = take_heading(text)
    if heading.first >= MAX_HEADING_BYTES < len(text):
        raise Unreadable(f"the row that names its columns is longer than {format_size(MAX_HEADING_BYTES)}.")
    return heading


def find_delimited(text: mmap.mmap, source: Path, work: Callable[[], Path], heading: Heading | None = None) -> list[Found]:
    heading = heading or read_heading(text)
    names, mark = heading.format.names, heading.format.mark
    has_quotes = text.find(b'"') >= 0
    otherwise = partial(_read_row_by_row, text, heading, work())
    # Without a word, DuckDB finds other rows where lines end with CR alone, and other cells where blanks are before quotes.
    is_quoted_late = has_quotes and any(text.find(before + b' "') >= 0 for before in (mark.encode(), b"\n"))
    if len(names) > MAX_COLUMNS or is_quoted_late or has_lone_returns(text, 0, len(text)):
        return [otherwise()]
    columns = ", ".join(f"{quote(name)}: 'VARCHAR'" for name in names)
    reader = (
        f"read_csv({quote(str(source))}, auto_detect=false, delim={quote(mark)}, quote='\"', escape='\"', "
        f"skip={heading.count_skipped(text)}, header=false, columns={{{columns}}}, allow_quoted_nulls=false)"
    )
    rows = _count_rows(text, heading, has_quotes=has_quotes)
    # DuckDB refuses rows with more or fewer cells than the header. It is many times faster where there are none.
    return [Found(reader, "row_number() OVER ()", rows=rows, note=_describe_others(text, heading), otherwise=otherwise)]


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


def _describe_others(text: Text, heading: Heading) -> str:
    """The rows that are not like the others."""
    above, total = "", find_total(text, heading)
    if heading.above:
        said = quote_line(bytes(text[heading.above[0][0] : heading.above[-1][1]]).decode("utf-8", "replace").strip())
        above = f"{count_noun(len(heading.above), 'row')} above the header left out: {said}."
    return join_notes(above, f"The last row sums up others: {quote_line(total)}." if total else "")


def _read_row_by_row(text: mmap.mmap, heading: Heading, target: Path) -> Found:
    names, split = heading.format.names, heading.format.split
    extra = make_unique([*names, EXTRA])[-1]
    writer = RowWriter(target, names)
    ragged = 0
    for number, (start, end) in enumerate(iterate_rows(text, heading.format.mark, heading.first, len(text)), 1):
        cells = split(text[start:end].decode("utf-8", "replace").replace("\0", ""))
        ragged += len(cells) != len(names)
        row: dict[str, str | None] = {name: cell or None for name, cell in zip(names, cells, strict=False)}
        if len(cells) > len(names):
            row[extra] = heading.format.mark.join(cells[len(names) :])
        writer.write(number, row)
    uneven = (
        f"{count_noun(ragged, 'row')} with more or fewer cells than the header; more are in {quote_name(extra)}."
        if ragged
        else ""
    )
    return writer.finish(note=join_notes(_describe_others(text, heading), uneven), last=extra)
