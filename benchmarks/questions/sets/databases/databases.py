"""Thirteen databases: politics, health, songs, films, power, games, sports, a library, software, staff, trains, and shops."""

from __future__ import annotations

import ast
import csv
import io
import json
import sqlite3
import zipfile
from collections.abc import Collection, Iterable
from typing import Any

from benchmarks.questions.material import Database
from benchmarks.questions.sources import Git, Repository, Sources
from benchmarks.questions.tables import Row, Tables, read_csv

CONGRESS = Repository("parlametria/perfil-parlamentar-dados", "b98a8eec47408bd578db13fe377d72f896ffc0b3", "AGPL-3.0")
CLINIC = Repository("OHDSI/EunomiaDatasets", "3efd533eb95a41a56d5b0758b0d7c8fa57e1303e", "Apache-2.0")
CONTEST = Repository("josago97/EurovisionDataset", "2c26a729c780986a4b5da22ae1dae39b4a14a7b5", "MIT")
FILMS = Repository("janaipakos/ghibliapi", "476ded532955c0c41a00bb404ce1f7b96b54f842", "MIT")
GRID = Repository("PyPSA/PyPSA", "0209b0ed0a29e7e373b92883e88999dac4dc85a1", "CC-BY-4.0")
HEROES = Repository("odota/dotaconstants", "c5b587f98a66f3d5a4cc0dd0052c76d8ce31bf5a", "MIT")
LEAGUE = Repository("vaastav/Fantasy-Premier-League", "81980c1d597a1eab8764e3f5189b3a6f20939da8", "MIT")
CATALOGUE = Repository("folio-org/mod-inventory-storage", "2639d28bfa360843d7125f8953b2a8b8c70dc346", "Apache-2.0")
SOFTWARE = Repository("CycloneDX/bom-examples", "aaa24717f3101c27ff9006c1caa0fc848c2cb2fd", "CC0-1.0")
STAFF = Repository("bytebase/employee-sample-database", "c3d0a6e1b6623b19d213b754b3a5104dcfdff65b", "CC-BY-SA-3.0")
STATIONS = Repository("Seo-4d696b75/station_database", "c07b4598b21826cc10190bbcb279582528ef775b", "CC-BY-SA-4.0")
STOREFRONT = Repository("saleor/saleor", "723cd4eba87dfc72822ade45dc08a3caa548428d", "BSD-3-Clause")
WEBSHOP = Repository("Ovi/DummyJSON", "55ca918227aed430409a1ae46271448cb102d7f3", "MIT")

CONGRESS_TABLES = (
    "partidos",
    "parlamentares",
    "comissoes",
    "composicao_comissoes",
    "liderancas",
    "empresas",
    "empresas_parlamentares",
    "atividades_economicas",
    "atividades_economicas_empresas",
    "temas",
    "proposicoes",
    "proposicoes_temas",
    "votacoes",
)
TAX_NUMBER = "cpf"
CLINIC_TABLES = (
    "PERSON",
    "PROVIDER",
    "VISIT_OCCURRENCE",
    "CONDITION_OCCURRENCE",
    "DRUG_EXPOSURE",
    "PROCEDURE_OCCURRENCE",
    "DEATH",
)
CLINIC_NOISE = (
    "_datetime",
    "_source_concept_id",
    "_type_concept_id",
    "_status_concept_id",
    "visit_detail_id",
    "verbatim_end_date",
)
GRID_FOLDER = "examples/networks/scigrid-de/scigrid-de"
GRID_TABLES = ("carriers", "buses", "lines", "transformers", "generators", "storage_units", "loads")
HERO_COLUMNS = ("id", "name", "localized_name", "primary_attr", "attack_type", "roles", "move_speed", "attack_range", "legs")
ABILITY_COLUMNS = ("dname", "behavior", "dmg_type", "bkbpierce", "desc", "lore", "mc", "cd")
ITEM_COLUMNS = ("id", "dname", "qual", "cost", "notes", "mc", "cd", "lore", "components")
SEASON = "data/2023-24"
PLAYER_COLUMNS = (
    "id",
    "code",
    "first_name",
    "second_name",
    "web_name",
    "team",
    "element_type",
    "now_cost",
    "total_points",
    "minutes",
    "goals_scored",
    "assists",
    "clean_sheets",
    "saves",
    "yellow_cards",
    "red_cards",
    "status",
    "news",
)
FIXTURE_COLUMNS = ("id", "code", "event", "kickoff_time", "team_h", "team_a", "team_h_score", "team_a_score")
MATCH_STATISTICS = (
    "goals_scored",
    "assists",
    "own_goals",
    "penalties_saved",
    "penalties_missed",
    "yellow_cards",
    "red_cards",
    "saves",
)
REFERENCE_FOLDERS = (
    "contributor-name-types",
    "contributor-types",
    "identifier-types",
    "instance-formats",
    "instance-note-types",
    "instance-relationship-types",
    "instance-statuses",
    "instance-types",
    "loan-types",
    "material-types",
    "modes-of-issuance",
    "nature-of-content-terms",
    "service-points",
)
SAMPLE_FOLDERS = (
    "location-units/institutions",
    "location-units/campuses",
    "location-units/libraries",
    "locations",
    "instances",
    "holdingsrecords",
    "items",
    "instance-relationships",
    "preceding-succeeding-titles",
    "bound-with/instances",
    "bound-with/holdingsrecords",
    "bound-with/items",
    "bound-with/bound-with-parts",
)
COMPONENT_COLUMNS = ("type", "bom-ref", "publisher", "group", "name", "version", "description", "licenses", "externalReferences")
PREFECTURES = (26, 27, 29)  # Kyoto, Osaka, Nara
SHOP_LISTS = ("users", "products", "carts", "posts", "comments", "recipes", "todos")
SHOP_NOISE = ("password", "image", "images", "thumbnail", "userAgent", "crypto", "meta", "macAddress", "coordinates")
FIXTURE_NOISE = ("private_metadata", "metadata", "seo_title", "seo_description", "search_document", "search_vector")


def keep(row: Row, columns: Iterable[str]) -> Row:
    return {column: row[column] for column in columns if row.get(column) not in (None, "", [])}


def drop(row: Row, columns: Collection[str]) -> Row:
    return {column: value for column, value in row.items() if column not in columns and value not in ("NA", "NULL")}


def where(rows: Iterable[Row], column: str, values: Collection[Any]) -> list[Row]:
    return [row for row in rows if row.get(column) in values]


def read_json(git: Git, path: str) -> Any:
    return json.loads(git.read(path))


def load_congress(sources: Sources) -> Tables:
    git = sources.git(CONGRESS)
    return {name: [drop(row, (TAX_NUMBER,)) for row in read_csv(git.read(f"bd/data/{name}.csv"))] for name in CONGRESS_TABLES}


def load_clinic(sources: Sources) -> Tables:
    """All patients without what was measured, and the concepts that they lead to."""
    packed = sources.git(CLINIC).read_bytes("datasets/Synthea27Nj/Synthea27Nj_5.4.zip")
    with zipfile.ZipFile(io.BytesIO(packed)) as files:
        tables = {name.lower(): read_csv(files.read(f"{name}.csv").decode()) for name in CLINIC_TABLES}
        concepts = read_csv(files.read("CONCEPT.csv").decode())
    for name, rows in tables.items():
        tables[name] = [{key: row[key] for key in row if not key.endswith(CLINIC_NOISE) and row[key] != 0} for row in rows]
    used = {value for rows in tables.values() for row in rows for key, value in row.items() if key.endswith("_concept_id")}
    columns = ("concept_id", "concept_name", "domain_id", "vocabulary_id", "concept_class_id", "concept_code")
    return tables | {"concept": [keep(row, columns) for row in where(concepts, "concept_id", used)]}


def load_contest(sources: Sources) -> Tables:
    """Without the words of the songs."""
    git = sources.git(CONTEST)
    countries: dict[str, str] = read_json(git, "dataset/countries.json")
    contests: list[Row] = read_json(git, "dataset/junior.json")
    for contest in contests:
        contest["contestants"] = [drop(row, ("lyrics",)) for row in contest["contestants"]]
    return {"countries": [{"code": code, "name": name} for code, name in countries.items()], "contests": contests}


def load_films(sources: Sources) -> Tables:
    return dict(read_json(sources.git(FILMS), "data.json"))


def load_grid(sources: Sources) -> Tables:
    git = sources.git(GRID)
    return {
        name: [drop(row, ("wkt_srid_4326", "control")) for row in read_csv(git.read(f"{GRID_FOLDER}/{name}.csv"))]
        for name in GRID_TABLES
    }


def load_heroes(sources: Sources) -> Tables:
    """The heroes and items, and the abilities and talents that the heroes have."""
    git = sources.git(HEROES)
    heroes, owned, abilities, items = (
        read_json(git, f"build/{name}.json") for name in ("heroes", "hero_abilities", "abilities", "items")
    )
    used = {name for row in owned.values() for name in flatten(row["abilities"])}
    used |= {talent["name"] for row in owned.values() for talent in row["talents"]}
    return {
        "heroes": [keep(row, HERO_COLUMNS) for row in heroes.values()],
        "hero_abilities": [{"hero": hero} | keep(row, ("abilities", "talents")) for hero, row in owned.items()],
        "abilities": [{"key": key} | keep(row, ABILITY_COLUMNS) for key, row in abilities.items() if key in used],
        "items": [{"key": key} | keep(row, ITEM_COLUMNS) for key, row in items.items() if row.get("dname")],
        "upgrades": read_json(git, "build/aghs_desc.json"),
    }


def flatten(values: Iterable[str | list[str]]) -> list[str]:
    return [part for value in values for part in (value if isinstance(value, list) else [value])]


def load_league(sources: Sources) -> Tables:
    """One season; of each match, who scored and who was booked."""
    git = sources.git(LEAGUE)
    fixtures = read_csv(git.read(f"{SEASON}/fixtures.csv"))
    return {
        "teams": [keep(row, ("id", "code", "name", "short_name")) for row in read_csv(git.read(f"{SEASON}/teams.csv"))],
        "elements": [keep(row, PLAYER_COLUMNS) for row in read_csv(git.read(f"{SEASON}/players_raw.csv"))],
        "fixtures": [keep(row, FIXTURE_COLUMNS) | {"stats": read_statistics(row["stats"])} for row in fixtures],
    }


def read_statistics(text: str) -> list[Row]:
    statistics = where(ast.literal_eval(text), "identifier", MATCH_STATISTICS)
    return [row for row in statistics if row["a"] or row["h"]]


def load_catalogue(sources: Sources) -> Tables:
    git = sources.git(CATALOGUE)
    tables: Tables = {}
    for root, folders in (("reference-data", REFERENCE_FOLDERS), ("sample-data", SAMPLE_FOLDERS)):
        for folder in folders:
            rows = [read_json(git, path) for path in git.list(f"{root}/{folder}") if path.endswith(".json")]
            tables.setdefault(folder.split("/")[-1], []).extend(rows)
    return tables


def load_software(sources: Sources) -> Tables:
    """The parts of one program, without their checksums."""
    parts = read_json(sources.git(SOFTWARE), "SBOM/keycloak-10.0.2/bom.json")
    return {
        "components": [keep(row, COMPONENT_COLUMNS) for row in parts["components"]],
        "dependencies": parts["dependencies"],
    }


def load_staff(sources: Sources) -> Tables:
    connection = sqlite3.connect(":memory:")
    connection.deserialize(sources.git(STAFF).read_bytes("sqlite/dataset_small/employee.db"))
    connection.row_factory = sqlite3.Row
    names = ("department", "employee", "dept_manager", "dept_emp", "title", "salary")
    return {name: [dict(row) for row in connection.execute(f"SELECT * FROM {name}")] for name in names}  # noqa: S608


def load_stations(sources: Sources) -> Tables:
    """The stations of some prefectures, and their lines and companies."""
    git = sources.git(STATIONS)
    stations = where(read_csv(git.read("out/main/station.csv")), "prefecture", PREFECTURES)
    stops = where(read_csv(git.read("out/main/register.csv")), "station_code", {row["code"] for row in stations})
    lines = where(read_csv(git.read("out/main/line.csv")), "code", {row["line_code"] for row in stops})
    companies = where(read_csv(git.read("src/company.csv")), "code", {row["company_code"] for row in lines})
    prefectures = csv.reader(io.StringIO(git.read("src/prefecture.csv")))
    tables = {"company": companies, "line": lines, "station": stations, "register": stops}
    return {"prefecture": [{"code": int(code), "name": name} for code, name in prefectures]} | {
        name: [drop(row, ("attr", "id")) for row in rows] for name, rows in tables.items()
    }


def load_storefront(sources: Sources) -> Tables:
    """The records of each model, with their fields inside."""
    tables: Tables = {}
    for record in read_json(sources.git(STOREFRONT), "saleor/static/populatedb_data.json"):
        fields = {key: value for key, value in record["fields"].items() if key not in FIXTURE_NOISE}
        tables.setdefault(record["model"], []).append({"pk": record["pk"], "fields": fields})
    return tables


def load_webshop(sources: Sources) -> Tables:
    git = sources.git(WEBSHOP)
    return {name: json.loads(git.read(f"database/{name}.json"), object_hook=strip) for name in SHOP_LISTS}


def strip(row: Row) -> Row:
    """Without pictures and what else only fills the lists."""
    return {key: value for key, value in row.items() if key not in SHOP_NOISE}


DATABASES = {
    database.name: database
    for database in (
        Database("congress", CONGRESS, load_congress),
        Database("clinic", CLINIC, load_clinic),
        Database("contest", CONTEST, load_contest, indent=2),
        Database("films", FILMS, load_films, indent=2),
        Database("grid", GRID, load_grid),
        Database("heroes", HEROES, load_heroes),
        Database("league", LEAGUE, load_league),
        Database("catalogue", CATALOGUE, load_catalogue, indent=2),
        Database("software", SOFTWARE, load_software, indent=2),
        Database("staff", STAFF, load_staff),
        Database("stations", STATIONS, load_stations),
        Database("storefront", STOREFRONT, load_storefront, indent=2),
        Database("webshop", WEBSHOP, load_webshop, indent=2),
    )
}
