"""References by name instead of by key, and tables that relate the rows of another one to each other."""

from __future__ import annotations

import json
from typing import Any

import pytest

from overspill.lexical.index import build
from overspill.lexical.select import select

Row = dict[str, Any]


def ask(tables: dict[str, list[Row]], question: str, max_tokens: int = 150) -> str:
    return select(build(json.dumps(tables).encode()), question, max_tokens=max_tokens).text


def countries() -> list[Row]:
    return [
        {"id": n, "code": f"c{n:03}", "name": f"Land of {chr(65 + n % 26)}{n}", "capital": f"Town {n * 7919 % 1000}q"}
        for n in range(1, 150)
    ]


@pytest.mark.parametrize("column", ["code", "name"])
def test_a_reference_by_another_column_than_the_key_is_followed(column: str):
    lands = countries()
    rivers = [{"id": n, "river": f"Stream {n}w", "country": lands[(n * 31 + 60) % 149][column]} for n in range(1, 120)]
    assert lands[(77 * 31 + 60) % 149]["capital"] in ask(
        {"countries": lands, "rivers": rivers}, "Which capital has the country of Stream 77w?"
    )


def test_the_key_is_followed_if_another_column_has_the_same_numbers():
    lands = [{**land, "rank": 150 - land["id"]} for land in countries()]
    rivers = [{"id": n, "river": f"Stream {n}w", "country": 149 - n % 40} for n in range(1, 120)]
    assert lands[149 - 77 % 40 - 1]["capital"] in ask(
        {"countries": lands, "rivers": rivers}, "Which capital has the country of Stream 77w?"
    )


def houses(role: str) -> dict[str, list[Row]]:
    return {
        "titles": [{"id": n, "title": f"Title {n}t"} for n in range(1, 30)],
        "houses": [{"id": n, "name": f"House {n}h", "motto": f"motto {n * 7919 % 1000}m"} for n in range(1, 300)],
        "house_relationships": [
            {"house_id": n, role: None if n % 9 == 0 else 1 + n * 17 % 299, "rooms": 1 + n % 50} for n in range(1, 300)
        ],
    }


@pytest.mark.parametrize(
    ("role", "question"),
    [
        ("overlord", "Who is the overlord of House 143h?"),
        ("overlord_id", "Who is the overlord of House 143h?"),
    ],
)
def test_a_row_in_a_role_that_another_table_has_is_shown(role: str, question: str):
    assert f'"House {1 + 143 * 17 % 299}h"' in ask(houses(role), question)


def test_a_number_that_another_table_has_of_a_row_is_no_role():
    tables = houses("overlord")
    shown = ask(tables, "How many rooms has House 143h?", 500)
    assert json.dumps(tables["house_relationships"][142]) in shown
    assert f'"House {tables["house_relationships"][142]["rooms"]}h"' not in shown


def test_the_key_of_a_third_table_is_no_role_though_its_numbers_are_keys_too():
    lines = [{"product_id": n, "order_id": 1 + n * 17 % 299, "amount": n % 5} for n in range(1, 300)]
    products = [{"id": n, "name": f"Kettle {n}k"} for n in range(1, 300)]
    orders = [{"id": n, "customer": f"Person {n * 7919 % 1000}p"} for n in range(1, 300)]
    shown = ask({"products": products, "lines": lines, "orders": orders}, "Which order has Kettle 143k?")
    assert json.dumps(orders[lines[142]["order_id"] - 1]) in shown
    assert f'"Kettle {lines[142]["order_id"]}k"' not in shown
