"""The query process: open the loaded tables, give up everything else, and run one statement."""

from __future__ import annotations

import json
import math
import os
from datetime import datetime
from pathlib import Path
from typing import Any, BinaryIO, cast

import duckdb
import msgspec

from overspill.confined import limits
from overspill.sql.protocol import Column, Config, QueryRequest, Result
from overspill.sql.tables.table import quote, quote_name

_ROWS_AT_A_TIME = 2_000
_MAX_ERROR_CHARS = 600
_OVERHEAD_BYTES = 3 << 29  # of address space: libraries, stacks, and what DuckDB does not count
_SETTINGS = (
    "SET python_enable_replacements = false",
    "SET enable_external_access = false",
    "SET lock_configuration = true",
)


def main(requests: BinaryIO, answers: BinaryIO) -> None:
    request = msgspec.json.decode(requests.read(), type=QueryRequest)
    limits.limit_seconds(request.processor_seconds)
    limits.limit_files(request.disk_bytes)
    answers.write(msgspec.json.encode(run(request)) + b"\n")


def run(request: QueryRequest) -> Result:
    os.chdir(request.folder)
    try:
        connection = _open(request)
        limits.limit_memory(request.memory_bytes + _OVERHEAD_BYTES)
        _check(request.sql)
        return _answer(connection.execute(request.sql), request.result_bytes)
    except Refused as error:
        return Result(failed=str(error))
    except duckdb.Error as error:
        return Result(failed=_explain(error))
    except MemoryError:
        return Result(failed="The query needs more memory than it may use.")


class Refused(Exception):
    """The statement does something else than reading."""


def _open(request: QueryRequest) -> Any:
    settings: Config = {
        "memory_limit": f"{request.memory_bytes}B",
        "threads": "2",
        "temp_directory": "spill",
        "max_temp_directory_size": f"{request.disk_bytes}B",
        "autoinstall_known_extensions": "false",
        "autoload_known_extensions": "false",
        "allow_community_extensions": "false",
    }
    connection = duckdb.connect(":memory:", config=settings)
    connection.execute("SET TimeZone = 'UTC'")
    for number, database in enumerate(request.databases):
        connection.execute(f"ATTACH {quote(database.file)} AS loaded{number} (READ_ONLY)")
        for name, inside in database.names.items():
            connection.execute(f"CREATE VIEW {quote_name(name)} AS FROM loaded{number}.main.{quote_name(inside)}")
    for setting in _SETTINGS:
        connection.execute(setting)
    return connection


def _check(sql: str) -> None:
    statements = duckdb.extract_statements(sql)
    if len(statements) != 1:
        raise Refused("Give one statement." if statements else "There is no statement.")
    if statements[0].type != duckdb.StatementType.SELECT:
        kind = statements[0].type.name
        raise Refused(f"{kind} is not possible here: use SELECT, WITH, VALUES, DESCRIBE, SHOW or SUMMARIZE.")


def _answer(result: Any, max_bytes: int) -> Result:
    columns = tuple(Column(str(name), str(kind)) for name, kind, *_ in result.description or ())
    names = _distinguish([column.name for column in columns])
    written = rows = size = 0
    with Path("result").open("wb") as file:
        while block := result.fetchmany(_ROWS_AT_A_TIME):
            for row in block:
                rows += 1
                if size <= max_bytes:
                    line = json.dumps(dict(zip(names, map(_simplify, row), strict=True)), ensure_ascii=False).encode() + b"\n"
                    size += len(line)
                    if size <= max_bytes:
                        file.write(line)
                        written += 1
    return Result(tuple(Column(name, column.type) for name, column in zip(names, columns, strict=True)), rows, written)


def _distinguish(names: list[str]) -> list[str]:
    """The result becomes lines of JSON, in which no key may occur twice."""
    seen: dict[str, int] = {}
    found: list[str] = []
    for name in names:
        seen[name] = seen.get(name, 0) + 1
        found.append(name if seen[name] == 1 else f"{name}_{seen[name]}")
    return found


def _simplify(value: Any) -> Any:
    """As JSON has it. What JSON cannot say is text as SQL writes it."""
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


def _explain(error: duckdb.Error) -> str:
    text = str(error).split("\n\nLINE ")[0].strip()
    return text[:_MAX_ERROR_CHARS]
