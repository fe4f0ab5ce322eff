"""A question may end with other words in parentheses, which the text may have instead of its own."""

from __future__ import annotations

import json

import pytest

from overspill.lexical.index import build
from overspill.lexical.query import parse
from overspill.lexical.select import select

FILLER = "".join(
    f"## Chapter {n}\n\nThe boats of harbour {n} are painted in spring and mended in autumn.\n\n" for n in range(200)
)
MANUAL = (FILLER + "## Rolling back\n\nReverting a release takes one command.\n\n" + FILLER).encode()


def ask(question: str, max_tokens: int = 120) -> str:
    return select(build(MANUAL), question, max_tokens=max_tokens).text


def test_other_words_find_what_the_question_does_not():
    assert "takes one command" not in ask("How do I undo a deployment of the boats?")
    assert "takes one command" in ask("How do I undo a deployment of the boats? (revert, roll back, release)")


def test_the_words_of_the_question_count_more_than_other_words():
    lines = [
        f"2026-01-{day:02} the {what} of {metal} was noted"
        for day in range(1, 29)
        for what, metal in (("age", "tin"), ("rust", "lead"))
    ]
    lines[20], lines[30] = "2026-01-11 the colour of copper was noted", "2026-01-16 the weight of iron was noted"
    text = select(build("\n".join(lines).encode()), "weight of iron (colour, copper)", max_tokens=200).text
    assert "weight of iron" in text
    assert "colour of copper" in text
    assert (
        "colour of copper" not in select(build("\n".join(lines).encode()), "weight of iron (colour, copper)", max_tokens=20).text
    )


@pytest.mark.parametrize(
    ("question", "text", "other"),
    [
        ("How do I undo it? (revert, reset)", "How do I undo it?", "revert, reset"),
        ("undo (revert; reset).", "undo", "revert; reset"),
        ("How fast is it (km/h)?", "How fast is it (km/h)?", ""),
        ("What does join(a, b)?", "What does join(a, b)?", ""),
        ("What does f (a, g(b, c))?", "What does f (a, g(b, c))?", ""),
        ("What is the fee (net, gross) of a boat?", "What is the fee (net, gross) of a boat?", ""),
        ("(revert, reset)", "(revert, reset)", ""),
        (" (revert, reset)", " (revert, reset)", ""),
    ],
)
def test_only_several_words_at_the_end_are_other_words(question: str, text: str, other: str):
    query = parse(question)
    assert (query.text, query.other) == (text, other)


def test_other_words_do_not_change_what_sort_of_question_it_is():
    query = parse("Where is the boat? (all, every, failed, before, after, how many)")
    assert not any((query.listing, query.failure, query.before, query.after, query.counting))


def test_other_words_make_a_question_of_little_words_clear():
    query = parse("What is it about? (roll back, revert)")
    assert not query.vague
    assert {term.key for term in query.terms} == {"roll", "back", "revert"}


def test_other_words_name_the_table_that_is_asked_for():
    people = [{"id": 7 * n, "name": "Mira Holt" if n == 42 else f"Resident {n}k"} for n in range(1, 90)]
    crates = [{"id": 900 + n, "person_id": 7 * n, "fruit": f"Pear {n * 3}z"} for n in range(1, 90)]
    trips = [{"id": 700 + n, "person_id": 7 * n, "goal": f"Town {n * 5}x"} for n in range(1, 90)]
    tables = build(json.dumps({"people": people, "trips": trips, "crates": crates}).encode())
    assert "Town 210x" in select(tables, "What is in the basket of Mira Holt?", max_tokens=500).text
    text = select(tables, "What is in the basket of Mira Holt? (crate, box)", max_tokens=500).text
    assert "Pear 126z" in text
    assert "Town" not in text
