"""Fields of rows as JSON: how they are spelt, and by which of them a row is shown."""

from __future__ import annotations

import json
from typing import Any

from overspill.lexical.index import build
from overspill.lexical.select import select

Row = dict[str, Any]
LONG = {f"detail{n}": "nothing in particular " * 6 for n in range(12)}
LONG_TOO = {f"detail{n}": "nothing in particular " * 6 for n in range(12, 24)}


def ask(document: object, question: str, max_tokens: int = 500, indent: int | None = None) -> str:
    return select(build(json.dumps(document, indent=indent).encode()), question, max_tokens=max_tokens).text


def wells() -> list[Row]:
    return [
        {"label": f"Well{n}", "land": ("Chile", "Kenya", "Nepal")[n % 3], "depth": (n % 7 - 3) * 40, **LONG} for n in range(210)
    ]


def test_a_filter_by_a_negative_number_leaves_out_the_positive_ones():
    rows = wells()
    asked = [row["label"] for row in rows if row["land"] == "Kenya" and row["depth"] == -120]
    others = [row["label"] for row in rows if row["land"] == "Kenya" and row["depth"] == 120]
    text = ask(rows, "Which wells in Kenya are at a depth of -120?", 180)
    assert all(f'"{label}"' in text for label in asked)
    assert not any(f'"{label}"' in text for label in others)


def test_a_filter_by_a_fraction_leaves_out_rows_with_only_its_parts():
    rows: list[Row] = [{"label": f"Valve{n}", "drop": (0.4, 4, 0, 4.5)[n % 4], "turns": n % 5, **LONG} for n in range(100)]
    asked = [row["label"] for row in rows if row["drop"] == 0.4 and row["turns"] == 4]
    others = [row["label"] for row in rows if row["drop"] != 0.4]
    text = ask(rows, "Which valves have a drop of 0.4 and turns of 4?", 250)
    assert all(f'"{label}"' in text for label in asked)
    assert not any(f'"{label}"' in text for label in others)


def test_first_as_part_of_a_condition_does_not_ask_for_the_first_rows():
    rows: list[Row] = [
        {"title": f"Song{n}", "year": 1900 + n % 90, "voices": [f"Singer{n % 40}", f"Singer{n % 17}"], **LONG} for n in range(800)
    ]
    asked = [row["title"] for row in rows if row["year"] == 1955 and row["voices"][0] == "Singer15"]
    text = ask(rows, "In which songs of 1955 does Singer15 have the first voice?", 200)
    assert len(asked) > 1
    assert all(f'"{title}"' in text for title in asked)


def test_a_name_in_several_forms_is_shown():
    rows: list[Row] = [
        {"name": {"short": f"Isle {n}", "official": f"Dominion of Isle {n}"}, "sea": f"Sea{n % 50}", **LONG} for n in range(200)
    ]
    asked = [row["name"]["official"] for row in rows if row["sea"] == "Sea7"]
    text = ask(rows, "Which isles are in Sea7? Give their official names.", 200, indent=2)
    assert len(asked) == 4
    assert all(name in text for name in asked)


def test_rows_without_a_field_called_name_are_shown_by_their_first_field():
    rows: list[Row] = [{"breed": f"Breed{n}", "coat": f"coat{n % 50}", **LONG} for n in range(400)]
    text = ask(rows, "Which dogs have coat7?", 200, indent=2)
    assert all(f'"Breed{n}"' in text for n in range(7, 400, 50))


def harbours(key: str, reference: str) -> dict[str, list[Row]]:
    return {
        "river": [{key: f"R{n:03}", "title": f"Stream {n}", "length": 40 + n} for n in range(120)],
        "harbour": [{"id": n, "title": f"Port {n}x", reference: f"R{n * 7 % 120:03}", "berths": n % 9} for n in range(400)],
        "pilot": [{"id": n, "title": f"Captain {n}", "since": 1980 + n % 30} for n in range(90)],
    }


def test_a_reference_is_followed_however_its_column_is_spelt():
    for key, reference in (("code", "rivercode"), ("river.key", "river.key"), ("code", "riverCode"), ("code", "river_code")):
        text = ask(harbours(key, reference), "On which river is Port 133x?", 300)
        assert f'"Stream {133 * 7 % 120}"' in text, reference


def test_a_column_that_the_question_names_is_followed_beside_another_reference_between_the_tables():
    lands = [{"code": f"L{n:02}", "title": f"Land {n}x", "capital": n * 9 + 5} for n in range(60)]
    towns = [{"id": n, "title": f"Town {n}", "landcode": f"L{n // 9:02}"} for n in range(600)]
    text = ask({"land": lands, "town": towns}, "What is the capital of Land 31x?", 300)
    assert f'"Town {31 * 9 + 5}"' in text


def keepers() -> dict[str, list[Row]]:
    """Each has an address among much else, and lamps refer to some of them by a number."""
    people = [
        {"id": 40 + n, "name": f"Keeper {n}v", **LONG, "email": f"u{n}@x.example", "after": "x" * 90, **LONG_TOO}
        for n in range(60)
    ]
    lamps = [{"title": f"Lamp {n}q", "keeper_id": 40 + n * 7 % 60} for n in range(60)]
    return {"keepers": people, "lamps": lamps}


def test_the_field_that_is_asked_for_stays_if_a_row_is_shortened_though_all_rows_have_it():
    tables = keepers()
    tables["keepers"][51] |= {"detail2": "watches on dark winter nights", "detail20": "lights and mends and paints"}
    question = "Who lights, cleans, mends, paints and watches Lamp 33q on dark winter nights? Give the email address."
    text = ask(tables, question, 200, indent=2)
    assert "u51@x.example" in text


def test_a_row_is_shortened_between_its_fields():
    text = ask(keepers(), "Which detail3 and detail17 has Keeper 21v?", 150, indent=2)
    assert "[…]" in text
    lines = [line.strip() for line in text.splitlines()]
    assert not [line for line in lines if line.startswith('"') and line.endswith(":")]
