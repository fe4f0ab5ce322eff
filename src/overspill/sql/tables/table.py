"""A table that was found in an output, ready to be loaded."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from overspill.tables.delimited import is_total
from overspill.tables.names import ROW, choose_name
from overspill.text.humanize import count_noun, quote_line

MAX_TABLES = 50
"""Tables of one output that are loaded, the first ones. The last of them says that there are more, so look for one more."""
MAX_COLUMNS = 3_000
"""DuckDB lacks the memory for many more, and takes minutes for them."""
_MAX_MOSTLY_EMPTY_CELLS = 8_000_000
"""Of a table with more cells than its text has bytes, where most rows lack most columns: few bytes can have many of them."""
EXTRA = "_extra"
"""Cells of rows that have more of them than the header."""
_USUAL_ROW_BYTES = 1 << 24  # the longest row that DuckDB reads without being told to


class Found(Struct, frozen=True):
    """`reader` is a DuckDB table function over files of ours; `row` is an expression over `rowid` or a column that says where a
    row is in the output."""

    reader: str
    row: str
    title: str = ""
    """What it is called in the output: a caption, a heading, or the key above it."""
    is_typed: bool = False
    """Whether the text says which values are numbers, as JSON does. Text that looks like a number stays text then."""
    hidden: tuple[str, ...] = ()
    """Columns of the reader that are only needed for `row`."""
    rows: int | None = None
    """How many it has, where that is known: fewer of them in the database are some that were lost."""
    bad_rows: int = 0
    note: str = ""
    otherwise: Callable[[], Found] | None = None
    """How to read it if DuckDB refuses `reader`."""


class Unreadable(Exception):
    """It cannot be loaded, or not whole."""


class RowWriter:
    """Writes rows of strings as lines of JSON, and remembers the columns in the order in which they came.

    Columns whose names SQL could not tell apart get other names.
    """

    def __init__(self, file: Path, columns: Iterable[str] = ()) -> None:
        self.rows = self._bytes = 0
        self._file = file
        self._columns = dict[str, str]()
        self._taken = {ROW: 1}
        self._longest = _USUAL_ROW_BYTES
        self._stream = file.open("wb")
        self._encode = msgspec.json.Encoder().encode
        self._add_columns(columns)

    def write(self, row: int | str, cells: Mapping[str, str | None]) -> None:
        if not cells.keys() <= self._columns.keys():
            self._add_columns(cells)
        line = self._encode({ROW: str(row), **{self._columns[name]: cell for name, cell in cells.items()}}) + b"\n"
        self._longest = max(self._longest, len(line))
        self._bytes += len(line)
        self._stream.write(line)
        self.rows += 1

    def finish(self, title: str = "", bad_rows: int = 0, note: str = "", last: str = "") -> Found:
        """There is room for the column `last` whichever others are left out, if it was written."""
        self._stream.close()
        kept = [name] if (name := self._columns.pop(last, "")) else []
        room = count_room(self.rows, self._bytes) - len(kept)
        chosen = list(self._columns.values())[:room]
        columns = ", ".join(f"{quote(name)}: 'VARCHAR'" for name in (ROW, *chosen, *kept))
        how = f"format='newline_delimited', maximum_object_size={self._longest}, columns={{{columns}}}"
        reader = f"read_json({quote(str(self._file))}, {how})"
        note = join_notes(note, describe_left_out(len(self._columns) - len(chosen), room))
        where = f'TRY_CAST("{ROW}" AS BIGINT)'
        return Found(reader, where, title, hidden=(ROW,), rows=self.rows, bad_rows=bad_rows, note=note)

    def _add_columns(self, names: Iterable[str]) -> None:
        for name in names:
            if name not in self._columns:
                self._columns[name] = choose_name(name, self._taken)


def count_room(rows: int, size: int) -> int:
    """For how many columns there is room in a table of so many rows, whose text has so many bytes."""
    return min(MAX_COLUMNS, max(_MAX_MOSTLY_EMPTY_CELLS, size) // max(1, rows))


def describe_left_out(columns: int, room: int) -> str:
    if columns <= 0:
        return ""
    return (
        f"{count_noun(columns, 'column')} after the first {room:,} left out: SQL would take too long or too much memory for more."
    )


def join_notes(*notes: str) -> str:
    return " ".join(filter(None, notes))


def describe_total(cells: Sequence[str | None]) -> str:
    """What to say of the last row of a table."""
    return f"The last row sums up others: {quote_line(' '.join(filter(None, cells)))}." if is_total(cells) else ""


def limit_tables(found: list[Found]) -> list[Found]:
    """At most so many tables. Says so if that leaves some out."""
    if len(found) <= MAX_TABLES:
        return found
    *first, last = found[:MAX_TABLES]
    return [*first, replace(last, note=join_notes(last.note, "Tables after this one are not loaded."))]


def quote(text: str) -> str:
    """As a string of SQL."""
    return "'" + text.replace("'", "''") + "'"


def quote_name(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
