"""The query process: opens the loaded tables, gives up access to everything else, and runs one statement."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterable
from contextlib import suppress
from datetime import datetime
from importlib import import_module
from pathlib import Path
from typing import Any, BinaryIO, cast

import msgspec

from overspill.confined import limits
from overspill.confined.landlock import list_threads, open_only_below
from overspill.sql.duck import duckdb
from overspill.sql.protocol import MAX_DISK_BYTES, MAX_MEMORY_BYTES, QueryRequest, SqlColumn, SqlDatabase, SqlResult, configure
from overspill.sql.statements import Refused, check_statement, quote, quote_error, quote_name
from overspill.tables.table import ROW

MAX_RESULT_BYTES = 64 << 20
"""The largest result to write to a file. Further rows are only counted."""
_ROWS_AT_A_TIME = 2_000
_OVERHEAD_BYTES = 3 << 29  # of address space: libraries, stacks, and what DuckDB does not count
_SPILL = "spill"
_IMPORTED_LATE = ("decimal", "pytz", "uuid")  # DuckDB imports these for some types
_SETTINGS = (
    "SET threads = 2",
    "SET TimeZone = 'UTC'",
    "SET python_enable_replacements = false",
    "SET enable_external_access = false",
    "SET lock_configuration = true",
)
_TABLES = "SELECT database_name, schema_name, table_name, estimated_size FROM duckdb_tables()"
_CHANGED = "The loaded tables have changed since they were loaded, so they are not used. Ask in a new session."


def main(requests: BinaryIO, answers: BinaryIO) -> None:
    request = msgspec.json.decode(requests.read(), type=QueryRequest)
    limits.limit_seconds(request.processor_seconds)
    limits.limit_files(MAX_DISK_BYTES)
    answers.write(msgspec.json.encode(run(request)) + b"\n")


def run(request: QueryRequest) -> SqlResult:
    os.chdir(request.folder)
    Path(_SPILL).mkdir()
    try:
        with Path("result").open("wb") as file:
            connection = open_tables(request)
            check_statement(connection, request.sql, [name for database in request.databases for name in database.tables])
            return _answer(_execute(connection, request.sql), file)
    except Refused as error:
        return SqlResult(failed=str(error))
    except (MemoryError, duckdb.OutOfMemoryException, duckdb.IOException):  # it opens files only to spill memory
        return SqlResult(
            failed="The query needs more memory than it may use. Select fewer rows or columns, or sort and group less."
        )
    except duckdb.Error as error:
        return SqlResult(failed=quote_error(str(error)))


def open_tables(request: QueryRequest) -> Any:
    """A connection with the tables attached. Gives up access to everything else."""
    extensions = ("autoinstall_known_extensions", "autoload_known_extensions", "allow_community_extensions")
    settings = configure(_SPILL, 1) | dict.fromkeys(extensions, "false")
    for module in _IMPORTED_LATE:
        with suppress(ImportError):
            import_module(module)
    threads = list_threads()
    connection = duckdb.connect(":memory:", config=settings)
    try:
        for number, database in enumerate(request.databases):
            connection.execute(f"ATTACH {quote(database.file)} AS loaded{number} (READ_ONLY)")
        with suppress(duckdb.CatalogException):  # this version has no threads for files
            connection.execute("SET async_threads = 0")
        if not open_only_below(_SPILL, threads):
            limits.open_no_more()  # not even to spill
        limits.limit_memory(MAX_MEMORY_BYTES + _OVERHEAD_BYTES)
        for setting in _SETTINGS:
            connection.execute(setting)
        _compare(connection, request.databases)
    except duckdb.Error:
        raise Refused(_CHANGED) from None
    for number, database in enumerate(request.databases):
        for name, table in database.tables.items():
            computed = f'SELECT {table.row} AS "{ROW}", *' if table.row else ""
            connection.execute(f"CREATE VIEW {quote_name(name)} AS {computed} FROM loaded{number}.main.{quote_name(table.name)}")
    return connection


def _compare(connection: Any, databases: Iterable[SqlDatabase]) -> None:
    """Refuses tables that have changed since they were loaded."""
    loaded = {
        (f"loaded{number}", "main", table.name): table for number, each in enumerate(databases) for table in each.tables.values()
    }
    if {(*place, table.rows) for place, table in loaded.items()} != set(connection.execute(_TABLES).fetchall()):
        raise Refused(_CHANGED)
    for place, table in loaded.items():
        if describe(connection, ".".join(map(quote_name, place))) != table.columns[bool(table.row) :]:
            raise Refused(_CHANGED)


def describe(connection: Any, table: str) -> tuple[SqlColumn, ...]:
    """The columns of a table. DuckDB's list of all columns is slower, because it also reads its own views."""
    return tuple(SqlColumn(column, kind) for column, kind, *_ in connection.execute(f"DESCRIBE {table}").fetchall())


def _execute(connection: Any, sql: str) -> Any:
    """Times with a zone are converted to text here, because DuckDB needs another package to convert them to Python's."""
    result = connection.execute(sql)
    zoned = ["WITH TIME ZONE" in str(kind) for _, kind, *_ in result.description or ()]
    if not any(zoned):
        return result
    columns = enumerate(zip(zoned, result.description, strict=True), 1)
    cells = [
        f"CAST(#{n} AS VARCHAR) AS {quote_name(str(name))}" if is_zoned else f"#{n}" for n, (is_zoned, (name, *_)) in columns
    ]
    connection.execute(f'CREATE TEMP VIEW "the result" AS {sql}')  # no loaded table has a space in its name
    return connection.execute(f'SELECT {", ".join(cells)} FROM temp.main."the result"')


def _answer(result: Any, file: BinaryIO) -> SqlResult:
    columns = tuple(SqlColumn(str(name), str(kind)) for name, kind, *_ in result.description or ())
    names = _distinguish([column.name for column in columns])
    rows = size = 0
    while block := result.fetchmany(_ROWS_AT_A_TIME):
        for row in block:
            rows += 1
            if size <= MAX_RESULT_BYTES:
                line = json.dumps(dict(zip(names, map(_simplify, row), strict=True)), ensure_ascii=False).encode() + b"\n"
                size += len(line)
                if size <= MAX_RESULT_BYTES:
                    file.write(line)
    return SqlResult(tuple(SqlColumn(name, column.type) for name, column in zip(names, columns, strict=True)), rows)


def _distinguish(names: list[str]) -> list[str]:
    """Makes names unique, because the result becomes JSON, in which keys must not repeat. Keeps names that occur once."""
    seen = dict.fromkeys(names, 0)
    found: list[str] = []
    for name in names:
        seen[name] += 1
        chosen = name
        while seen[name] > 1 and (chosen := f"{name}_{seen[name]}") in seen:
            seen[name] += 1
        seen.setdefault(chosen, 1)
        found.append(chosen)
    return found


def _simplify(value: Any) -> Any:
    """Converts a value for JSON. Values that JSON cannot represent become text as in SQL."""
    if value is None or isinstance(value, bool | str | int):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, dict):
        members = cast("dict[Any, Any]", value)
        return {str(_simplify(key)): _simplify(inner) for key, inner in members.items()}
    if isinstance(value, list | tuple):
        return [_simplify(inner) for inner in cast("list[Any]", value)]
    if isinstance(value, bytes):
        return "\\x" + value.hex()
    return value.isoformat(" ") if isinstance(value, datetime) else str(value)
