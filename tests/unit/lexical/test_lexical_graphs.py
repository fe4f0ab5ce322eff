"""Databases whose references are links of a graph, have a prefix, or lead from row to row of one table."""

from __future__ import annotations

import json
from typing import Any

from overspill.lexical.index import build
from overspill.lexical.select import select

GIVEN = ["Ada", "Bo", "Cleo", "Dag", "Eva", "Finn", "Gus", "Hedda", "Ivo", "Jana"]
FAMILY = ["Abel", "Brandt", "Costa", "Dahl", "Ekman", "Falk", "Grimm"]


def ask(database: dict[str, Any], question: str, max_tokens: int = 150) -> str:
    return select(build(json.dumps(database).encode()), question, max_tokens=max_tokens).text


def make_graph() -> dict[str, list[dict[str, Any]]]:
    """A graph with one count of nodes for all of its tables; links have nothing but the two numbers."""
    people = [{"node": 3 * number, "given": GIVEN[number % 10], "family": FAMILY[number % 7]} for number in range(70)]
    flats = [{"node": 3 * number + 1, "street": f"{number + 100} Canal Row", "rent": 900 + number} for number in range(70)]
    phones = [{"node": 3 * number + 2, "line": f"555-{7000 + number}"} for number in range(70)]
    lives = [{"source": 3 * number, "target": 3 * ((number * 11) % 70) + 1} for number in range(70)]
    calls = [{"source": 3 * number, "target": 3 * ((number * 13) % 70) + 2} for number in range(70)]
    return {"Person": people, "Flat": flats, "Phone": phones, "LIVES_IN": lives, "HAS_PHONE": calls}


def test_links_of_a_graph_are_followed_to_what_they_lead_to():
    graph = make_graph()
    person = next(each for each in graph["Person"] if (each["given"], each["family"]) == ("Eva", "Grimm"))
    number = person["node"] // 3
    assert f"{(number * 11) % 70 + 100} Canal Row" in ask(graph, "In which flat does Eva Grimm live?")
    assert f"555-{7000 + (number * 13) % 70}" in ask(graph, "What is the telephone number of Eva Grimm?")


def test_a_link_may_lead_from_things_of_several_sorts():
    graph = make_graph()
    graph["Firm"] = [{"node": 1000 + number, "firm": f"Harbour {number} Works"} for number in range(20)]
    graph["HAS_PHONE"] += [{"source": 1000 + number, "target": 3 * number + 2} for number in range(20)]
    assert "555-7013" in ask(graph, "What is the telephone number of Harbour 13 Works?")


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


def test_a_relative_of_a_relative_is_found():
    people: list[dict[str, Any]] = []
    for number in range(90):
        person = {"handle": f"p{number}_{GIVEN[number % 10].lower()}", "title": f"{GIVEN[number % 10]} the {number}th"}
        if number > 8:
            person["mother"] = people[number // 3]["handle"]
            person["father"] = people[number // 3 + 1]["handle"]
        people.append(person)
    database = {"people": people, "towns": [{"town": f"Town {number}", "size": number} for number in range(20)]}
    mother = people[80 // 3]
    father = next(each for each in people if each["handle"] == mother["father"])
    answer = ask(database, f"Who was the father of the mother of {people[80]['title']}?", 300)
    assert father["title"] in answer


def test_a_word_may_refer_to_rows_of_several_tables():
    people = [{"id": f"person--{number:04x}", "name": f"{GIVEN[number % 10]} {FAMILY[number % 7]}"} for number in range(70)]
    firms = [{"id": f"firm--{number:04x}", "name": f"Harbour {number} Works"} for number in range(20)]
    boats = [{"id": f"boat--{number:04x}", "name": f"Heron {number}"} for number in range(90)]
    ends = [(boat, (people + firms)[number * 7 % 90]) for number, boat in enumerate(boats)]
    deals = [{"source_ref": owner["id"], "kind": "bought", "target_ref": boat["id"]} for boat, owner in ends]
    database = {"people": people, "firms": firms, "boats": boats, "deals": deals}
    for boat, owner in ends[5], ends[11]:
        assert f'"{boat["name"]}"' in ask(database, f"Which boat does {owner['name']} have?")


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
