"""The JSON messages between the session and its two kinds of processes, and the limits of these."""

from __future__ import annotations

from typing import Any

from msgspec import Struct

MAX_MEMORY_BYTES = 320 << 20
"""The memory DuckDB may use in each process, not counting the interpreter."""
MAX_DISK_BYTES = 8 << 30
"""The largest file that a process may write, and the most that a query may spill."""
LOAD_SECONDS = 120


def configure(folder: str, threads: int) -> dict[str, Any]:
    """DuckDB's settings with these limits. `folder`: for what does not fit into memory."""
    limits = {"memory_limit": f"{MAX_MEMORY_BYTES}B", "max_temp_directory_size": f"{MAX_DISK_BYTES}B"}
    return {**limits, "threads": str(threads), "temp_directory": folder}


class SqlColumn(Struct, frozen=True):
    name: str
    type: str


class TableInfo(Struct, frozen=True):
    """A table in an output. `name` begins with `output`: `output`, `output_2`, or `output_orders`."""

    name: str
    rows: int
    columns: tuple[SqlColumn, ...]
    title: str = ""
    bad_rows: int = 0
    note: str = ""
    row: str = ""
    """How to compute `_row` if it is not stored."""


class LoadedTables(Struct, frozen=True):
    """`kind` is the kind of text, in case it has no tables."""

    kind: str
    tables: tuple[TableInfo, ...] = ()
    failed: str = ""


class SqlDatabase(Struct, frozen=True):
    """The tables of one output, by the names under which a query finds them."""

    file: str
    tables: dict[str, TableInfo]

    @staticmethod
    def of(found: LoadedTables, file: str, name: str) -> SqlDatabase:
        """Makes the tables available under `name` instead of `output`."""
        return SqlDatabase(file, {rename(table.name, name): table for table in found.tables})


def rename(table: str, name: str) -> str:
    """If a query calls an output `orders`, its tables are `orders` for `output` and `orders_2` for `output_2`."""
    return name + table.removeprefix("output")


class QueryRequest(Struct, frozen=True):
    """`folder` is an empty folder. The result is written to `result` in it, with a line of JSON for each row."""

    sql: str
    databases: tuple[SqlDatabase, ...]
    folder: str
    seconds: float

    @property
    def processor_seconds(self) -> float:
        """The limit on processor time: DuckDB works in two threads."""
        return 2 * (self.seconds + 1)


class LoadRequest(Struct, frozen=True):
    """`source` is the text, `folder` an empty folder for temporary files, `database` the file to write, and `kind` the kind of
    text, if known. The same process then runs `query`, which calls the text `name`."""

    source: str
    folder: str
    database: str
    kind: str = ""
    query: QueryRequest | None = None
    name: str = ""


class SqlResult(Struct, frozen=True):
    columns: tuple[SqlColumn, ...] = ()
    rows: int = 0
    """The total number of rows. The file has fewer if not all fit."""
    failed: str = ""
