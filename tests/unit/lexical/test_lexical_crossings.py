"""Questions that name several things: the row that answers refers to all of them."""

from __future__ import annotations

import json
import random

import pytest

from overspill.lexical.index import build
from overspill.lexical.rows.relations import read_references
from overspill.lexical.select import select

_TOWNS = [
    "Aster",
    "Birk",
    "Corde",
    "Dunmore",
    "Elgin",
    "Farrow",
    "Gale",
    "Harlow",
    "Ister",
    "Jura",
    "Kelso",
    "Lorne",
    "Moray",
    "Nairn",
    "Orton",
    "Perth",
]
_LINES = ["Amber", "Bronze", "Copper", "Diamond", "Emerald", "Flint", "Garnet", "Hazel", "Indigo", "Jade"]
_BOATS = ["skiff", "ketch", "sloop", "cutter", "barge", "launch", "dinghy", "trawler"]


def _make_ferries() -> tuple[bytes, list[dict[str, object]]]:
    """Crossings between harbours, by lines, with one boat or several: their codes are in one cell."""
    pick = random.Random(4)  # noqa: S311
    harbours = [{"id": 70 + 3 * n, "name": f"{town} Harbour", "depth": 4 + n} for n, town in enumerate(_TOWNS)]
    lines = [{"id": 900 + n, "name": f"{name} Ferries", "motto": f"{name} first"} for n, name in enumerate(_LINES)]
    boats = [{"code": f"{kind[:2].upper()}{n}", "model": f"Standard {kind} {n}"} for kind in _BOATS for n in range(1, 6)]
    trips: list[dict[str, object]] = []
    for one in harbours:
        for other in pick.sample(harbours, 9):
            if one is not other:
                codes = " ".join(str(boat["code"]) for boat in pick.sample(boats, pick.choice((1, 1, 2))))
                ends = {"source_id": one["id"], "destination_id": other["id"]}
                trips.append({"line_id": pick.choice(lines)["id"], **ends, "fleet": codes, "stops": pick.randint(0, 2)})
    tables = {"harbours": harbours, "lines": lines, "trips": trips, "boats": boats}
    return json.dumps(tables).encode(), trips


def _find(tables: dict[str, list[dict[str, object]]], table: str, column: str, key: object) -> dict[str, object]:
    return next(row for row in tables[table] if row[column] == key)


_FERRIES, _TRIPS = _make_ferries()
_TABLES: dict[str, list[dict[str, object]]] = json.loads(_FERRIES)
_INDEX = build(_FERRIES)


@pytest.mark.parametrize("number", [3, 40, 77])
def test_a_row_that_refers_to_two_named_things_leads_to_a_third(number: int) -> None:
    trip = _TRIPS[number]
    start, end = (_find(_TABLES, "harbours", "id", trip[column])["name"] for column in ("source_id", "destination_id"))
    line = _find(_TABLES, "lines", "id", trip["line_id"])
    for question, field in (("Which line sails from", "name"), ("What is the motto of the line that sails from", "motto")):
        answer = select(_INDEX, f"{question} {start} to {end}?", max_tokens=300).text
        assert str(line[field]) in answer


def test_the_other_end_is_asked_for_by_the_name_of_its_table() -> None:
    ends = {trip["source_id"] for trip in _TRIPS if trip["destination_id"] == 70}
    answer = select(_INDEX, "From which harbours can one sail to Aster Harbour?", max_tokens=600).text
    for key in ends:
        assert str(_find(_TABLES, "harbours", "id", key)["name"]) in answer


def test_what_refers_to_such_a_row_belongs_to_it() -> None:
    """The judge of a match, in a table that refers to the match; the match refers to both teams and to the cup."""
    pick = random.Random(9)  # noqa: S311
    teams = [{"team_id": f"T{n:02}", "team": town} for n, town in enumerate(_TOWNS)]
    cups = [{"cup_id": f"C{year}", "cup": f"{year} Northern Cup"} for year in range(1990, 1998)]
    judges = [{"judge_id": f"J{n:02}", "family_name": f"{town}sen"} for n, town in enumerate(_TOWNS)]
    pairs = [(cup["cup_id"], *pick.sample(teams, 2)) for cup in cups for _ in range(30)]
    matches = [
        {"match_id": f"M{n:03}", "cup_id": cup, "home_team_id": one["team_id"], "away_team_id": two["team_id"]}
        for n, (cup, one, two) in enumerate(pairs)
    ]
    duties = [{"match_id": match["match_id"], "judge_id": pick.choice(judges)["judge_id"]} for match in matches]
    tables = {"teams": teams, "cups": cups, "judges": judges, "matches": matches, "duties": duties}
    index = build(json.dumps(tables).encode())
    for number in (12, 111):
        cup, one, two = pairs[number]
        question = f"Who was the judge of {one['team']} against {two['team']} at the {cup[1:]} Northern Cup?"
        judge = next(judge for judge in judges if judge["judge_id"] == duties[number]["judge_id"])
        assert judge["family_name"] in select(index, question, max_tokens=300).text


def test_what_several_rows_are_is_asked_for_and_not_named() -> None:
    people = [{"id": n, "last_name": f"{town}son", "job": "Pilot" if n % 3 else "Cook"} for n, town in enumerate(_TOWNS[:9])]
    places = [{"place_id": 300 + n, "place": f"{town} Point"} for n, town in enumerate(_TOWNS)]
    duties = [{"person_id": n % 9, "place_id": 300 + n} for n in range(len(_TOWNS))]
    index = build(json.dumps({"people": people, "places": places, "duties": duties}).encode())
    assert "Cordeson" in select(index, "Which pilot serves Corde Point?", max_tokens=200).text


def test_values_tell_which_columns_refer_to_what() -> None:
    found, steps = _INDEX.remember(read_references)
    links = {
        (found[step.source].columns[step.column], found[step.target].name[0], found[step.target].columns[step.other_column])
        for step in steps
        if step.is_forward
    }
    assert {("source_id", "harbour", "id"), ("destination_id", "harbour", "id")} <= links


def test_long_lists_of_keys_take_little_time_and_memory() -> None:
    members = [{"id": 10_000 + n, "member": f"member {n}m"} for n in range(6_000)]
    clubs = [{"club_id": n, "club": f"Club {n}c", "town": f"Town {n}t", "members": [m["id"] for m in members]} for n in range(3)]
    towns = [{"town": f"Town {n}t", "mayor": f"mayor {n}y"} for n in range(20)]
    index = build(json.dumps({"members": members, "clubs": clubs, "towns": towns}).encode())
    assert "mayor 1y" in select(index, "Who is the mayor of Club 1c with member 7m?", max_tokens=500).text


def test_what_is_asked_may_be_three_references_from_what_is_named() -> None:
    books = [{"id": n, "title": f"{_TOWNS[n % 16]} {_LINES[n % 10]} Nights"} for n in range(1, 80)]
    editions = [{"id": 500 + n, "book_id": n, "pages": 90 + n} for n in range(1, 80)]
    printings = [{"id": 2000 + n, "edition_id": 500 + n, "paper": "cream"} for n in range(1, 80)]
    regions = [{"id": n, "region": name} for n, name in enumerate(("Nordland", "Westerland", "Ostmark"), 1)]
    sales = [
        {"region_id": region["id"], "printing_id": printing["id"], "amount": 10_000 * region["id"] + printing["id"]}
        for printing in printings
        for region in regions
    ]
    tables = {"book": books, "edition": editions, "printing": printings, "region": regions, "sales": sales}
    text = select(build(json.dumps(tables).encode()), f'How many of "{books[40]["title"]}" went to Ostmark?', max_tokens=200).text
    assert str(30_000 + 2041) in text
