"""Databases whose references have a prefix, or lead from row to row of one table."""

from __future__ import annotations

import json
from typing import Any

from overspill.lexical.index import build
from overspill.lexical.select import select

GIVEN = ["Ada", "Bo", "Cleo", "Dag", "Eva", "Finn", "Gus", "Hedda", "Ivo", "Jana"]
FAMILY = ["Abel", "Brandt", "Costa", "Dahl", "Ekman", "Falk", "Grimm"]


def ask(database: dict[str, Any], question: str, max_tokens: int = 150) -> str:
    return select(build(json.dumps(database).encode()), question, max_tokens=max_tokens).text


def test_references_with_a_scheme_before_the_key_are_followed():
    keys = [f"{number:08x}-aa{number % 10}{number}" for number in range(1, 60)]
    owners = [{"id": key, "name": f"{GIVEN[number % 10]} {FAMILY[number % 7]}"} for number, key in enumerate(keys)]
    clinics = [{"id": f"c-{number}x", "title": f"Clinic {number} North"} for number in range(12)]
    visits = [
        {
            "id": f"v{number}",
            "animal": {"reference": f"urn:uuid:{keys[number]}"},
            "staff": [{"place": {"reference": f"Clinic/c-{number % 12}x"}}],
            "begin": f"2021-03-{number % 28 + 1:02}T08:15:00Z",
        }
        for number in range(59)
    ]
    database = {"owners": owners, "clinics": clinics, "visits": visits}
    name = owners[17]["name"]
    assert "Clinic 5 North" in ask(database, f"Which clinic did {name} visit on 2021-03-18?", 300)


def make_payments() -> dict[str, list[dict[str, Any]]]:
    """The keys of both tables are numbers from one on, and accounts are called by none of their columns."""
    clerks = [{"clerk": number, "name": f"{GIVEN[number % 10]} {FAMILY[number % 7]}"} for number in range(1, 60)]
    accounts = [{"account": number, "owner": f"Owner {number}q"} for number in range(1, 300)]
    payments = [
        {"id": 7000 + number, "clerk": 1 + number % 59, "from": 1 + number * 7 % 299, "to": 1 + number * 3 % 298}
        for number in range(400)
    ]
    return {"clerks": clerks, "accounts": accounts, "payments": payments}


def test_both_ends_of_a_way_refer_to_the_one_table_that_has_their_numbers():
    payments = make_payments()
    asked = payments["payments"][123]
    assert f"Owner {asked['to']}q" in ask(payments, f"To which account did payment {asked['id']} go?")
    paid = {f"Owner {each['to']}q" for each in payments["payments"] if each["from"] == 40}
    text = ask(payments, "To which accounts did Owner 40q pay?", 300)
    assert len(paid) == 2
    assert all(owner in text for owner in paid)
