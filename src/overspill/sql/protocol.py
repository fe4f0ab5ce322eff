"""What the session and its two kinds of processes tell each other, as JSON."""

from __future__ import annotations

from typing import TypeAlias

from msgspec import Struct

Config: TypeAlias = dict[str, str | bool | int | float | list[str]]
"""Settings of DuckDB."""


class SqlColumn(Struct, frozen=True):
    name: str
    type: str


class TableInfo(Struct, frozen=True):
    """A table in an output. `name` follows `output` in its name: `output`, `output_2`, or `output_orders`."""

    name: str
    rows: int
    columns: tuple[SqlColumn, ...]
    title: str = ""
    bad_rows: int = 0
    note: str = ""
    row: str = ""
    """How to compute `_row`, where it is not stored."""


class LoadedTables(Struct, frozen=True):
    """If there is no table, `kind` says what the text is."""

    kind: str
    tables: tuple[TableInfo, ...] = ()
    failed: str = ""


class SqlDatabase(Struct, frozen=True):
    """The tables of one output, by the names under which a query finds them."""

    file: str
    tables: dict[str, TableInfo]

    @staticmethod
    def of(found: LoadedTables, file: str, name: str) -> SqlDatabase:
        """For a query that calls the output `name`."""
        return SqlDatabase(file, {rename(table.name, name): table for table in found.tables})


def rename(table: str, name: str) -> str:
    """The tables of an output that a query calls `orders`: `orders` for `output`, `orders_2` for `output_2`."""
    return name + table.removeprefix("output")


class QueryRequest(Struct, frozen=True):
    """`folder` is an empty folder; the result is written there as `result`, a line of JSON for each row."""

    sql: str
    databases: tuple[SqlDatabase, ...]
    folder: str
    memory_bytes: int
    disk_bytes: int
    result_bytes: int
    seconds: float

    @property
    def processor_seconds(self) -> float:
        """DuckDB works in two threads."""
        return 2 * (self.seconds + 1)


class LoadRequest(Struct, frozen=True):
    """`source` is the text, `folder` an empty folder for what is needed meanwhile, `database` the file to write. `kind` is what
    the text is, if that is known. `query` is answered by the same process, which calls the text `name`."""

    source: str
    folder: str
    database: str
    memory_bytes: int
    disk_bytes: int
    processor_seconds: float
    kind: str = ""
    query: QueryRequest | None = None
    name: str = ""


class SqlResult(Struct, frozen=True):
    columns: tuple[SqlColumn, ...] = ()
    rows: int = 0
    """The file has fewer if not all fit."""
    failed: str = ""
