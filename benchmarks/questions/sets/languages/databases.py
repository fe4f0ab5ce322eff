"""Seven more databases: football, motor racing, flights, a congress, social services, a card game, and a gallery."""

from __future__ import annotations

import csv
import io
import json
from typing import Any

import yaml

from benchmarks.questions.material import Database
from benchmarks.questions.sources import Git, Repository, Sources
from benchmarks.questions.tables import Row, Tables, as_value, read_csv

FOOTBALL = Repository("jfjelstul/worldcup", "35a8667f518b07469182ae16d35574dd0e7a00fb", "CC-BY-SA-4.0")
RACING = Repository("f1db/f1db", "6a5845b840e68d53400f3e8db97b55c3ad2fab52", "CC-BY-4.0")
FLIGHTS = Repository("jpatokal/openflights", "5a0360255a5a2ff2b9f1e9cb199716da68a8a33f", "ODbL-1.0")
CONGRESS = Repository("unitedstates/congress-legislators", "dfa9622263dd4c8d08636926e498f1845704d7eb", "CC0-1.0")
SERVICES = Repository("codeforamerica/ohana-api", "e3ab28075a5fc2f2e15ce06403db5c1e785a7778", "BSD-3-Clause")
CARDS = Repository("NetrunnerDB/netrunner-cards-json", "21842e386ebf47c75b3e090bb1d4c6a1b2c75b1c", "not stated")
GALLERY = Repository("tategallery/collection", "a51d8afc988ed083557e2950f4d0b644e7719f4a", "CC0-1.0")

FOOTBALL_TABLES = (
    "tournaments",
    "teams",
    "stadiums",
    "managers",
    "referees",
    "players",
    "matches",
    "manager_appointments",
    "referee_appearances",
    "goals",
)
FOOTBALL_NAMES = (  # each of them is also in the table that its id leads to
    "tournament_name",
    "match_name",
    "match_date",
    "stadium_name",
    "city_name",
    "team_name",
    "team_code",
    "home_team_name",
    "home_team_code",
    "away_team_name",
    "away_team_code",
    "player_team_name",
    "player_team_code",
    "family_name",
    "given_name",
    "country_name",
)
FOOTBALL_YEARS = range(1990, 2003)
RACING_YEARS = range(1974, 1980)
RACING_TABLES = ("countries", "circuits", "constructors", "drivers", "grands-prix")
NORTH = ("Denmark", "Finland", "Iceland", "Norway", "Sweden")
FLIGHT_COLUMNS = {
    "airports": ("id", "name", "city", "country", "iata", "icao", "latitude", "longitude", "altitude", "offset", "dst", "zone"),
    "airlines": ("id", "name", "alias", "iata", "icao", "callsign", "country", "active"),
    "routes": ("airline", "airline_id", "source", "source_id", "destination", "destination_id", "shared", "stops", "equipment"),
    "planes": ("name", "iata", "icao"),
}
SERVICE_TABLES = ("organizations", "programs", "locations", "addresses", "contacts", "phones", "services", "taxonomy")
CARD_TABLES = ("cycles", "factions", "packs", "sides", "types")
CARD_CYCLES = ("genesis", "spin", "lunar", "sansan", "mumbad")
GALLERY_FOLDERS = ("n/037", "n/058", "t/000", "t/003", "t/070")
WORK_COLUMNS = ("acno", "title", "dateText", "medium", "dimensions", "creditLine", "acquisitionYear")


def load_football(sources: Sources) -> Tables:
    """The tournaments of some years, without names that another table has."""
    git = sources.git(FOOTBALL)
    tables = {name: read_csv(git.read(f"data-csv/{name}.csv")) for name in FOOTBALL_TABLES}
    chosen = {row["tournament_id"] for row in tables["tournaments"] if row["year"] in FOOTBALL_YEARS}
    for name, rows in tables.items():
        tables[name] = [row for row in rows if row.get("tournament_id", "") in chosen or "tournament_id" not in row]
    for name, key in (("players", "goals"), ("managers", "manager_appointments"), ("referees", "referee_appearances")):
        column = f"{name[:-1]}_id"
        used = {row[column] for row in tables[key]}
        tables[name] = [row for row in tables[name] if row[column] in used]
    grounds = {row["stadium_id"] for row in tables["matches"]}
    tables["stadiums"] = [row for row in tables["stadiums"] if row["stadium_id"] in grounds]
    return {name: [without_names(row, name) for row in rows] for name, rows in tables.items()}


def without_names(row: Row, table: str) -> Row:
    is_own = {"tournaments", "teams", "stadiums", "managers", "referees", "players"}
    dropped = () if table in is_own else FOOTBALL_NAMES if table != "matches" else set(FOOTBALL_NAMES) - {"match_date"}
    return {key: value for key, value in row.items() if key not in dropped and not key.endswith("_link") and key != "key_id"}


def read_yaml(git: Git, path: str) -> Any:
    """Keeps dates as written."""
    return yaml.load(git.read(path), Loader=yaml.CBaseLoader)  # noqa: S506


def load_racing(sources: Sources) -> Tables:
    """The races of some years and the drivers in them."""
    git = sources.git(RACING)
    tables: Tables = {"races": [], "results": []}
    for year in RACING_YEARS:
        for path in git.list(f"src/data/seasons/{year}/races"):
            if path.endswith("/race.yml"):
                race = read_yaml(git, path)
                tables["races"].append({"year": year} | filled(race))
                results = read_yaml(git, path.replace("race.yml", "race-results.yml"))
                tables["results"] += [{"raceId": race["id"]} | filled(result) for result in results]
    drivers = {row["driverId"] for row in tables["results"]}
    for name in RACING_TABLES:
        rows = [filled(read_yaml(git, path)) for path in git.list(f"src/data/{name}") if is_taken(path, name, drivers)]
        tables[name] = [{key: value for key, value in row.items() if isinstance(value, str)} for row in rows]
    return tables


def is_taken(path: str, table: str, drivers: set[str]) -> bool:
    return table != "drivers" or path.rpartition("/")[2].removesuffix(".yml") in drivers


def filled(row: Row) -> Row:
    return {key: value for key, value in row.items() if value}


def load_flights(sources: Sources) -> Tables:
    """The routes between airports of the north."""
    git = sources.git(FLIGHTS)
    tables = {name: read_columns(git.read(f"data/{name}.dat"), columns) for name, columns in FLIGHT_COLUMNS.items()}
    tables["airports"] = [row for row in tables["airports"] if row["country"] in NORTH]
    known = {row["id"] for row in tables["airports"]}
    tables["routes"] = [row for row in tables["routes"] if {row.get("source_id"), row.get("destination_id")} <= known]
    flying = {row.get("airline_id") for row in tables["routes"]}
    tables["airlines"] = [row for row in tables["airlines"] if row["id"] in flying or row.get("country") in NORTH]
    return tables


def read_columns(text: str, columns: tuple[str, ...]) -> list[Row]:
    rows = (dict(zip(columns, row, strict=False)) for row in csv.reader(io.StringIO(text)))
    return [{key: as_value(value) for key, value in row.items() if value not in ("", "\\N")} for row in rows]


def load_congress(sources: Sources) -> Tables:
    git = sources.git(CONGRESS)
    files = {
        name: read_yaml(git, f"{name}.yaml")
        for name in (
            "legislators-current",
            "committees-current",
            "committee-membership-current",
            "legislators-district-offices",
            "legislators-social-media",
        )
    }
    members = files["committee-membership-current"].items()
    return {
        "legislators": [as_legislator(row) for row in files["legislators-current"]],
        "committees": [row for committee in files["committees-current"] for row in as_committees(committee)],
        "memberships": [
            {"committee": code} | {key: row[key] for key in ("bioguide", "party", "rank", "title") if key in row}
            for code, rows in members
            for row in rows
        ],
        "offices": [
            {"bioguide": row["id"]["bioguide"]} | {key: value for key, value in office.items() if key != "id"}
            for row in files["legislators-district-offices"]
            for office in row["offices"]
        ],
        "social": [{"bioguide": row["id"]["bioguide"]} | row["social"] for row in files["legislators-social-media"]],
    }


def as_legislator(row: Row) -> Row:
    term = {key: value for key, value in row["terms"][-1].items() if isinstance(value, str)}
    return {"bioguide": row["id"]["bioguide"]} | row["name"] | row["bio"] | term


def as_committees(row: Row) -> list[Row]:
    """The committee itself and those below it, whose codes begin with its own."""
    own = {key: value for key, value in row.items() if isinstance(value, str)}
    below = (
        {"parent": row["thomas_id"]} | part | {"thomas_id": row["thomas_id"] + part["thomas_id"]}
        for part in row.get("subcommittees", [])
    )
    return [own, *below]


def load_services(sources: Sources) -> Tables:
    git = sources.git(SERVICES)
    return {name: read_csv(git.read(f"data/sample-csv/{name}.csv")) for name in SERVICE_TABLES}


def load_cards(sources: Sources) -> Tables:
    """The cards of some cycles, without the copies of their texts that have no markup."""
    git = sources.git(CARDS)
    tables: Tables = {name: json.loads(git.read(f"{name}.json")) for name in CARD_TABLES}
    codes = [pack["code"] for pack in tables["packs"] if pack["cycle_code"] in CARD_CYCLES]
    cards: list[Row] = [card for code in codes for card in json.loads(git.read(f"pack/{code}.json"))]
    return tables | {"cards": [{key: card[key] for key in card if not key.startswith("stripped_")} for card in cards]}


def load_gallery(sources: Sources) -> Tables:
    """Works of some folders that have one artist, and their artists."""
    git = sources.git(GALLERY)
    files = (json.loads(git.read(path)) for folder in GALLERY_FOLDERS for path in git.list(f"artworks/{folder}"))
    works: list[Row] = [work for work in files if len(work["contributors"]) == 1]
    groups = {work["catalogueGroup"]["id"]: work["catalogueGroup"]["shortTitle"] for work in works if work["catalogueGroup"]}
    makers = {work["contributors"][0]["id"] for work in works}
    shown = [(work["acno"], leaf) for work in works for leaf in find_leaves(work.get("subjects", {}))]
    subjects = {leaf["id"]: leaf["name"] for _, leaf in shown}
    return {
        "artworks": [as_work(work) for work in works],
        "artists": [row for row in read_csv(git.read("artist_data.csv")) if row["id"] in makers],
        "groups": [{"id": key, "shortTitle": title} for key, title in groups.items()],
        "subjects": [{"id": key, "name": name} for key, name in subjects.items()],
        "shows": [{"acno": number, "subjectId": leaf["id"]} for number, leaf in shown],
    }


def find_leaves(subject: Row) -> list[Row]:
    """The subjects that have none below them."""
    below: list[Row] = subject.get("children", [])
    return [leaf for part in below for leaf in find_leaves(part)] if below else [subject] if "name" in subject else []


def as_work(work: Row) -> Row:
    group = {"groupId": work["catalogueGroup"]["id"]} if work["catalogueGroup"] else {}
    return {key: work[key] for key in WORK_COLUMNS if work[key]} | {"artistId": work["contributors"][0]["id"]} | group


DATABASES = {
    database.name: database
    for database in (
        Database("football", FOOTBALL, load_football),
        Database("racing", RACING, load_racing),
        Database("flights", FLIGHTS, load_flights),
        Database("congress", CONGRESS, load_congress, indent=2),
        Database("services", SERVICES, load_services, indent=2),
        Database("cards", CARDS, load_cards, indent=2),
        Database("gallery", GALLERY, load_gallery),
    )
}
