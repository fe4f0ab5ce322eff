"""Rows that refer to other rows of their table."""

from __future__ import annotations

import json
from typing import Any

import pytest

from overspill.lexical.index import build
from overspill.lexical.select import select

Row = dict[str, Any]


def staff(key: str, above: str) -> list[Row]:
    return [
        {
            key: n,
            "name": f"Person {chr(65 + n % 26)}{n}",
            "mail": f"p{n * 7919 % 1000:03}",
            above: n // 5 or None,
            "age": n % 40 + 20,
        }
        for n in range(1, 200)
    ]


def ask(tables: Any, question: str, max_tokens: int = 120) -> str:
    return select(build(json.dumps(tables).encode()), question, max_tokens=max_tokens).text


@pytest.mark.parametrize(
    ("key", "above", "question"),
    [
        ("employee_id", "manager_id", "Which mail has the manager of Person N143?"),
        ("id", "reports_to", "What is the mail of the one Person N143 reports to?"),
        ("memid", "recommendedby", "Which mail has the member who recommended Person N143?"),
    ],
)
@pytest.mark.parametrize("is_alone", [True, False])
def test_the_row_above_is_shown(key: str, above: str, question: str, is_alone: bool):
    rows = staff(key, above)
    others = {} if is_alone else {"offices": [{"office_id": n, "town": f"Town {n}"} for n in range(90)]}
    above_it = rows[143 // 5 - 1]
    assert f'"name": "{above_it["name"]}", "mail": "{above_it["mail"]}"' in ask({"people": rows, **others}, question)


def test_the_parts_of_a_thing_are_shown():
    items = [{"key": f"thing_{n}", "title": f"Thing {n}", "components": [f"thing_{n + 2}", f"thing_{n + 9}"]} for n in range(150)]
    items += [{"key": f"thing_{n}", "title": f"Thing {n}", "components": []} for n in range(150, 170)]
    shown = ask({"items": items}, 'Which items is "Thing 77" made from?', 200)
    assert "Thing 79" in shown
    assert "Thing 86" in shown


def test_a_number_that_happens_to_be_a_key_is_not_followed():
    rows = staff("id", "reports_to")
    shown = ask({"people": rows}, "What is the age of Person N143?", 200)
    assert json.dumps(rows[142]) in shown
    assert json.dumps(rows[rows[142]["age"] - 1]) not in shown


def test_a_column_with_the_name_of_another_tables_key_refers_to_it():
    visits = [{"visitid": n, "memid": n % 4 + 1 if n < 1100 else n % 190 + 1, "slots": n % 3} for n in range(1000, 2000)]
    tables = {"people": staff("memid", "recommendedby"), "visits": visits, "rooms": [{"roomid": n} for n in range(40)]}
    visit = next(visit for visit in visits if visit["visitid"] == 1977)
    assert json.dumps(tables["people"][visit["memid"] - 1]) in ask(tables, "Which mail belongs to visitid 1977?", 200)
