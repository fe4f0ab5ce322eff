"""Questions that name a thing and describe a row that refers to it: who led a choir, who came second in a regatta."""

from __future__ import annotations

import json

import pytest

from overspill.lexical.index import build
from overspill.lexical.select import select

_GIVEN = ["Ada", "Bruno", "Clara", "Dario", "Edda", "Felix", "Greta", "Hugo", "Irma", "Jonas", "Kaja", "Lars"]
_FAMILY = ["Abel", "Brandt", "Corvin", "Dahl", "Ekman", "Falk", "Grimm", "Holt", "Iversen", "Jansky", "Kolb", "Lund"]
_TOWNS = ["Aster", "Birk", "Corde", "Dunmore", "Elgin", "Farrow", "Gale", "Harlow", "Ister", "Jura", "Kelso", "Lorne"]
_TITLES = ["Conductor", "Deputy Conductor", "Treasurer", "", "", "", ""]


def _make_tables() -> dict[str, list[dict[str, object]]]:
    """Choirs with members, and regattas of several years with results."""
    people = [
        {
            "id": f"p{31 * n + 7}",
            "name": f"{family}, {given}",
            "home": f"{_TOWNS[n]} Street {n}",
            "mail": f"{given}@{_TOWNS[n]}.org",
        }
        for n, (given, family) in enumerate(zip(_GIVEN, _FAMILY, strict=True))
    ]
    choirs = [{"code": f"C{n}", "name": f"{town} Chamber Choir"} for n, town in enumerate(_TOWNS)]
    members = [
        {"choir": choir["code"], "person": people[(5 * n + 3 * m) % 12]["id"], "title": title, "since": 1990 + m}
        for n, choir in enumerate(choirs)
        for m, title in enumerate(_TITLES)
    ]
    cups = [{"id": town.lower(), "title": f"{town} Cup"} for town in _TOWNS]
    races = [
        {"id": f"r{100 * n + year}", "year": year, "cup_id": cup["id"], "wind": (n + year) % 7}
        for n, cup in enumerate(cups)
        for year in range(2001, 2006)
    ]
    results = [
        {"race_id": race["id"], "position": place, "start_position": 8 - place, "person_id": people[(3 * n + place) % 12]["id"]}
        for n, race in enumerate(races)
        for place in range(1, 8)
    ]
    return {"people": people, "choirs": choirs, "members": members, "cups": cups, "races": races, "results": results}


_TABLES = _make_tables()
_INDEX = build(json.dumps(_TABLES).encode())


def _find(table: str, **cells: object) -> dict[str, object]:
    return next(row for row in _TABLES[table] if all(row[name] == cell for name, cell in cells.items()))


@pytest.mark.parametrize("number", range(0, 12, 3))
def test_a_cell_in_another_form_tells_rows_apart_that_refer_to_the_same(number: int) -> None:
    choir = _TABLES["choirs"][number]
    member = _find("members", choir=choir["code"], title="Conductor")
    person = _find("people", id=member["person"])
    shown = select(_INDEX, f"Where does the one live who conducts the {choir['name']}?", max_tokens=150).text
    assert str(person["home"]) in shown


@pytest.mark.parametrize(("said", "places"), [("won", [1]), ("came second and third in", [2, 3]), ("finished first in", [1])])
def test_places_in_a_ranking_are_said_in_words(said: str, places: list[int]) -> None:
    cup, year = _TABLES["cups"][4], 2003
    race = _find("races", cup_id=cup["id"], year=year)
    shown = select(_INDEX, f"Where do those live who {said} the {year} {cup['title']}?", max_tokens=300).text
    for place in places:
        person = _find("people", id=_find("results", race_id=race["id"], position=place)["person_id"])
        assert str(person["home"]) in shown


def test_a_name_is_found_the_other_way_round() -> None:
    race = _find("races", cup_id="aster", year=2002)
    result = _find("results", race_id=race["id"], position=4)
    family, given = str(_find("people", id=result["person_id"])["name"]).split(", ")
    shown = select(
        _INDEX, f"How strong was the wind when {given} {family} sailed for the Aster Cup in 2002?", max_tokens=120
    ).text
    assert f'"race_id": "{race["id"]}", "position": 4' in shown
