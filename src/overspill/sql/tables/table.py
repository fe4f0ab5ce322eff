"""A table that was found in an output, ready to be loaded."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from overspill.sql.tables.json_type import JsonType, quote, quote_name
from overspill.tables.delimited import Delimited, is_total
from overspill.tables.names import ROW, choose_name
from overspill.tables.table import FoundTable, JsonRows, Row
from overspill.text.humanize import count_noun, quote_line

MAX_COLUMNS = 3_000
"""DuckDB lacks the memory for many more, and takes minutes for them."""
_MAX_MOSTLY_EMPTY_CELLS = 8_000_000
"""Of a table with more cells than its text has bytes, where most rows lack most columns: few bytes can have many of them."""
_EXTRA = "_extra"
"""Cells of rows that have more of them than the header."""
_EXTRA_KEY = "\0"
"""Under which no other cell is."""
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


class RowWriter:
    """Writes rows as lines of JSON, and remembers the columns in the order in which they came, and what values they have.

    Columns whose names SQL could not tell apart get other names.
    """

    def __init__(self, file: Path, table: FoundTable) -> None:
        self._file, self._table = file, table
        self._rows = self._bytes = self._bad = self._uneven = 0
        self._columns, self._types = dict[str, str](), dict[str, JsonType]()
        self._taken = {ROW: 1}
        self._longest = _USUAL_ROW_BYTES
        self._last: Row | None = None
        self._stream = file.open("wb")
        self._encode = msgspec.json.Encoder().encode
        self._is_typed = isinstance(table.format, JsonRows)
        self._add_columns(table.format.names)

    def write(self, row: Row) -> None:
        if row.cells is None:
            self._bad += 1
            return
        cells = row.cells | {_EXTRA_KEY: row.extra} if row.extra is not None else row.cells
        self._uneven += len(cells) != len(self._table.format.names)
        if not cells.keys() <= self._columns.keys():
            self._add_columns(cells)
        if self._is_typed:
            for name, cell in cells.items():
                self._types[name].add(cell)
        line = self._spell({ROW: row.where, **{self._columns[name]: cell for name, cell in cells.items()}})
        self._longest = max(self._longest, len(line))
        self._bytes += self._stream.write(line)
        self._rows, self._last = self._rows + 1, row

    def _spell(self, cells: dict[str, Any]) -> bytes:
        try:
            return self._encode(cells) + b"\n"
        except UnicodeEncodeError:  # half a character
            spelt = json.dumps(cells, ensure_ascii=False).encode("utf-8", "surrogatepass")
            return spelt.decode("utf-8", "replace").encode() + b"\n"

    def finish(self) -> Found:
        """There is room for cells beyond the header whichever columns are left out."""
        self._stream.close()
        extra = self._columns.pop(_EXTRA_KEY, "")
        room = count_room(self._rows, self._bytes) - bool(extra)
        chosen = dict(list(self._columns.items())[:room])
        is_crowded = sum(inner.count for inner in self._types.values()) > room
        types = {
            column: self._types[name].spell(is_flat=is_crowded) if self._is_typed else "VARCHAR"
            for name, column in chosen.items()
        }
        where = "VARCHAR" if self._last and isinstance(self._last.where, str) else "BIGINT"
        types = {ROW: where, **types} | ({extra: "VARCHAR"} if extra else {})
        columns = ", ".join(f"{quote(name)}: {quote(kind)}" for name, kind in types.items())
        how = f"format='newline_delimited', maximum_object_size={self._longest}, columns={{{columns}}}"
        reader = f"read_json({quote(str(self._file))}, {how})"
        note = join_notes(*self._describe(extra), describe_left_out(len(self._columns) - len(chosen), room))
        if is_crowded and any(inner.count for inner in self._types.values()):
            note = join_notes(note, "Objects with too many different keys are text.")
        return Found(
            reader, f'"{ROW}"', self._table.title, self._is_typed, (ROW,), rows=self._rows, bad_rows=self._bad, note=note
        )

    def _describe(self, extra: str) -> Iterable[str]:
        """What is not as in other tables."""
        for omission in self._table.omissions:
            yield f"{omission.count:,} {omission.what}."
        if self._last and self._last.cells and not self._is_typed:
            cells = list(self._last.cells.values())
            yield f"The last row sums up others: {quote_line(' '.join(filter(None, cells)))}." if is_total(cells) else ""
        if self._uneven and isinstance(self._table.format, Delimited):
            beyond = f"; more are in {quote_name(extra)}" if extra else ""
            yield f"{count_noun(self._uneven, 'row')} with more or fewer cells than the header{beyond}."

    def _add_columns(self, names: Iterable[str]) -> None:
        for name in names:
            if name not in self._columns:
                self._columns[name] = choose_name(_EXTRA if name == _EXTRA_KEY else name, self._taken)
                self._types[name] = JsonType()


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
