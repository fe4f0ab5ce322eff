"""Questions over several tables as JSON, and filters over lists of objects."""

from __future__ import annotations

import json
from typing import Any

import pytest

from overspill.lexical.index import build
from overspill.lexical.select import select

CITIES = ("Lima", "Oslo", "Cairo", "Quito", "Hanoi")
Row = dict[str, Any]


def render(tables: dict[str, list[Row]], indent: int | None = None) -> bytes:
    return json.dumps(tables, indent=indent).encode()


def library() -> dict[str, list[Row]]:
    return {
        "countries": [{"id": n, "title": f"Land {n}"} for n in range(1, 40)],
        "cities": [{"id": n, "title": f"{CITIES[n % 5]} {n}", "country_id": 1 + n % 39} for n in range(1, 200)],
        "authors": [{"id": n, "name": f"Writer {n}", "born_city_id": 1 + n * 7 % 199} for n in range(1, 300)],
        "books": [
            {"id": n, "headline": f"Saga number {n}", "author": 1 + n % 299, "pages": 100 + n % 77, "tags": [n % 9 + 1]}
            for n in range(1, 900)
        ],
        "book_readers": [{"book_id": 1 + n * 3 % 899, "reader_id": 1 + n % 250} for n in range(2_000)],
        "readers": [{"id": n, "nickname": f"reader-{n}x"} for n in range(1, 251)],
    }


def test_a_row_several_references_away_is_shown():
    tables = library()
    author = tables["authors"][300 % 299]
    city = next(city for city in tables["cities"] if city["id"] == author["born_city_id"])
    country = next(country for country in tables["countries"] if country["id"] == city["country_id"])
    found = select(build(render(tables)), f'In which of the countries was "{author["name"]}" born?', max_tokens=500)
    assert json.dumps(country) in found.text


def test_rows_on_the_other_side_of_a_table_of_pairs_are_shown():
    tables = library()
    readers = {pair["reader_id"] for pair in tables["book_readers"] if pair["book_id"] == 511}
    found = select(build(render(tables)), 'Which readers have "Saga number 511"?', max_tokens=500)
    assert readers
    assert all(f"reader-{reader}x" in found.text for reader in readers)


def test_what_a_row_refers_to_is_shown_though_the_question_does_not_name_it():
    tables = library()
    tables["books"][400]["headline"] = "Grey Herons"
    writer = tables["authors"][tables["books"][400]["author"] - 1]
    found = select(build(render(tables)), 'Who made "Grey Herons"?', max_tokens=300)
    assert writer["name"] in found.text


def test_a_list_in_a_row_refers_to_several_rows():
    tables: dict[str, list[Row]] = {
        "parts": [{"id": n, "label": f"part-{n}"} for n in range(1, 300)],
        "kits": [{"kit": f"Kit {n}", "contents": [n, n + 7, n + 20]} for n in range(1, 200)],
    }
    tables["kits"][60]["kit"] = "Winter Lamp"
    found = select(build(render(tables)), "Which parts are in the kit Winter Lamp?", max_tokens=300)
    assert all(f'"part-{number}"' in found.text for number in tables["kits"][60]["contents"])


def test_many_references_in_one_row_end_somewhere():
    tables: dict[str, list[Row]] = {
        "nodes": [
            {"id": n, "name": f"node {n}", "next_node_id": n % 500 + 1, "also": list(range(1, 400))} for n in range(1, 501)
        ],
        "notes": [{"id": n, "node_id": n % 500 + 1, "said": f"note {n}"} for n in range(1, 3_000)],
    }
    found = select(build(render(tables)), 'What was said about "node 77"?', max_tokens=200)
    assert "node 77" in found.text
    assert len(found.text) <= 800


def herbs() -> list[Row]:
    rows: list[Row] = []
    for number in range(100):
        rows.append(
            {
                "index": f"herb-{number}",
                "description": "It likes shade and sand, and in dry years it grows beside red poppies. " * 6,
                "level": number % 2 + 6,
                "soil": ("clay", "sand", "loam")[number % 4 % 3],
                "origin": {"region": ("north coast", "south coast", "red hills")[number % 9 % 3], "found": 1900 + number},
                "uses": ["tea", "salve"] if number % 2 else ["dye"],
            }
        )
    return rows


@pytest.mark.parametrize("indent", [None, 2])
@pytest.mark.parametrize("budget", [500, 2_000])
def test_all_rows_that_meet_the_conditions_are_shown(indent: int | None, budget: int):
    rows = herbs()
    asked = [
        row
        for row in rows
        if row["level"] == 7 and row["soil"] == "sand" and row["origin"]["region"] == "red hills" and "tea" in row["uses"]
    ]
    question = 'Which herbs of level 7 in the region "red hills" grow on sand and are used as tea? Give their index.'
    found = select(build(json.dumps(rows, indent=indent).encode()), question, max_tokens=budget)
    assert asked
    assert all(f'"{row["index"]}"' in found.text for row in asked)


def test_a_word_between_quotation_marks_is_a_condition_though_it_is_a_common_one():
    rows = [{"name": f"tool {n}", "group": "other" if n % 50 == 3 else "usual", "note": "x" * 60} for n in range(300)]
    found = select(build(json.dumps(rows).encode()), 'Which tools are of the group "other"? Give their names.', max_tokens=300)
    assert all(f'"{row["name"]}"' in found.text for row in rows if row["group"] == "other")


def test_rows_are_shown_whole_when_there_is_room():
    rows = herbs()[:12]
    found = select(build(json.dumps(rows).encode()), 'Which herbs are used as "dye"? Give their index.', max_tokens=4_000)
    assert all(row["description"] in found.text for row in rows if "dye" in row["uses"])


def worlds() -> dict[str, list[Row]]:
    """As a web framework dumps a database: the key beside the fields."""
    return {
        "people": [
            {"fields": {"name": f"Person {n}", "homeworld": n % 40 + 1, "height": 150 + n}, "model": "person", "pk": n}
            for n in range(1, 90)
        ],
        "planets": [{"fields": {"name": f"Globe {n}", "moons": n % 5}, "model": "planet", "pk": n} for n in range(1, 41)],
        "species": [
            {"fields": {"name": f"Kind {n}", "people": [n, n + 40], "legs": n % 7}, "model": "species", "pk": n}
            for n in range(1, 31)
        ],
    }


def test_a_column_with_nothing_but_keys_refers_to_their_table_whatever_its_name():
    tables = worlds()
    tables["people"][56]["fields"]["name"] = "Wilma Tarn"
    planet = tables["planets"][tables["people"][56]["fields"]["homeworld"] - 1]
    found = select(build(render(tables)), "Which planet does Wilma Tarn come from?", max_tokens=200)
    assert planet["fields"]["name"] in found.text


def test_a_list_of_the_row_that_a_question_names_is_followed():
    tables = worlds()
    tables["species"][11]["fields"]["name"] = "Muunling"
    found = select(build(render(tables)), "Which people are of the species Muunling?", max_tokens=300)
    assert all(f'"Person {number}"' in found.text for number in tables["species"][11]["fields"]["people"])


def list_tools() -> dict[str, list[Row]]:
    """Each row is longer than a small answer."""
    rest = {f"remark_{n}": f"It was tried on a day of season {n} and is kept dry, away from the window." for n in range(12)}
    parts = [{"id": n, **rest, "title": f"Part {n * 31}"} for n in range(1, 60)]
    tools = [{"id": n, "title": f"Tool {n}", **rest, "parts": [n, n + 20, n + 35]} for n in range(1, 20)]
    return {"parts": parts, "tools": tools}


@pytest.mark.parametrize("indent", [None, 2])
def test_all_rows_that_a_question_leads_to_are_shown_by_their_names_before_any_is_shown_whole(indent: int | None):
    tables = list_tools()
    tables["tools"][6]["title"] = "Grey Auger"
    index = build(render(tables, indent))
    found = select(index, "Which parts is Grey Auger made of?", max_tokens=250)
    assert all(f'"Part {number * 31}"' in found.text for number in tables["tools"][6]["parts"])
    assert "season 5" in select(index, "Which parts is Grey Auger made of?", max_tokens=2_000).text


def shop() -> dict[str, list[Row]]:
    """Every number up to 400 is a key in four tables."""
    return {
        "customers": [{"customer_id": n, "mail": f"c{n}@example.org"} for n in range(1, 401)],
        "invoices": [{"invoice_id": n, "customer_id": 1 + n * 7 % 400, "paid": n % 2 == 0} for n in range(1, 401)],
        "invoice_lines": [{"line_id": n, "invoice_id": 1 + n // 2, "product_id": 1 + n * 3 % 60} for n in range(1, 700)],
        "products": [
            {"product_id": n, "label": f"Kettle model {n}x", "details": json.dumps({"text": f"so {n}\n" * 80})}
            for n in range(1, 61)
        ],
    }


@pytest.mark.parametrize("asked", ["invoice 132", "invoice no. 132", "invoice #132"])
def test_a_number_behind_the_name_of_a_table_is_the_key_of_its_row(asked: str):
    tables = shop()
    customer = tables["customers"][tables["invoices"][131]["customer_id"] - 1]
    found = select(build(render(tables)), f"What is the mail address of the customer of {asked}?", max_tokens=120)
    assert customer["mail"] in found.text


def test_a_number_that_begins_a_name_is_no_key():
    tables = library()
    tables["authors"][9]["name"] = "77 Benguela Manor"
    tables["books"][400]["author"] = 10
    found = select(build(render(tables)), "Which books are by the author 77 Benguela Manor?", max_tokens=300)
    assert "Saga number 401" in found.text


def test_rows_with_a_long_string_are_rows():
    tables = shop()
    wanted = {line["product_id"] for line in tables["invoice_lines"] if line["invoice_id"] == 132}
    assert len(tables["products"][0]["details"]) > 400
    found = select(build(render(tables)), "Which products are on invoice 132?", max_tokens=500)
    assert wanted
    assert all(f"Kettle model {product}x" in found.text for product in wanted)


def test_a_column_that_the_question_names_refers_to_a_large_table():
    tables: dict[str, list[Row]] = {
        "people": [{"id": n, "name": f"Person {n}q"} for n in range(1, 3_000)],
        "houses": [{"id": n, "name": f"House {n}h"} for n in range(1, 400)],
        "house_relations": [{"house_id": n, "current_lord": 1 + n * 7 % 2_999} for n in range(1, 400)],
    }
    lord = tables["house_relations"][200]["current_lord"]
    found = select(build(render(tables)), f'Which house has the current lord "Person {lord}q"?', max_tokens=300)
    assert "House 201h" in found.text
