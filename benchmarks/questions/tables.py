"""Databases as tables of rows, and as the JSON that a tool would give."""

from __future__ import annotations

import csv
import io
import json
import re
import sqlite3
from typing import Any, TypeAlias

Row: TypeAlias = dict[str, Any]
Tables: TypeAlias = dict[str, list[Row]]


def run_script(script: str) -> Tables:
    """What a script for SQLite creates, without pictures."""
    connection = sqlite3.connect(":memory:")
    connection.executescript(script)
    tables: Tables = {}
    for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name").fetchall():
        if not name.startswith("sqlite_"):
            cursor = connection.execute(f'SELECT * FROM "{name}"')  # noqa: S608
            columns = [column[0] for column in cursor.description]
            rows = (dict(zip(columns, row, strict=True)) for row in cursor)
            tables[name] = [{key: value for key, value in row.items() if not isinstance(value, bytes)} for row in rows]
    return tables


def read_copies(script: str) -> Tables:
    """The rows that a dump for PostgreSQL copies."""
    copies = re.findall(r"^COPY (?:public\.)?(\w+) \((.*?)\) FROM stdin;\n(.*?)^\\\.$", script, re.MULTILINE | re.DOTALL)
    tables: Tables = {}
    for name, columns, lines in copies:
        rows = (dict(zip(columns.split(", "), line.split("\t"), strict=True)) for line in lines.splitlines())
        tables[name] = [{key: as_value(value) for key, value in row.items()} for row in rows]
    return tables


def read_csv(text: str) -> list[Row]:
    """Without the cells that are empty."""
    rows = csv.DictReader(io.StringIO(text.removeprefix("\ufeff")))
    return [{key: as_value(value) for key, value in row.items() if value} for row in rows]


def as_value(text: str) -> Any:
    if text == "\\N":
        return None
    return int(text) if re.fullmatch(r"-?[1-9]\d{0,9}|0", text) else text


def render(tables: Tables, indent: int | None) -> str:
    if indent:
        return json.dumps(tables, indent=indent, ensure_ascii=False)
    parts: list[str] = []
    for name, rows in tables.items():
        lines = ",\n".join(json.dumps(row, ensure_ascii=False) for row in rows)
        parts.append(f"{json.dumps(name)}: [\n{lines}\n]")
    return "{" + ",\n".join(parts) + "}\n"


def open_tables(tables: Tables) -> sqlite3.Connection:
    """The tables in SQLite; a column that holds a list or an object has its JSON, for `json_each`."""
    connection = sqlite3.connect(":memory:")
    for name, rows in tables.items():
        columns = list(dict.fromkeys(key for row in rows for key in row))
        quoted = ", ".join(f'"{column}"' for column in columns)
        connection.execute(f'CREATE TABLE "{name}" ({quoted})')
        marks = ", ".join("?" * len(columns))
        values = ([as_cell(row.get(column)) for column in columns] for row in rows)
        connection.executemany(f'INSERT INTO "{name}" VALUES ({marks})', values)  # noqa: S608
    return connection


def as_cell(value: Any) -> Any:
    return json.dumps(value) if isinstance(value, dict | list) else value
