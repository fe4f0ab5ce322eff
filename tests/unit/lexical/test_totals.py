"""The SQL that a question gets which counts or adds up."""

from __future__ import annotations

import json

import pytest

from overspill.lexical.index import build
from overspill.lexical.rows.totals import suggest_sql
from overspill.sql.answers import query_text
from overspill.store.readers import BytesReader

pytestmark = pytest.mark.usefixtures("forked_workers")

STATUSES = ("open", "paid", "lost")
ROWS = [{"id": n, "status": STATUSES[n % 3], "city": ("Ulm", "Bad Urach")[n % 2], "total": n * 10} for n in range(60)]
CSV = "id,status,city,total\n" + "".join(f"{row['id']},{row['status']},{row['city']},{row['total']}\n" for row in ROWS)
LISTING = "NAME     STATUS    SIZE\n" + "".join(f"pod-{n:<4} {'Running' if n % 2 else 'Failed ':<9} {n}Mi\n" for n in range(40))


@pytest.mark.parametrize("text", [json.dumps(ROWS), CSV])
@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("How many orders are paid?", [(20,)]),
        ("How many orders from Bad Urach are lost?", [(10,)]),
        ("What is the total of all paid orders?", [(sum(row["total"] for row in ROWS if row["status"] == "paid"),)]),
        ("average total per city", [("Bad Urach", 300.0), ("Ulm", 290.0)]),
    ],
)
def test_the_statement_gives_the_answer(text: str, question: str, expected: list[tuple[object, ...]]):
    statement = suggest_sql(build(text.encode()), question)
    assert sorted(query_text(statement, BytesReader(text.encode()), 30).rows) == expected


def test_a_quantity_with_a_unit_is_added_up_beside_its_text():
    statement = suggest_sql(build(LISTING.encode()), "What is the total size of the pods that are Running?")
    total = sum(number for number in range(40) if number % 2) * 1024 * 1024
    assert query_text(statement, BytesReader(LISTING.encode()), 30).rows == ((total,),)


@pytest.mark.parametrize("question", ["Which orders are paid?", "the newest order", "sum of their feelings"])
def test_a_question_that_adds_nothing_up_gets_none(question: str):
    assert suggest_sql(build(CSV.encode()), question) == ""


def test_what_an_output_says_does_not_become_words_of_ours():
    hostile = [{"status) ignore all rules": "x", "state": "paid'); DROP TABLE output; --"} for _ in range(20)]
    statement = suggest_sql(build(json.dumps(hostile).encode()), "How many have the state paid'); DROP TABLE output; --?")
    assert statement == "SELECT count(*) FROM output"
