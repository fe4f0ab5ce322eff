"""Questions that say values next to the names of their fields, about lists with rows of any length and any name for a name."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from linear import is_linear

from overspill.lexical.index import build
from overspill.lexical.select import select

Row = dict[str, Any]
COUNTRIES = ("IN", "NO", "IT", "US", "CH", "PE")
SEALS = ("wax", "wax-2", "lead", "lead+tin")
WORDS = ("Amber", "Birch", "Cedar", "Dogwood", "Elder", "Fern", "Gorse", "Hazel", "Iris", "Kelp", "Laurel", "Maple", "Olive")
LETTERS: list[Row] = [
    {
        "body": f"A letter in a hand that is not known, on paper of the time; no date; it went to us. Folded {n % 5} times. " * 2,
        "about": {
            "origin-country": COUNTRIES[n * 7919 // 11 % 6],
            "certainty": str(25 * (1 + n * 31 // 7 % 4)),
            "written": f"{('March', 'April', 'May')[n % 3]} {1850 + n % 40}",
            "seal": SEALS[n * 13 // 3 % 4],
        },
        "sheets": 1 + n * 17 // 5 % 6,
        "stamps_of_post_offices": 1 + n * 5 % 6,
        "uuid": f"{n:08x}-0000-4000-8000-{n * 7919:012x}",
        "value": f"{WORDS[n % 13]} {WORDS[n * 7 // 13 % 13]} letter {n}",
    }
    for n in range(300)
]
LETTERS[40]["body"] = 'He said: "no".\n' * 400
LETTERS[41]["pages"] = [{"page": number, "text": f"line {number} " * 20} for number in range(100)]


@pytest.mark.parametrize(
    ("question", "meets"),
    [
        (
            "Which letters of the country IN have the certainty 50 and 3 sheets?",
            lambda row: row["about"]["origin-country"] == "IN" and row["about"]["certainty"] == "50" and row["sheets"] == 3,
        ),
        (
            "Which letters of the country NO with 2 stamps have 2 sheets?",
            lambda row: row["about"]["origin-country"] == "NO" and row["stamps_of_post_offices"] == row["sheets"] == 2,
        ),
        (
            'Which letter was written March 1859 and has "lead+tin" as its seal?',
            lambda row: row["about"]["written"] == "March 1859" and row["about"]["seal"] == "lead+tin",
        ),
        (
            'Which letter has the seal "wax" and was written in March 1850?',
            lambda row: row["about"]["written"] == "March 1850" and row["about"]["seal"] == "wax",
        ),
    ],
)
def test_rows_with_the_values_said_beside_their_fields_are_listed_by_name(question: str, meets: Callable[[Row], bool]):
    found = select(build(json.dumps({"letters": LETTERS}, indent=1).encode()), question, max_tokens=500).text
    names = [row["value"] for row in LETTERS if meets(row)]
    assert names
    assert all(name in found for name in names)


def test_an_own_name_inside_a_row_is_shown_before_a_stem_of_it():
    rows = [
        {
            "sort": "Job",
            "meta": {"baseName": f"sweep-{n % 7}-", "name": f"sweep-{n % 7}-x{n}", "zone": ("default", "upper")[n % 2]},
            "spec": {
                "steps": [{"name": f"step-{k}", "zoneFrom": "default-zone"} for k in range(6)],
                "grade": ("low", "high")[n // 2 % 2],
            },
        }
        for n in range(16)
    ]
    found = select(
        build(json.dumps(rows, indent=2).encode()), "Which jobs in the zone default have the grade high?", max_tokens=500
    ).text
    assert all(
        row["meta"]["name"] in found for row in rows if row["meta"]["zone"] == "default" and row["spec"]["grade"] == "high"
    )


def test_a_question_with_many_fields_takes_linear_time():
    question = "Which rows have " + " and ".join(f"field{k} field {k}" for k in range(20))

    def ask(size: int) -> Callable[[], object]:
        content = json.dumps([{f"field{k}": f"field {k} {n}" for k in range(20)} for n in range(size)]).encode()
        return lambda: select(build(content), question)

    assert is_linear(ask, 50, quick=0.1, hopeless=5)
