"""Seven more databases: attacks on plants, a bookshop, games, police files, bank transfers, a scripture, and patients."""

from __future__ import annotations

import csv
import io
import json
import sqlite3
import zipfile
from collections import defaultdict
from typing import Any

from benchmarks.questions.material import Database
from benchmarks.questions.sources import Repository, Sources
from benchmarks.questions.tables import Row, Tables, as_value, read_csv

ATTACKS = Repository("mitre-attack/attack-stix-data", "7ad8a86f41edc91dd37de0487b0c2f44ae3a3af7", "ATT&CK terms of use")
SAMPLES = Repository("bbrumm/databasestar", "392590de0076a9e03665d33a44a31a339e25076b", "not stated")
POLICE = Repository("neo4j-graph-examples/pole", "179b33ceb4884aa02aba932cd5efc06648a7d0fd", "not stated")
TRANSFERS = Repository("neo4j-graph-examples/fincen", "41c8ef891e0f7624294cbf6ff8c4b57eda8d9c15", "not stated")
SCRIPTURE = Repository("robertrouse/theographic-bible-metadata", "b33c6b8ba6b11704480d89ccb0f2592b5c9eb131", "CC-BY-SA-4.0")
PATIENTS = Repository("smart-on-fhir/generated-sample-data", "25ac8089f0464b8673c7669509dc0bb8f4883773", "Apache-2.0")

ATTACK_TYPES = {
    "attack-pattern": "techniques",
    "malware": "software",
    "intrusion-set": "groups",
    "campaign": "campaigns",
    "course-of-action": "mitigations",
    "x-mitre-asset": "assets",
    "x-mitre-data-component": "data_components",
}
ATTACK_COLUMNS = ("id", "name", "description", "aliases", "first_seen", "last_seen", "x_mitre_aliases", "x_mitre_platforms")
ORDER_MONTH = "2023-07%"
GAME_YEAR = 2001
CRIME_DAYS = ("10/08/2017", "11/08/2017")
CRIME_NODES = ("Area", "Crime", "Email", "Location", "Object", "Officer", "Person", "Phone", "PhoneCall", "Vehicle")
CRIME_LINKS = (
    "CALLED",
    "CALLER",
    "CURRENT_ADDRESS",
    "FAMILY_REL",
    "HAS_EMAIL",
    "HAS_PHONE",
    "INVESTIGATED_BY",
    "INVOLVED_IN",
    "OCCURRED_AT",
    "PARTY_TO",
)
NODE_KEYS = {
    ":ID": "node",
    ":START_ID": "source",
    ":END_ID": "target",
    "latitude:double": "latitude",
    "longitude:double": "longitude",
}
PERSON_COLUMNS = (
    "personLookup",
    "displayTitle",
    "alsoCalled",
    "gender",
    "birthYear",
    "deathYear",
    "birthPlace",
    "deathPlace",
    "memberOf",
    "mother",
    "father",
    "partners",
    "children",
    "siblings",
)
PLACE_COLUMNS = ("placeLookup", "displayTitle", "featureType", "featureSubType", "aliases", "comment", "latitude", "longitude")
EVENT_COLUMNS = ("ID", "title", "startDate", "duration", "predecessor", "partOf", "participants", "locations", "notes")
PATIENT_STEP = 30  # a patient is taken out of so many
PATIENT_TYPES = (
    "Patient",
    "Organization",
    "Practitioner",
    "Encounter",
    "Condition",
    "MedicationRequest",
    "Procedure",
    "Immunization",
)
CLINICAL_NOISE = ("text", "meta", "extension", "identifier", "resourceType")


def load_attacks(sources: Sources) -> Tables:
    """What is not withdrawn, and the relationships without their texts."""
    objects: list[Row] = json.loads(sources.git(ATTACKS).read("ics-attack/ics-attack-17.1.json"))["objects"]
    valid = [row for row in objects if not row.get("revoked") and not row.get("x_mitre_deprecated")]
    tables: Tables = {name: [] for name in ATTACK_TYPES.values()} | {"relationships": []}
    for row in valid:
        if name := ATTACK_TYPES.get(row["type"]):
            tables[name].append(keep(row, ATTACK_COLUMNS))
    known = {row["id"] for rows in tables.values() for row in rows}
    tables["relationships"] = [
        keep(row, ("source_ref", "relationship_type", "target_ref", "created"))
        for row in valid
        if row["type"] == "relationship" and {row["source_ref"], row["target_ref"]} <= known
    ]
    return tables


def keep(row: Row, columns: tuple[str, ...]) -> Row:
    return {column: row[column] for column in columns if row.get(column)}


def open_file(sources: Sources, path: str) -> sqlite3.Connection:
    connection = sqlite3.connect(":memory:")
    connection.deserialize(sources.git(SAMPLES).read_bytes(path))
    connection.row_factory = sqlite3.Row
    return connection


def select(connection: sqlite3.Connection, table: str, where: str = "1", value: Any = None) -> list[Row]:
    values = () if value is None else (value,)
    return [dict(row) for row in connection.execute(f"SELECT * FROM {table} WHERE {where}", values)]  # noqa: S608


def load_bookshop(sources: Sources) -> Tables:
    """The orders of one month and what they lead to."""
    connection = open_file(sources, "sample_databases/sample_db_gravity/sqlite/gravity.db")
    orders = "SELECT order_id FROM cust_order WHERE order_date LIKE ?"
    lines = f"SELECT book_id FROM order_line WHERE order_id IN ({orders})"  # noqa: S608
    authors = f"SELECT author_id FROM book_author WHERE book_id IN ({lines})"  # noqa: S608
    publishers = f"SELECT publisher_id FROM book WHERE book_id IN ({lines})"  # noqa: S608
    customers = orders.replace("order_id", "customer_id")
    addresses = orders.replace("order_id", "dest_address_id")
    wanted = {
        "cust_order": "order_date LIKE ?",
        "order_line": f"order_id IN ({orders})",
        "order_history": f"order_id IN ({orders})",
        "book": f"book_id IN ({lines})",
        "book_author": f"book_id IN ({lines})",
        "author": f"author_id IN ({authors})",
        "publisher": f"publisher_id IN ({publishers})",
        "customer": f"customer_id IN ({customers})",
        "address": f"address_id IN ({addresses})",
    }
    tables = {name: select(connection, name, where, ORDER_MONTH) for name, where in wanted.items()}
    return tables | {name: select(connection, name) for name in ("book_language", "country", "shipping_method", "order_status")}


def load_games(sources: Sources) -> Tables:
    """The games of one year."""
    connection = open_file(sources, "sample_databases/sample_db_videogames/sqlite/videogames.db")
    releases = select(connection, "game_platform", "release_year = ?", GAME_YEAR)
    editions = {row["game_publisher_id"] for row in releases}
    published = [row for row in select(connection, "game_publisher") if row["id"] in editions]
    games, publishers = {row["game_id"] for row in published}, {row["publisher_id"] for row in published}
    numbers = {row["id"] for row in releases}
    return {
        "genre": select(connection, "genre"),
        "platform": select(connection, "platform"),
        "region": select(connection, "region"),
        "publisher": [row for row in select(connection, "publisher") if row["id"] in publishers],
        "game": [row for row in select(connection, "game") if row["id"] in games],
        "game_publisher": published,
        "game_platform": releases,
        "region_sales": [row for row in select(connection, "region_sales") if row["game_platform_id"] in numbers],
    }


def load_police(sources: Sources) -> Tables:
    """The crimes of some days, those that somebody is party to, and what is linked to them."""
    packed = sources.git(POLICE).read_bytes("data/pole-data-importer.zip")
    with zipfile.ZipFile(io.BytesIO(packed)) as files:
        nodes = {name: read_nodes(files.read(f"crime-investigation.nodes.{name}.csv")) for name in CRIME_NODES}
        links = {name: read_nodes(files.read(f"crime-investigation.relationships.{name}.csv")) for name in CRIME_LINKS}
    parties = {row["target"] for row in links["PARTY_TO"]}
    nodes["Crime"] = [row for row in nodes["Crime"] if row["node"] in parties or row["date"] in CRIME_DAYS]
    crimes = {row["node"] for row in nodes["Crime"]}
    for name in ("INVESTIGATED_BY", "OCCURRED_AT"):
        links[name] = [row for row in links[name] if row["source"] in crimes]
    links["INVOLVED_IN"] = [row for row in links["INVOLVED_IN"] if row["target"] in crimes]
    used = {row[key] for rows in links.values() for row in rows for key in ("source", "target")}
    return {name: [row for row in rows if row["node"] in used] for name, rows in nodes.items() if name != "Area"} | links


def read_nodes(packed: bytes) -> list[Row]:
    """Without the labels and types, which the tables are named by."""
    rows = read_csv(packed.decode())
    return [{NODE_KEYS.get(key, key): row[key] for key in row if key not in (":LABEL", ":TYPE")} for row in rows]


def load_transfers(sources: Sources) -> Tables:
    """Banks by their ids, and transfers between them."""
    rows = read_csv(sources.git(TRANSFERS).read("import/download_transactions_map.csv"))
    banks: dict[str, Row] = {}
    filers: dict[str, Row] = {}
    for row in rows:
        filers[row["filer_org_name_id"]] = {"id": row["filer_org_name_id"], "name": row["filer_org_name"]}
        for side in ("originator", "beneficiary"):
            key = row[f"{side}_bank_id"]
            banks[key] = {"id": key, "name": row[f"{side}_bank"], "country": row[f"{side}_iso"]}
    numbers = {key: number for number, key in enumerate(sorted(banks), 1)}
    agents = {key: number for number, key in enumerate(sorted(filers), 1)}
    return {
        "filers": [{"filer": agents[key], "name": filers[key]["name"]} for key in sorted(filers)],
        "banks": [{"bank": numbers[key], "name": banks[key]["name"], "country": banks[key]["country"]} for key in sorted(banks)],
        "transfers": [
            keep(row, ("id", "icij_sar_id"))
            | {"filer": agents[row["filer_org_name_id"]]}
            | {"from": numbers[row["originator_bank_id"]], "to": numbers[row["beneficiary_bank_id"]]}
            | keep(row, ("begin_date", "end_date", "number_transactions", "amount_transactions"))
            for row in rows
        ],
    }


def load_scripture(sources: Sources) -> Tables:
    git = sources.git(SCRIPTURE)
    wanted = {"People": PERSON_COLUMNS, "Places": PLACE_COLUMNS, "Events": EVENT_COLUMNS}
    tables: Tables = {}
    for name, columns in wanted.items():
        rows = csv.DictReader(io.StringIO(git.read(f"CSV/{name}.csv").removeprefix("\ufeff")))
        tables[name] = [{column: as_value(row[column]) for column in columns if row[column]} for row in rows]
    return tables


def load_patients(sources: Sources) -> Tables:
    """Some patients, and those whom they met."""
    git = sources.git(PATIENTS)
    paths = [path for path in git.list("R4/SYNTHEA") if path.endswith(".json")]
    tables: dict[str, dict[str, Row]] = defaultdict(dict)
    for path in paths[PATIENT_STEP // 2 :: PATIENT_STEP]:
        for entry in json.loads(git.read(path))["entry"]:
            resource: Row = entry["resource"]
            if resource["resourceType"] in PATIENT_TYPES:
                row = {key: value for key, value in resource.items() if key not in CLINICAL_NOISE}
                tables[resource["resourceType"]][row["id"]] = row
    return {name: list(tables[name].values()) for name in PATIENT_TYPES}


DATABASES = {
    database.name: database
    for database in (
        Database("attacks", ATTACKS, load_attacks, indent=2),
        Database("bookshop", SAMPLES, load_bookshop),
        Database("games", SAMPLES, load_games),
        Database("police", POLICE, load_police),
        Database("transfers", TRANSFERS, load_transfers),
        Database("scripture", SCRIPTURE, load_scripture, indent=2),
        Database("patients", PATIENTS, load_patients, indent=2),
    )
}
