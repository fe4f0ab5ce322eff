"""The loading process: recognise the text, find its tables, and write them to a database file with types."""

from __future__ import annotations

import csv
import itertools
import mmap
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, BinaryIO

import duckdb
import msgspec
from msgspec.structs import replace

from overspill.confined import limits
from overspill.lexical.kinds.kind import Layout
from overspill.sql.protocol import Column, Config, Database, Loaded, LoadRequest, TableInfo
from overspill.sql.querying import run
from overspill.sql.tables.aligned import find_aligned, find_listing, is_listing
from overspill.sql.tables.columns import write_expressions
from overspill.sql.tables.commits import find_commits
from overspill.sql.tables.delimited import find_delimited, find_few_rows
from overspill.sql.tables.elements import find_elements
from overspill.sql.tables.kind import find_kind
from overspill.sql.tables.logs import find_log
from overspill.sql.tables.markup import find_in_markdown, find_in_page
from overspill.sql.tables.nested import find_in_document, find_lines
from overspill.sql.tables.table import Found, Unreadable, limit_tables, quote_name
from overspill.tables.names import ROW, make_name
from overspill.text.humanize import quote_line

_MANY_COLUMNS = 200
_UNTYPED = "rows as they were read"
_TEMPORARY = "temp.rows"
_OVERHEAD_BYTES = 1 << 30  # of address space: libraries, stacks, and what DuckDB does not count
_BOM = b"\xef\xbb\xbf"


def main(requests: BinaryIO, answers: BinaryIO) -> None:
    request = msgspec.json.decode(requests.read(), type=LoadRequest)
    limits.limit_seconds(request.processor_seconds + (request.query.processor_seconds if request.query else 0))
    limits.limit_files(request.disk_bytes)
    limits.limit_memory(request.memory_bytes + _OVERHEAD_BYTES + 4 * Path(request.source).stat().st_size, reserve=1 << 30)
    found = load(request)
    answers.write(msgspec.json.encode(found) + b"\n")
    answers.flush()  # for it is loaded, whatever the query does
    if request.query and found.tables:
        limits.limit_more_seconds(request.query.processor_seconds)
        signal.setitimer(signal.ITIMER_REAL, request.query.seconds)  # which ends the process
        database = Database.of(found, request.database, request.name)
        query = replace(request.query, databases=(*request.query.databases, database))
        answers.write(msgspec.json.encode(run(query)) + b"\n")


def load(request: LoadRequest) -> Loaded:
    source, numbers = Path(request.source), itertools.count(1)
    if not source.stat().st_size:
        return Loaded("empty")

    def work() -> Path:
        return Path(request.folder, f"part{next(numbers)}")

    with source.open("rb") as file:
        text = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)  # open as long as the process: parts of it are in use
    kind = find_kind(text, request.kind)
    try:
        found = limit_tables(_find(kind.traits.layout, source, text, work))
        return Loaded(kind.name, _write(request, found)) if found else Loaded(kind.name)
    except (csv.Error, duckdb.Error, msgspec.DecodeError, RecursionError, Unreadable) as error:
        return Loaded(kind.name, failed=quote_line(str(error).partition("\n")[0]))
    except MemoryError:
        return Loaded(kind.name, failed="they need more memory than they may use. Read a part of it with grep, lines or query.")


def _find(layout: Layout, source: Path, text: mmap.mmap, work: Callable[[], Path]) -> list[Found]:
    match layout:
        case "document":
            return find_in_document(source, text, work)
        case "documents":
            return find_lines(source, text, work)
        case "rows":
            return find_delimited(source, work)
        case "page":
            return find_in_page(text, work)
        case "aligned":
            return find_aligned(text, work)
        case "elements":
            return find_elements(text, work)
        case "commits" if found := find_commits(_lines(text), work()):
            return found
        case _:
            lines = list(itertools.islice(_lines(text), 1000))
            if is_listing(lines):
                return find_listing(_lines(text), work())
            if layout == "events":
                return find_log(_lines(text), work())
            return find_in_markdown(_lines(text), work) or find_few_rows(source, work)


def _lines(text: mmap.mmap) -> Iterator[str]:
    position, size = 3 if text[:3] == _BOM else 0, len(text)
    while position < size:
        end = text.find(b"\n", position)
        end = size if end < 0 else end
        yield text[position:end].decode("utf-8", "replace").rstrip("\r").replace("\0", "")
        position = end + 1


def _write(request: LoadRequest, found: list[Found]) -> tuple[TableInfo, ...]:
    settings: Config = {
        "memory_limit": f"{request.memory_bytes}B",
        "threads": "2",
        "temp_directory": request.folder,
        "max_temp_directory_size": f"{request.disk_bytes}B",
    }
    with duckdb.connect(request.database, config=settings) as connection:
        connection.execute("SET TimeZone = 'UTC'")
        if request.query:  # which waits: compressing would take longer than all of its reading
            connection.execute("SET force_compression = 'uncompressed'")
        names = _name_tables(found)
        return tuple(_write_table(connection, table, name) for table, name in zip(found, names, strict=True))


def _write_table(connection: Any, found: Found, name: str) -> TableInfo:
    table = quote_name(name) if found.is_typed else _TEMPORARY
    found, rows = read_rows(connection, found, table)
    described = connection.execute(f"DESCRIBE {table}").fetchall()
    columns = [(column, kind) for column, kind, *_ in described if column not in found.hidden]
    expressions = write_expressions(connection, table, columns, is_typed=found.is_typed)
    if found.is_typed and not found.hidden and expressions == [(quote_name(column), column) for column, _ in columns]:
        # It is as it should be, and a query that asks for `_row` counts the rows.
        kept = Column(ROW, "BIGINT" if found.row.startswith("rowid") else "VARCHAR"), *(Column(*column) for column in columns)
        return TableInfo(name, rows, kept, found.title, found.bad_rows, found.note, found.row)
    if found.is_typed:
        connection.execute(f"ALTER TABLE {table} RENAME TO {quote_name(_UNTYPED)}")
        table = quote_name(_UNTYPED)
    if len(expressions) > _MANY_COLUMNS:
        connection.execute("SET disabled_optimizers = 'compressed_materialization'")  # its time grows with their square
    selected = ", ".join(f"{expression} AS {quote_name(column)}" for expression, column in [(found.row, ROW), *expressions])
    connection.execute(f"CREATE TABLE {quote_name(name)} AS SELECT {selected} FROM {table} ORDER BY rowid")
    connection.execute(f"DROP TABLE {table}")
    kinds = connection.execute(f"DESCRIBE {quote_name(name)}").fetchall()
    written = tuple(Column(column, kind) for column, kind, *_ in kinds)
    return TableInfo(name, rows, written, found.title, found.bad_rows, found.note)


def read_rows(connection: Any, found: Found, table: str = _TEMPORARY) -> tuple[Found, int]:
    """In the other way, if there is one, where DuckDB refuses rows or loses some. Those that stay lost are counted."""
    try:
        into = f"TABLE {table}" if table != _TEMPORARY else "TEMP TABLE rows"
        connection.execute(f"CREATE OR REPLACE {into} AS FROM {found.reader}")
    except duckdb.Error:
        if found.otherwise is None:
            raise
        return read_rows(connection, found.otherwise(), table)
    (rows,) = connection.execute(f"SELECT count(*) FROM {table}").fetchone()
    lost = 0 if found.rows is None else found.rows - rows
    if lost and found.otherwise is not None:
        return read_rows(connection, found.otherwise(), table)
    return replace(found, bad_rows=found.bad_rows + max(0, lost)), rows


def _name_tables(found: list[Found]) -> list[str]:
    """`output` if there is one; else each by its title, or by its number."""
    if len(found) == 1:
        return ["output"]
    names: list[str] = []
    for number, table in enumerate(found, 1):
        name = f"output_{make_name(table.title) or number}"
        names.append(name if name not in names else f"output_{number}")
    return names
