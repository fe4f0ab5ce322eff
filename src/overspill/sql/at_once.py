"""Lets DuckDB read CSV and JSON if it finds the same rows and cells as we do. It is many times faster."""

from __future__ import annotations

import mmap
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec

from overspill.sql.statements import quote
from overspill.sql.writing import MAX_COLUMNS, JsonType, TableSource, count_room
from overspill.tables.delimited import (
    has_lone_returns,
    iterate_rows,
    list_above,
    read_header,
    read_heading,
    read_last_row,
    repeats_header,
)
from overspill.tables.json_tables import JsonTable
from overspill.tables.table import Tally, write_note
from overspill.text import pieces
from overspill.text.patterns import compile_pattern, escape

_LONG_FRACTION = b"." + b"0" * 18
_TO_ZEROS = bytes.maketrans(b"123456789", b"0" * 9)
_BLOCK_BYTES = 1 << 20
_READ_BYTES = 8 << 20
"""How much CSV to have in memory. By default, DuckDB has 32 MB, which takes longer because it does not stay in the cache."""
_CHECKED_BYTES = 1 << 16
"""About how many bytes to check in one call, because all their values are in memory."""
_MAX_COMPARED_BYTES = 100
"""How much of the header to look for among the rows. If a row begins with that, all of it is looked for."""
_MAX_TRIES = 30
"""How often to try to find the end of a row near a position."""
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
    again = escape(read_header(text, heading)[:_MAX_COMPARED_BYTES]) or rb"\n"
    unlike = compile_pattern(rb"\n(?:[\n\r \t]|%b)" % again)  # a line that may be blank, or the header again
    is_plain = not has_quotes and not unlike.search(text, max(0, heading.first - 1))
    if has_lone_returns(text, 0, len(text)) or (not is_plain and repeats_header(text, heading, len(text))):
        return None
    rows = None  # unknown if lines may end inside cells
    if is_plain:
        rows = _count(text, b"\n") + (text[-1:] != b"\n") - text[: heading.first].count(b"\n")
    elif not has_quotes or (text.find(b"\r") >= 0 and _count(text, b"\r") != _count(text, b"\n")):
        # DuckDB may lose rows if line ends are mixed.
        rows = sum(1 for _ in iterate_rows(text, mark, heading.first, len(text), has_quotes=has_quotes))
    columns = ", ".join(f"{quote(name)}: 'VARCHAR'" for name in names)
    reader = (  # refuses rows with more or fewer cells than the header
        f"read_csv({quote(str(source))}, auto_detect=false, delim={quote(mark)}, quote='\"', escape='\"', "
        f"skip={heading.count_skipped(text)}, header=false, columns={{{columns}}}, allow_quoted_nulls=false, "
        f"buffer_size={_READ_BYTES})"
    )
    note = write_note(list_above(text, heading), Tally(None, [read_last_row(text, heading)]))
    return TableSource(reader, "rowid + 1", rows=rows, note=note, otherwise=otherwise)


def _count(text: mmap.mmap, sign: bytes) -> int:
    return sum(text[at : at + pieces.PIECE_BYTES].count(sign) for at in range(0, len(text), pieces.PIECE_BYTES))


def read_json_at_once(
    file: Path, text: mmap.mmap | bytes, table: JsonTable, otherwise: Callable[[], TableSource], *, is_lines: bool = False
) -> TableSource | None:
    """A table of JSON that DuckDB reads itself; None if it would not read all of it exactly."""
    try:
        types, rows = _learn_types(text, is_lines=is_lines)
    except (msgspec.DecodeError, KeyError, ValueError, RecursionError):  # KeyError also for names with line ends
        return None
    kinds = {name: inner.spell() for name, inner in types.inside.items()}
    columns = ", ".join(f"{quote(name)}: {quote(kind)}" for name, kind in kinds.items())
    if "rowid" in map(str.lower, kinds) or types.count > count_room(rows, len(text)):  # we number rows with rowid
        return None
    where = "rowid + 1" if is_lines else f"{quote(table.pointer + '/')} || rowid"
    layout = "newline_delimited" if is_lines else "array"
    reader = f"read_json({quote(str(file))}, format={quote(layout)}, records=true, columns={{{columns}}})"
    return TableSource(reader, where, table.title, is_typed=True, rows=rows, otherwise=otherwise)


def _learn_types(text: mmap.mmap | bytes, *, is_lines: bool) -> tuple[JsonType, int]:
    """Learns types from the first rows and checks the other rows against them. Learns from rows that differ as well. Counts the
    rows. Raises msgspec.DecodeError if they cannot be decoded, and KeyError if DuckDB would change them."""
    begin, end = (0, len(text)) if is_lines else (text.find(b"[") + 1, text.rfind(b"]"))
    if not is_lines and text[end + 1 :].strip():
        raise msgspec.DecodeError("Something follows the array.")

    def read(part: bytes, kind: Any) -> list[Any]:
        return decoders[kind].decode_lines(part) if is_lines else decoders[kind].decode(b"[%b]" % part)

    def make(kind: Any) -> msgspec.json.Decoder[Any]:
        return msgspec.json.Decoder(kind if is_lines else list[kind])

    decoders = {"any": make(Any), "checked": make(None)}
    types, learnt, rows, start = JsonType(), 0, 0, begin
    while start < end:
        for stop in _find_row_ends(text, begin, start, end, _CHECKED_BYTES if learnt else _BLOCK_BYTES, is_lines=is_lines):
            part = text[start:stop]
            if _LONG_FRACTION in part.translate(_TO_ZEROS):
                raise KeyError("numbers that would be rounded")
            try:
                rows, start = rows + len(read(part, "checked")), stop + 1
            except msgspec.ValidationError:
                try:
                    values = read(part, "any")
                except msgspec.DecodeError:
                    continue
                if learnt == _MAX_LEARNT:
                    raise
                for value in values:
                    types.add(value)
                decoders["checked"] = make(types.check())
                learnt, rows, start = learnt + 1, 0, begin
            except msgspec.DecodeError:
                continue  # this position was inside a row
            break
        else:
            raise msgspec.DecodeError("No row ends there.")
    return types, rows


def _find_row_ends(text: mmap.mmap | bytes, begin: int, start: int, end: int, size: int, *, is_lines: bool) -> Iterator[int]:
    """Possible ends of the rows that begin at `start`, about `size` bytes later; finally, the end of all rows."""
    colon = text.find(b":", begin, begin + _BLOCK_BYTES) + 1
    mark = b"\n" if is_lines else text[begin:colon].lstrip()
    near = start + size
    for _ in range(_MAX_TRIES):
        while (near := text.find(mark, near, end)) >= 0 and not is_lines and not text[near - 64 : near].rstrip().endswith(b","):
            near += 1  # continue after it: it is the first member of a list
        if near < 0:
            break
        yield near if is_lines else text.rfind(b",", start, near + 1)
        near += 1
    if near < 0:
        yield end
