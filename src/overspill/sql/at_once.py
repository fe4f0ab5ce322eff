"""Lets DuckDB read CSV and JSON if it finds the same rows and cells as we do. It is many times faster."""

from __future__ import annotations

import mmap
from collections.abc import Callable
from pathlib import Path

import msgspec
from msgspec import Raw

from overspill.sql.statements import quote
from overspill.sql.writing import MAX_COLUMNS, JsonType, TableSource, count_room
from overspill.tables.delimited import has_lone_returns, iterate_rows, list_above, read_last_row, repeats_header
from overspill.tables.json_tables import JsonTable
from overspill.tables.rows import read_heading
from overspill.tables.table import Tally, write_note
from overspill.text import pieces
from overspill.text.patterns import compile_pattern

_BLANK_LINE = compile_pattern(rb"\n[\n\r \t]")
"""A line that may be blank."""
_LONG_FRACTION = compile_pattern(rb"\.[0-9]{18}")
_LEARNT_BYTES, _CHECKED_BYTES = 1 << 20, 1 << 16
"""About how many bytes to decode in one call, because all their values are in memory."""
_MAX_LEARNT = 4
"""How many parts to learn types from. Each one restarts the check."""


def read_delimited_at_once(text: mmap.mmap, source: Path, otherwise: Callable[[], TableSource]) -> TableSource | None:
    """A table of delimited rows that DuckDB reads itself; None if it would find different rows or cells."""
    heading = read_heading(text)
    names, mark = heading.format.names, heading.format.mark
    has_quotes = text.find(b'"') >= 0
    # DuckDB silently finds different rows if lines end with CR only, and different cells if there are blanks before quotes.
    is_quoted_late = has_quotes and any(text.find(before + b' "') >= 0 for before in (mark.encode(), b"\n"))
    if len(names) > MAX_COLUMNS or "rowid" in map(str.lower, names) or is_quoted_late:
        return None
    if has_lone_returns(text, 0, len(text)) or repeats_header(text, heading, len(text)):
        return None
    rows = None  # unknown if lines may end inside cells
    if not has_quotes and not _BLANK_LINE.search(text):
        rows = _count(text, b"\n") + (text[-1:] != b"\n") - text[: heading.first].count(b"\n")
    elif not has_quotes or (text.find(b"\r") >= 0 and _count(text, b"\r") != _count(text, b"\n")):
        # DuckDB may lose rows if line ends are mixed.
        rows = sum(1 for _ in iterate_rows(text, mark, heading.first, len(text), has_quotes=has_quotes))
    columns = ", ".join(f"{quote(name)}: 'VARCHAR'" for name in names)
    reader = (  # refuses rows with more or fewer cells than the header
        f"read_csv({quote(str(source))}, auto_detect=false, delim={quote(mark)}, quote='\"', escape='\"', "
        f"skip={heading.count_skipped(text)}, header=false, columns={{{columns}}}, allow_quoted_nulls=false)"
    )
    note = write_note(list_above(text, heading), Tally(None, [read_last_row(text, heading)]))
    return TableSource(reader, "rowid + 1", rows=rows, note=note, otherwise=otherwise)


def _count(text: mmap.mmap, sign: bytes) -> int:
    return sum(text[at : at + pieces.PIECE_BYTES].count(sign) for at in range(0, len(text), pieces.PIECE_BYTES))


def read_json_at_once(
    file: Path, rows: list[Raw], table: JsonTable, otherwise: Callable[[], TableSource], *, is_lines: bool = False
) -> TableSource | None:
    """A table of JSON rows that DuckDB reads from a file itself; None if it would not read all of them exactly."""
    size = file.stat().st_size
    try:
        types = _learn_types(rows, size)
    except (msgspec.DecodeError, KeyError, RecursionError):  # KeyError also for names with line ends
        return None
    kinds = {name: inner.spell() for name, inner in types.inside.items()}
    columns = ", ".join(f"{quote(name)}: {quote(kind)}" for name, kind in kinds.items())
    if "rowid" in map(str.lower, kinds) or types.count > count_room(len(rows), size):  # we number rows with rowid
        return None
    where = "rowid + 1" if is_lines else f"{quote(table.pointer + '/')} || rowid"
    layout = "newline_delimited" if is_lines else "array"
    reader = f"read_json({quote(str(file))}, format={quote(layout)}, records=true, columns={{{columns}}})"
    return TableSource(reader, where, table.title, is_typed=True, rows=len(rows), otherwise=otherwise)


def _learn_types(rows: list[Raw], size: int) -> JsonType:
    """Learns types from the first rows and checks the other rows against them. Learns from rows that differ as well. Raises
    msgspec.DecodeError if they cannot be decoded, and KeyError if DuckDB would change them."""
    types, learnt, first, check = JsonType(), 0, 0, msgspec.json.Decoder(list[None])
    while first < len(rows):
        many = max(1, len(rows) * (_CHECKED_BYTES if first else _LEARNT_BYTES) // size)
        part = b"[%b]" % b",".join(rows[first : first + many])
        if _LONG_FRACTION.search(part):
            raise KeyError("numbers that would be rounded")
        try:
            check.decode(part)
            first += many
        except msgspec.ValidationError:
            if learnt == _MAX_LEARNT:
                raise
            for value in msgspec.json.decode(part):
                types.add(value)
            check = msgspec.json.Decoder(list[types.check()])
            learnt, first = learnt + 1, 0
    return types
