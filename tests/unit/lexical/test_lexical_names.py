"""The rows of a list are shown by their names and by the fields that a question asks about."""

from __future__ import annotations

import json
import re

import pytest

from overspill.lexical.index import build
from overspill.lexical.select import select

QUESTION = 'Which ships of the class "sloop" have a length of 37?'


def list_ships(key: str) -> str:
    """Each ship has an id before its name, and fields whose names repeat words of the question."""
    ships = [
        {
            "id": number,
            "notes": "Built at the yard by the river, in the year after the flood, and repaired there ever since. " * 3,
            key: f"Vessel {chr(65 + number % 26)}{chr(65 + number // 26)}",
            "class": "sloop" if number % 30 == 7 else "barge",
            "sloop_rigging": f"kind {number}",
            "length": 37 if number % 10 == 7 else 20 + number % 10,
        }
        for number in range(120)
    ]
    return json.dumps(ships, indent=2)


@pytest.mark.parametrize("key", ["name", "dname", "localized_name", "displayName", "title"])
def test_every_row_that_meets_the_conditions_is_shown_by_its_name(key: str):
    found = select(build(list_ships(key).encode()), QUESTION, max_tokens=200)
    for number in (7, 37, 67, 97):
        assert f"Vessel {chr(65 + number % 26)}{chr(65 + number // 26)}" in found.text


def test_a_field_whose_name_has_a_word_that_is_a_value_is_left_out():
    found = select(build(list_ships("name").encode()), QUESTION, max_tokens=200)
    assert '"class": "sloop"' in found.text
    for number in (7, 37, 67, 97):
        assert f'"kind {number}"' not in found.text


def test_a_field_whose_name_has_a_word_that_is_no_value_is_shown():
    found = select(build(list_ships("name").encode()), f"{QUESTION} Give their rigging.", max_tokens=200)
    for number in (7, 37, 67, 97):
        assert f'"kind {number}"' in found.text


def test_a_row_is_shown_with_the_name_that_an_object_inside_it_has() -> None:
    rows = [
        {
            "kind": "Unit",
            "metadata": {"labels": {"tier": "back" * 9}, "name": f"unit-{number:03}", "zone": "north" if number % 9 else "south"},
            "spec": {"parts": [{"title": f"part {part}", "text": "word " * 40} for part in range(6)]},
        }
        for number in range(60)
    ]
    text = select(build(json.dumps(rows, indent=2).encode()), "Which units are in the zone south?", max_tokens=500).text
    assert {f"unit-{number:03}" for number in range(0, 60, 9)} <= set(re.findall(r"unit-\d+", text))
