"""Six more databases: a railway's timetable, a club, a novel's characters, a company, a shop, and a game."""

from __future__ import annotations

import io
import json
import re
import zipfile
from typing import Any

from benchmarks.questions.material import Database
from benchmarks.questions.sources import Git, Package, Repository, Sources
from benchmarks.questions.tables import Row, Tables, read_copies, read_csv, run_script

TIMETABLE = Repository("BlinkTagInc/node-gtfs", "bca948862a21b462981d94edfa6c48b680c85b08", "MIT")
CLUB = Repository("AlisdairO/pgexercises", "c226557fd393c6c977d4ec398caa5a4cec2089c4", "BSD-2-Clause")
NOVELS = Repository("joakimskoog/AnApiOfIceAndFire", "e3b0ea1530a9cd889a8ca9f9ee34bb20e00cce61", "BSD-3-Clause")
COMPANY = Repository("oracle-samples/db-sample-schemas", "6660bad68c07bd143430ace58565b3f727e17263", "MIT")
GAME = Package("dotaconstants", "10.8.0", "MIT")

NOVEL_TABLES = (
    "books",
    "characters",
    "character_aliases",
    "character_played_by",
    "character_relationships",
    "character_titles",
    "houses",
    "house_relationships",
    "house_seats",
    "titles",
)

COLUMN = re.compile(r"^\s*[(,]?\s*(\w+)\s+(?:NUMBER|INTEGER|VARCHAR2|CHAR|DATE|BLOB|TIMESTAMP)\b", re.MULTILINE)
DATE = re.compile(r"TO_(?:DATE|TIMESTAMP)\s*\(\s*('[^']*')\s*,[^)]*\)")
VARIABLE = re.compile(r"UTL_RAW\.CAST_TO_RAW\(\s*\w+\s*\)")  # one product's details are in a variable


def load_timetable(sources: Sources) -> Tables:
    return read_feed(sources.git(TIMETABLE).read_bytes("src/test/fixture/caltrain_20160406.zip"))


def read_feed(packed: bytes) -> Tables:
    """The tables of a GTFS feed without the shapes of the tracks, which are coordinates alone."""
    with zipfile.ZipFile(io.BytesIO(packed)) as files:
        names = sorted(name for name in files.namelist() if name.endswith(".txt") and name != "shapes.txt")
        return {name.removesuffix(".txt"): read_csv(files.read(name).decode()) for name in names}


def load_club(sources: Sources) -> Tables:
    return read_copies(sources.git(CLUB).read("database/clubdata.sql"))


def load_novels(sources: Sources) -> Tables:
    git = sources.git(NOVELS)
    return {name: read_csv(git.read(f"src/AnApiOfIceAndFire.Setup/csv/{name}.csv")) for name in NOVEL_TABLES}


def load_company(sources: Sources) -> Tables:
    return run_oracle_scripts(sources.git(COMPANY), "human_resources/hr")


def load_shop(sources: Sources) -> Tables:
    return run_oracle_scripts(sources.git(COMPANY), "customer_orders/co")


def run_oracle_scripts(git: Git, name: str) -> Tables:
    """Tables with these columns and rows, without types and functions that SQLite does not know."""
    created = re.findall(r"^CREATE TABLE (\w+)\s*(\(.*?)^\s*\)", git.read(f"{name}_create.sql"), re.MULTILINE | re.DOTALL)
    inserted = re.findall(r"^\s*(INSERT INTO .*?\)\s*;)\s*$", git.read(f"{name}_populate.sql"), re.MULTILINE | re.DOTALL)
    creating = (f"CREATE TABLE {table} ({', '.join(COLUMN.findall(columns))});" for table, columns in created)
    rows = VARIABLE.sub("NULL", DATE.sub(r"\1", "\n".join(inserted))).replace("UTL_RAW.CAST_TO_RAW(", "(")
    tables = run_script("\n".join(creating) + rows)
    return {
        table: [{key: value for key, value in row.items() if value is not None} for row in found]
        for table, found in tables.items()
    }


def load_game(sources: Sources) -> Tables:
    def read(name: str) -> Any:
        return json.loads(sources.read_package(GAME, f"build/{name}.json"))

    heroes: dict[str, Row] = read("heroes")
    return {
        "heroes": list(heroes.values()),
        "hero_abilities": [{"hero": hero, "abilities": row["abilities"]} for hero, row in read("hero_abilities").items()],
        "abilities": [{"key": key} | row for key, row in read("abilities").items()],
        "items": [{"key": key} | row for key, row in read("items").items()],
    }


DATABASES = {
    database.name: database
    for database in (
        Database("timetable", TIMETABLE, load_timetable),
        Database("club", CLUB, load_club),
        Database("novels", NOVELS, load_novels),
        Database("company", COMPANY, load_company, indent=2),
        Database("shop", COMPANY, load_shop),
        Database("game", GAME, load_game),
    )
}
