"""Six sample databases of public repositories and packages."""

from __future__ import annotations

import json

from benchmarks.questions.material import Database
from benchmarks.questions.sources import Package, Repository, Sources
from benchmarks.questions.tables import Row, Tables, read_copies, read_csv, run_script

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


def load_chinook(sources: Sources) -> Tables:
    return run_script(sources.git(CHINOOK).read("ChinookDatabase/DataSources/Chinook_Sqlite.sql").removeprefix("\ufeff"))


def load_northwind(sources: Sources) -> Tables:
    tables = run_script(sources.git(NORTHWIND).read("src/create.sql"))
    return {name: rows for name, rows in tables.items() if rows}


def load_sakila(sources: Sources) -> Tables:
    tables = read_copies(sources.git(SAKILA).read("postgres-sakila-db/postgres-sakila-insert-data-using-copy.sql"))
    chosen = {name: rows for name, rows in tables.items() if name in SAKILA_TABLES}
    return {name: [{key: row[key] for key in row if key != "fulltext"} for row in rows] for name, rows in chosen.items()}


def load_pokeapi(sources: Sources) -> Tables:
    git = sources.git(POKEAPI)
    return {name: read_csv(git.read(f"data/v2/csv/{name}.csv")) for name in POKEAPI_TABLES}


def load_swapi(sources: Sources) -> Tables:
    git = sources.git(SWAPI)
    return {name: json.loads(git.read(f"resources/fixtures/{name}.json")) for name in SWAPI_FIXTURES}


def load_minecraft(sources: Sources) -> Tables:
    folder = "minecraft-data/data/pc/1.20"
    items = json.loads(sources.read_package(MINECRAFT, f"{folder}/items.json"))
    recipes: dict[str, list[Row]] = json.loads(sources.read_package(MINECRAFT, f"{folder}/recipes.json"))
    return {"items": items, "recipes": [recipe for listed in recipes.values() for recipe in listed]}


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
