"""The loading process: recognises the text, finds its tables, and writes them to a database file with types."""

from __future__ import annotations

import itertools
import mmap
import signal
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO

import msgspec
from msgspec.structs import replace

from overspill.confined import limits
from overspill.lexical.kinds import find_kind
from overspill.lexical.kinds.kind import Layout
from overspill.sql.at_once import read_delimited_at_once, read_json_at_once
from overspill.sql.columns import read_types
from overspill.sql.duck import duckdb
from overspill.sql.protocol import (
    LOAD_SECONDS,
    MAX_DISK_BYTES,
    MAX_MEMORY_BYTES,
    LoadedTables,
    LoadRequest,
    SqlColumn,
    SqlDatabase,
    TableInfo,
    configure,
)
from overspill.sql.querying import describe, run
from overspill.sql.statements import quote_name
from overspill.sql.writing import RowWriter, TableSource, Work, write_rows
from overspill.tables.json_tables import JsonTable, find_in_few, find_json_tables, is_list_of_rows, read_json_table
from overspill.tables.json_text import hold_json
from overspill.tables.rows import read_tables
from overspill.tables.table import MAX_TABLES, ROW, FoundTable, JsonRows, Unreadable, make_name, write_note
from overspill.text.humanize import quote_line
from overspill.text.lenient_json import UNREADABLE

_MANY_COLUMNS = 200
_MOST_CHECKED_COLUMNS = 40
_SAMPLED_ROWS = 1_000
_TEMPORARY = "temp.rows"
_OVERHEAD_BYTES = 2 << 30  # of address space: libraries, stacks, and what DuckDB does not count


def main(requests: BinaryIO, answers: BinaryIO) -> None:
    request = msgspec.json.decode(requests.read(), type=LoadRequest)
    limits.limit_seconds(2 * LOAD_SECONDS + (request.query.processor_seconds if request.query else 0))  # in two threads
    limits.limit_files(MAX_DISK_BYTES)
    limits.limit_memory(MAX_MEMORY_BYTES + _OVERHEAD_BYTES + 4 * Path(request.source).stat().st_size, reserve=1 << 30)
    found = load(request)
    answers.write(msgspec.json.encode(found) + b"\n")
    answers.flush()  # the tables are loaded, even if the query fails
    if request.query and found.tables:
        limits.limit_more_seconds(request.query.processor_seconds)
        signal.setitimer(signal.ITIMER_REAL, request.query.seconds)  # ends the process
        database = SqlDatabase.of(found, request.database, request.name)
        query = replace(request.query, databases=(*request.query.databases, database))
        answers.write(msgspec.json.encode(run(query)) + b"\n")


def load(request: LoadRequest) -> LoadedTables:
    source, numbers = Path(request.source), itertools.count(1)
    if not source.stat().st_size:
        return LoadedTables("empty")
    with source.open("rb") as file:
        text = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)  # never closed, because parts of it stay in use
    kind = find_kind(text, request.kind)
    try:
        found = _find(kind.traits.layout, source, text, lambda: Path(request.folder, f"part{next(numbers)}"))
        if len(found) > MAX_TABLES:
            found = found[:MAX_TABLES]
            found[-1] = _add_note(found[-1], "Tables after this one are not loaded.")
        return LoadedTables(kind.name, _write(request, found)) if found else LoadedTables(kind.name)
    except (MemoryError, duckdb.OutOfMemoryException):  # DuckDB's advice is to change settings, which is not possible here
        return LoadedTables(
            kind.name, failed="they need more memory than they may use. Read a part of it with grep, lines or query."
        )
    except (duckdb.Error, *UNREADABLE, Unreadable) as error:
        return LoadedTables(kind.name, failed=quote_line(str(error).partition("\n")[0]))


def _find(layout: Layout, source: Path, text: mmap.mmap, work: Work) -> list[TableSource]:
    def write() -> TableSource:
        return write_rows(read_tables(text, layout), work)[0]

    found, whole = None, JsonTable(memoryview(text))
    if layout == "rows":
        found = read_delimited_at_once(text, source, write)
    elif layout == "documents" and text.find(b"\n\n") < 0 and text.find(b"\n\r\n") < 0 and text[:1] not in b"\r\n\xef":
        found = read_json_at_once(source, text, whole, write, is_lines=True)  # without blank lines, row and line numbers agree
    elif layout == "document":
        if is_list_of_rows(whole.raw) and not find_in_few(whole.raw):
            found = read_json_at_once(source, text, whole, lambda: _write_json(whole, work))
        if not found:
            return _find_in_document(text, work)
    return [found] if found else write_rows(read_tables(text, layout), work)


def _find_in_document(text: mmap.mmap, work: Work) -> list[TableSource]:
    held = hold_json(text)
    found: list[TableSource] = []
    for table in itertools.islice(find_json_tables(held.documents), MAX_TABLES + 1):
        read = None
        if table.shape == "list":
            file, raw = work(), bytes(table.raw)
            file.write_bytes(raw)
            read = read_json_at_once(file, raw, table, partial(_write_json, table, work))
        found.append(read or _write_json(table, work))
    if not found:
        first = held.documents[0]
        found = [_write_json(JsonTable(first, shape="list" if bytes(first[:1]) == b"[" else "value"), work)]
    found[0] = _add_note(found[0], write_note(held.omissions))
    return found


def _write_json(table: JsonTable, work: Work) -> TableSource:
    """Write JSON that DuckDB cannot read exactly: repeated keys, numbers that do not fit, lone surrogates, rows that are not
    objects, lines that are not JSON, and too many columns."""
    writer = RowWriter(work(), FoundTable(JsonRows(), title=table.title))
    for row in read_json_table(table):
        writer.write(row)
    return writer.finish()


def _add_note(found: TableSource, note: str) -> TableSource:
    return replace(found, note=f"{found.note} {note}".strip())


def _write(request: LoadRequest, found: list[TableSource]) -> tuple[TableInfo, ...]:
    with duckdb.connect(request.database, config=configure(request.folder, 2)) as connection:
        connection.execute("SET TimeZone = 'UTC'")
        connection.execute("SET force_compression = 'uncompressed'")  # compression would take longer than all reading
        names = ["output"] if len(found) == 1 else []
        for number, table in enumerate(found if not names else (), 1):  # named by title or else by number
            name = f"output_{make_name(table.title) or number}"
            names.append(name if name not in names else f"output_{number}")
        return tuple(_write_table(connection, table, name) for table, name in zip(found, names, strict=True))


def _write_table(connection: Any, found: TableSource, name: str) -> TableInfo:
    """Writes a table in one pass if all rows are like the first ones. If not, first reads all rows to find the column types."""
    rows, notes, target = None, list[str](), quote_name(name)
    with suppress(duckdb.Error):
        connection.execute(f"CREATE OR REPLACE TEMP TABLE rows AS FROM {found.reader} LIMIT {_SAMPLED_ROWS}")
        rows, notes = _fill_table(connection, found, target, found.reader)
    if rows is None or (found.rows is not None and found.rows != rows):
        connection.execute(f"DROP TABLE IF EXISTS {target}")
        found, _ = read_rows(connection, found)
        rows, notes = _fill_table(connection, found, target, _TEMPORARY)
    connection.execute(f"DROP TABLE {_TEMPORARY}")
    columns, place = describe(connection, target), "" if found.hidden else found.row
    if place:  # a query computes it
        columns = (SqlColumn(ROW, "BIGINT" if place.startswith("rowid") else "VARCHAR"), *columns)
    return TableInfo(name, rows, columns, found.title, found.bad_rows, " ".join(filter(None, (found.note, *notes))), place)


def _fill_table(connection: Any, found: TableSource, target: str, source: str) -> tuple[int, list[str]]:
    """Copies rows to the target. Returns their number and notes on columns. The temporary table has all or the first rows.
    Raises an error if further rows differ from these."""
    is_checked = source != _TEMPORARY
    columns = [(each.name, each.type) for each in describe(connection, _TEMPORARY) if each.name not in found.hidden]
    texts = sum(kind == "VARCHAR" for _, kind in columns)
    if is_checked and texts > _MOST_CHECKED_COLUMNS:  # their patterns do not fit in memory together
        raise duckdb.InvalidInputException("There are too many columns.")
    typed, notes = read_types(connection, _TEMPORARY, columns, is_typed=found.is_typed, is_checked=is_checked)
    if is_checked and notes:  # notes must count the values of all rows
        raise duckdb.InvalidInputException("Some of the first rows are unlike the others.")
    if len(typed) > _MANY_COLUMNS:
        connection.execute("SET disabled_optimizers = 'compressed_materialization'")  # takes time quadratic in columns
    places = [(found.row, ROW)] if found.hidden else []
    selected = ", ".join(f"{expression} AS {quote_name(column)}" for expression, column in [*places, *typed])
    connection.execute("SET threads = 1")  # two threads would write everything twice to keep the order of rows
    (rows,) = connection.execute(f"CREATE TABLE {target} AS SELECT {selected} FROM {source}").fetchone()
    return rows, notes


def read_rows(connection: Any, found: TableSource) -> tuple[TableSource, int]:
    """Reads the rows; with `otherwise`, if there is one, when DuckDB refuses or loses any. Counts rows that are still lost."""
    connection.execute("SET threads = 2")
    try:
        (rows,) = connection.execute(f"CREATE OR REPLACE TEMP TABLE rows AS FROM {found.reader}").fetchone()
    except duckdb.Error:
        if found.otherwise is None:
            raise
        return read_rows(connection, found.otherwise())
    lost = 0 if found.rows is None else found.rows - rows
    if lost and found.otherwise is not None:
        return read_rows(connection, found.otherwise())
    return replace(found, bad_rows=found.bad_rows + max(0, lost)), rows
