"""Six more databases: a publisher's, the world's countries, French towns, a maker of bicycles, baseball, and languages."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Sequence

from benchmarks.questions.material import Database
from benchmarks.questions.sources import Repository, Sources
from benchmarks.questions.tables import Row, Tables, as_value, read_copies, read_csv, run_script

PUBLISHING = Repository("microsoft/sql-server-samples", "481085dc95720244a359f1311afd6003e0bcc09c", "MIT")
SAMPLES = Repository("morenoh149/postgresDBSamples", "2bdc9539762092912655e1b82b7433d3151389dc", "not stated")
BASEBALL = Repository("chadwickbureau/baseballdatabank", "ef68908c2d0e12dfbab0480e5562894fd823b5f8", "CC-BY-SA-3.0")
LANGUAGES = Repository("cldf-datasets/wals", "3a9efd69074e1ced1da69e31b9aebfd55006eb70", "CC-BY-4.0")

PUBLISHING_TABLES = ("authors", "publishers", "titles", "titleauthor", "stores", "sales", "discounts", "jobs", "employee")
BICYCLE_TABLES = (
    "Department",
    "Employee",
    "EmployeeDepartmentHistory",
    "Location",
    "Product",
    "ProductCategory",
    "ProductInventory",
    "ProductModel",
    "ProductSubcategory",
    "ProductVendor",
    "PurchaseOrderHeader",
    "SalesTaxRate",
    "ShipMethod",
    "StateProvince",
    "UnitMeasure",
    "Vendor",
)
BICYCLE_NOISE = ("rowguid", "ModifiedDate", "CatalogDescription", "Instructions")
BASEBALL_TABLES = (
    "AwardsManagers",
    "HomeGames",
    "Managers",
    "Parks",
    "People",
    "SeriesPost",
    "TeamsFranchises",
)
LANGUAGE_TABLES = ("areas", "chapters", "codes", "contributors", "countries", "examples", "languages", "parameters")

TRANSACT_COLUMN = re.compile(r"^   (?!CONSTRAINT)(\w+) +\w+", re.MULTILINE)
CURRENCY = re.compile(r"\$(?=\d)")
COLUMN = re.compile(r"^ {4}(?!CONSTRAINT)(\w+) ", re.MULTILINE)


def load_publishing(sources: Sources) -> Tables:
    script = sources.git(PUBLISHING).read("samples/databases/northwind-pubs/instpubs.sql").replace("\r", "")
    return read_publishing(script, PUBLISHING_TABLES)


def read_publishing(script: str, names: Sequence[str]) -> Tables:
    """Transact-SQL as SQLite reads it: without types and signs of a currency; jobs are numbered as they come."""
    created = dict(re.findall(r"^CREATE TABLE (\w+)\n\((.*?)^\)", script, re.MULTILINE | re.DOTALL))
    inserted = re.findall(r"^insert ((\w+)[^']*?)\s+(values ?\(.*?\))\s*$", script, re.MULTILINE | re.DOTALL)
    creating = [f"CREATE TABLE {name} ({', '.join(TRANSACT_COLUMN.findall(created[name]))});" for name in names]
    rows = [
        f"INSERT INTO {'jobs (job_desc, min_lvl, max_lvl)' if name == 'jobs' else into} {CURRENCY.sub('', values)};"
        for into, name, values in inserted
        if name in names
    ]
    return run_script("\n".join([*creating, *rows, "UPDATE jobs SET job_id = rowid;"]))


def load_world(sources: Sources) -> Tables:
    tables = read_copies(sources.git(SAMPLES).read("worldDB-1.0/world.sql"))
    return {name: [{key.strip('"'): row[key] for key in row} for row in rows] for name, rows in tables.items()}


def load_towns(sources: Sources) -> Tables:
    name = "french-towns-communes-francaises"
    return read_copies(sources.git(SAMPLES).read(f"{name}/{name}.sql"))


def load_bicycles(sources: Sources) -> Tables:
    """Its files have no line with the columns; the script that creates the tables names them."""
    git = sources.git(SAMPLES)
    script = git.read("adventureworks/install.sql")
    created = dict(re.findall(r"^  CREATE TABLE (\w+)\(\n(.*?)^  \)", script, re.MULTILINE | re.DOTALL))
    return {
        name: read_tabbed(git.read(f"adventureworks/data/{name}.csv"), COLUMN.findall(created[name])) for name in BICYCLE_TABLES
    }


def read_tabbed(text: str, columns: list[str]) -> list[Row]:
    rows = csv.DictReader(io.StringIO(text.removeprefix("\ufeff")), columns, delimiter="\t")
    return [{key: as_value(value) for key, value in row.items() if value and key not in BICYCLE_NOISE} for row in rows]


def load_baseball(sources: Sources) -> Tables:
    """Of 20,000 people those who managed a team."""
    git = sources.git(BASEBALL)
    tables = {name: read_csv(git.read(f"core/{name}.csv")) for name in BASEBALL_TABLES}
    managers = {row["playerID"] for row in tables["Managers"]}
    return tables | {"People": [row for row in tables["People"] if row["playerID"] in managers]}


def load_languages(sources: Sources) -> Tables:
    git = sources.git(LANGUAGES)
    return {name: read_csv(git.read(f"cldf/{name}.csv")) for name in LANGUAGE_TABLES}


DATABASES = {
    database.name: database
    for database in (
        Database("publishing", PUBLISHING, load_publishing, indent=2),
        Database("world", SAMPLES, load_world),
        Database("towns", SAMPLES, load_towns),
        Database("bicycles", SAMPLES, load_bicycles),
        Database("baseball", BASEBALL, load_baseball),
        Database("languages", LANGUAGES, load_languages),
    )
}
