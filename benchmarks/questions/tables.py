"""Databases of public repositories and packages as tables of rows, and as the JSON that a tool would give."""

from __future__ import annotations

import csv
import io
import json
import re
import sqlite3
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

from benchmarks.questions.sources import Package, Repository, Sources

Row: TypeAlias = dict[str, Any]
Tables: TypeAlias = dict[str, list[Row]]

CHINOOK = Repository("lerocha/chinook-database", "7f67772503d71ba90f19283c38e93923addb43fa", "MIT")
NORTHWIND = Repository("jpwhite3/northwind-SQLite3", "4f56e7f5906dfd23b25244c5bfe8fb5da6402efd", "MIT")
SAKILA = Repository("jOOQ/sakila", "e089a5b1ec9af0df7a9c6a5d47d49fa1736a4e84", "BSD-2-Clause")
POKEAPI = Repository("PokeAPI/pokeapi", "bbef3d99ddfa8277f726414c89b471267aef8a8e", "BSD-3-Clause")
SWAPI = Repository("phalt/swapi", "db826e26650c7a050b4074ba651242ed2a0b2f1b", "BSD-3-Clause")
MINECRAFT = Package("minecraft-data", "3.117.0", "MIT")

SAKILA_TABLES = ("language", "country", "city", "address", "actor", "category", "film", "film_actor", "film_category", "customer")
POKEAPI_TABLES = (
    "abilities",
    "items",
    "locations",
    "pokemon",
    "pokemon_abilities",
    "pokemon_evolution",
    "pokemon_items",
    "pokemon_species",
    "regions",
)
SWAPI_FIXTURES = ("films", "people", "planets", "species", "starships", "transport", "vehicles")


@dataclass(frozen=True)
class Database:
    name: str
    source: Repository | Package
    load: Callable[[Sources], Tables]
    indent: int | None = None  # None: a row a line


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


def load_chinook(sources: Sources) -> Tables:
    return run_script(sources.git(CHINOOK).read("ChinookDatabase/DataSources/Chinook_Sqlite.sql").removeprefix("\ufeff"))


def load_northwind(sources: Sources) -> Tables:
    tables = run_script(sources.git(NORTHWIND).read("src/create.sql"))
    return {name: rows for name, rows in tables.items() if rows}


def load_sakila(sources: Sources) -> Tables:
    script = sources.git(SAKILA).read("postgres-sakila-db/postgres-sakila-insert-data-using-copy.sql")
    copies = re.findall(r"^COPY public\.(\w+) \((.*?)\) FROM stdin;\n(.*?)^\\\.$", script, re.MULTILINE | re.DOTALL)
    tables: Tables = {}
    for name, columns, lines in copies:
        if name in SAKILA_TABLES:
            keys = columns.split(", ")
            rows = (dict(zip(keys, line.split("\t"), strict=True)) for line in lines.splitlines())
            tables[name] = [{key: as_value(value) for key, value in row.items() if key != "fulltext"} for row in rows]
    return tables


def load_pokeapi(sources: Sources) -> Tables:
    git = sources.git(POKEAPI)
    read = {name: csv.DictReader(io.StringIO(git.read(f"data/v2/csv/{name}.csv"))) for name in POKEAPI_TABLES}
    return {name: [{key: as_value(value) for key, value in row.items() if value} for row in rows] for name, rows in read.items()}


def load_swapi(sources: Sources) -> Tables:
    git = sources.git(SWAPI)
    return {name: json.loads(git.read(f"resources/fixtures/{name}.json")) for name in SWAPI_FIXTURES}


def load_minecraft(sources: Sources) -> Tables:
    folder = "minecraft-data/data/pc/1.20"
    items = json.loads(sources.read_package(MINECRAFT, f"{folder}/items.json"))
    recipes: dict[str, list[Row]] = json.loads(sources.read_package(MINECRAFT, f"{folder}/recipes.json"))
    return {"items": items, "recipes": [recipe for listed in recipes.values() for recipe in listed]}


def as_value(text: str) -> Any:
    if text == "\\N":
        return None
    return int(text) if re.fullmatch(r"-?[1-9]\d{0,9}|0", text) else text


DATABASES = {
    database.name: database
    for database in (
        Database("chinook", CHINOOK, load_chinook),
        Database("northwind", NORTHWIND, load_northwind),
        Database("sakila", SAKILA, load_sakila),
        Database("pokeapi", POKEAPI, load_pokeapi),
        Database("swapi", SWAPI, load_swapi, indent=2),
        Database("minecraft", MINECRAFT, load_minecraft),
    )
}


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
