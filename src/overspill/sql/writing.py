"""Prepares tables found in an output for loading, and writes files of rows for DuckDB to read."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Annotated, Any, Optional, TypeAlias, cast

import msgspec
from msgspec import Meta, Struct

from overspill.sql.statements import quote, quote_name
from overspill.tables.delimited import Delimited
from overspill.tables.table import MAX_TABLES, ROW, FoundTable, JsonRows, Row, Tally, choose_name, write_note
from overspill.text.humanize import count_noun

MAX_COLUMNS = 3_000
"""DuckDB takes minutes for many more columns, and runs out of memory."""
_MAX_MOSTLY_EMPTY_CELLS = 8_000_000
"""The limit for tables with more cells than bytes of text. Few bytes can define many columns that most rows lack."""
_MAX_DEPTH = 20
_MAX_INSIDE = 3_000
_MAX_EXACT_INT = 1 << 53
_EXTRA = "_extra"
"""The column for cells beyond the header."""
_EXTRA_KEY = "\0"
"""A key that no cell of a row has."""
_USUAL_ROW_BYTES = 1 << 24  # the longest row that DuckDB reads by default
_SCALARS: dict[type, str] = {bool: "BOOLEAN", int: "BIGINT", float: "DOUBLE", str: "VARCHAR"}
_CHECKS: dict[str, Any] = {
    "BIGINT": Annotated[int, Meta(ge=-(1 << 63), le=(1 << 63) - 1)],
    "DOUBLE": Annotated[float, Meta(ge=-_MAX_EXACT_INT, le=_MAX_EXACT_INT)],  # larger whole numbers would be rounded
    "BOOLEAN": bool,
    "VARCHAR": str,
}

Work: TypeAlias = Callable[[], Path]
"""Returns the path for a new file."""


class TableSource(Struct, frozen=True):
    """`reader` is a DuckDB table function over our own files. `row` is an expression for a row's place in the output."""

    reader: str
    row: str
    title: str = ""
    """Its name in the output: a caption, a heading, or the key above it."""
    is_typed: bool = False
    """Whether the text says which values are numbers, as JSON does. Text that looks like a number then stays text."""
    hidden: tuple[str, ...] = ()
    """Columns of the reader that only `row` needs."""
    rows: int | None = None
    """The number of rows, if known. If the database has fewer, some were lost."""
    bad_rows: int = 0
    note: str = ""
    otherwise: Callable[[], TableSource] | None = None
    """Makes another source of the same table, used if DuckDB refuses `reader`."""


class JsonType:
    """The kinds of values in a JSON column, and the types of their members. The elements of lists are under ""."""

    __slots__ = ("_has_long", "count", "inside", "kinds")

    def __init__(self) -> None:
        self.kinds = set[str]()
        self.inside = dict[str, JsonType]()
        self.count = 0
        """The number of types inside, at all depths. DuckDB makes columns of them too."""
        self._has_long = False

    def add(self, value: object, depth: int = 0) -> None:
        if value is None:
            return
        if isinstance(value, bool | int | float | str):
            self.kinds.add(_SCALARS[type(value)])
            self._has_long |= isinstance(value, int) and abs(value) > _MAX_EXACT_INT
            return
        self.kinds.add("STRUCT" if isinstance(value, dict) else "LIST")
        if depth == _MAX_DEPTH or self.count > _MAX_INSIDE:
            self.kinds |= {"STRUCT", "LIST"}  # a mixed column becomes text
            return
        members: Any = cast("Any", value).items() if isinstance(value, dict) else (("", each) for each in cast("Any", value))
        for name, member in members:
            inside = self.inside.get(name)
            if inside is None:
                inside = self.inside[name] = JsonType()
                self.count += 1
            before = inside.count
            inside.add(member, depth + 1)
            self.count += inside.count - before

    @property
    def kind(self) -> str:
        """The kind of all values: "none" without values, and "mixed" if no kind suits all of them."""
        if self.kinds == {"BIGINT", "DOUBLE"} and not self._has_long:
            return "DOUBLE"
        return next(iter(self.kinds), "none") if len(self.kinds) < 2 else "mixed"

    def spell(self, *, is_flat: bool = False) -> str:
        """The type in SQL. Mixed values become text; if `is_flat`, so do values with parts."""
        match self.kind:
            case "LIST" if not is_flat:
                return f"{self.inside[''].spell() if self.inside else 'VARCHAR'}[]"
            case "STRUCT" if self.inside and not is_flat:
                return f"STRUCT({', '.join(f'{quote_name(name)} {inner.spell()}' for name, inner in self.inside.items())})"
            case kind:
                return kind if kind in _CHECKS else "VARCHAR"

    def check(self) -> Any:
        """A msgspec type that accepts only such values, without other members. Raises KeyError if values are mixed."""
        if self.kind == "none":
            return None
        if self.kind == "LIST":
            element = self.inside[""].check() if self.inside else None
            return list[Optional[element]]  # noqa: UP045
        if self.kind != "STRUCT":
            return _CHECKS[self.kind]
        if len({name.lower() for name in self.inside}) < len(self.inside) or "" in self.inside:
            raise KeyError("names that SQL cannot tell apart")
        fields = [(f"f{number}", Optional[inner.check()], None) for number, inner in enumerate(self.inside.values())]  # noqa: UP045
        renamed = {f"f{number}": name for number, name in enumerate(self.inside)}
        return msgspec.defstruct("Members", fields, rename=renamed, forbid_unknown_fields=True, gc=False)


def write_rows(rows: Iterable[tuple[FoundTable, Row]], work: Work) -> list[TableSource]:
    """Writes at most one table more than can be loaded."""
    writers: dict[int, RowWriter] = {}
    for table, row in rows:
        writer = writers.get(id(table))
        if writer is None:
            if len(writers) > MAX_TABLES:
                break
            writer = writers[id(table)] = RowWriter(work(), table)
        writer.write(row)
    return [writer.finish() for writer in writers.values()]


class RowWriter:
    """Writes rows as lines of JSON, and remembers the columns in order of appearance and the types of their values.

    Renames columns if SQL could not distinguish their names.
    """

    def __init__(self, file: Path, table: FoundTable) -> None:
        self._file, self._table = file, table
        self._rows = self._bytes = self._bad = 0
        self._tally = Tally(len(table.format.names) if isinstance(table.format, Delimited) else None)
        self._columns, self._types = dict[str, str](), dict[str, JsonType]()
        self._taken = {ROW: 1}
        self._longest = _USUAL_ROW_BYTES
        self._is_pointed = False
        self._stream = file.open("wb")
        self._encode = msgspec.json.Encoder().encode
        self._is_typed = isinstance(table.format, JsonRows)
        self._add_columns(table.format.names)

    def write(self, row: Row) -> None:
        if row.cells is None:
            self._bad += 1
            return
        cells = row.cells | {_EXTRA_KEY: row.extra} if row.extra is not None else row.cells
        if not cells.keys() <= self._columns.keys():
            self._add_columns(cells)
        if self._is_typed:
            for name, cell in cells.items():
                self._types[name].add(cell)
        elif cells:  # an element may have no attributes, and an unreadable row has None
            self._tally.add(list(cells.values()))
        written = {ROW: row.where, **{self._columns[name]: cell for name, cell in cells.items()}}
        try:
            line = self._encode(written) + b"\n"
        except UnicodeEncodeError:  # a lone surrogate
            spelt = json.dumps(written, ensure_ascii=False).encode("utf-8", "surrogatepass")
            line = spelt.decode("utf-8", "replace").encode() + b"\n"
        self._longest = max(self._longest, len(line))
        self._bytes += self._stream.write(line)
        self._rows, self._is_pointed = self._rows + 1, isinstance(row.where, str)

    def finish(self) -> TableSource:
        """The written table. If it has too many columns, some are left out, but never the one for cells beyond the header."""
        self._stream.close()
        extra = self._columns.pop(_EXTRA_KEY, "")
        room = count_room(self._rows, self._bytes) - bool(extra)
        inside = sum(inner.count for inner in self._types.values())
        types = {ROW: "VARCHAR" if self._is_pointed else "BIGINT"}
        for name, column in list(self._columns.items())[:room]:
            types[column] = self._types[name].spell(is_flat=inside > room) if self._is_typed else "VARCHAR"
        left_out = len(self._columns) - len(types) + 1
        types |= {extra: "VARCHAR"} if extra else {}
        columns = ", ".join(f"{quote(name)}: {quote(kind)}" for name, kind in types.items())
        how = f"format='newline_delimited', maximum_object_size={self._longest}, columns={{{columns}}}"
        notes = [write_note(self._table.omissions, self._tally)]
        notes += [f"Cells beyond the header are in {quote_name(extra)}."] if extra and self._tally.uneven else []
        if left_out > 0:
            why = "SQL would take too long or too much memory for more."
            notes.append(f"{count_noun(left_out, 'column')} after the first {room:,} left out: {why}")
        if inside > max(room, 0):
            notes.append("Objects with too many different keys are text.")
        return TableSource(
            f"read_json({quote(str(self._file))}, {how})",
            f'"{ROW}"',
            self._table.title,
            self._is_typed,
            (ROW,),
            rows=self._rows,
            bad_rows=self._bad,
            note=" ".join(filter(None, notes)),
        )

    def _add_columns(self, names: Iterable[str]) -> None:
        for name in names:
            if name not in self._columns:
                self._columns[name] = choose_name(_EXTRA if name == _EXTRA_KEY else name, self._taken)
                self._types[name] = JsonType()


def count_room(rows: int, size: int) -> int:
    """The number of columns that fit, for a table with this many rows and bytes of text."""
    return min(MAX_COLUMNS, max(_MAX_MOSTLY_EMPTY_CELLS, size) // max(1, rows))
