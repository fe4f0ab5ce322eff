"""Conditions of questions about lists of objects that are not words of their rows."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from linear import is_linear

from overspill.lexical.index import build
from overspill.lexical.rows.cells import find_longest_list, read_rows
from overspill.lexical.rows.conditions import find_meeting_rows
from overspill.lexical.select import select

Row = dict[str, Any]
CLAYS = ("terracotta", "porcelain", "stoneware")
POTS: list[Row] = [
    {
        "ref": n,
        "title": f"Pot {n}j",
        "clay": CLAYS[n * 7919 // 13 % 3],
        "price": 20 + n * 41 % 397,
        "glazed": n * 31 // 7 % 4 == 0,
        "fired": f"20{10 + n % 14}-{1 + n % 12:02}-{1 + n % 28:02}",
        "maker": None if n % 11 == 0 else f"Maker{n % 30}",
        "shape": {"litres": n % 50},
        "note": "made by hand and dried in the sun for a week " * 2,
    }
    for n in range(300)
]


@pytest.mark.parametrize(
    ("question", "meets"),
    [
        ("Which porcelain pots cost more than 390?", lambda pot: pot["clay"] == "porcelain" and pot["price"] > 390),
        ("Which stoneware pots have at most 1 litres?", lambda pot: pot["clay"] == "stoneware" and pot["shape"]["litres"] <= 1),
        (
            "Which terracotta pots have a price between 101 and 108?",
            lambda pot: pot["clay"] == "terracotta" and 101 <= pot["price"] <= 108,
        ),
        (
            "Which porcelain pots were fired after August 2023?",
            lambda pot: pot["clay"] == "porcelain" and pot["fired"] > "2023-09",
        ),
        (
            "Which glazed porcelain pots cost less than 40?",
            lambda pot: pot["clay"] == "porcelain" and pot["glazed"] and pot["price"] < 40,
        ),
        (
            "Which stoneware pots that are not glazed cost 30 or less?",
            lambda pot: pot["clay"] == "stoneware" and not pot["glazed"] and pot["price"] <= 30,
        ),
    ],
)
def test_only_rows_that_meet_a_condition_are_listed(question: str, meets: Callable[[Row], bool]):
    asked = [f'"{pot["title"]}"' for pot in POTS if meets(pot)]
    text = select(build(json.dumps(POTS).encode()), question, max_tokens=500).text
    assert 1 <= len(asked) <= 9
    assert all(title in text for title in asked)


def test_rows_with_all_of_a_value_come_before_those_with_a_part_of_it():
    meals: list[Row] = [
        {"id": f"m{n}x", "kind": ("Beef", "Beef and Kale", "Kale and Beef")[n % 3], "area": f"Area{n % 9}", "text": "stir " * 40}
        for n in range(270)
    ]
    asked = [meal["id"] for meal in meals if meal["kind"] == "Beef" and meal["area"] == "Area3"]
    text = select(build(json.dumps(meals).encode()), 'Which meals from Area3 have the kind "Beef"?', max_tokens=1_200).text
    assert asked
    assert all(f'"{each}"' in text for each in asked)


@pytest.mark.slow
@pytest.mark.parametrize("document", [b"The road plan was voted on. " * 100, json.dumps(POTS).encode()])
def test_a_question_of_very_many_conditions_is_read_in_linear_time(document: bytes) -> None:
    index = build(document)
    assert is_linear(lambda size: lambda: select(index, "price over 5 " * (size // 13)), 4_000, quick=2.0, hopeless=15.0)


def test_a_row_that_is_nested_too_deeply_is_left_out() -> None:
    deep = (
        b'{"items": [{"id": 1, "x": ' + b"[" * 3_000 + b"]" * 3_000 + b'}, {"id": 2, "name": "ash"}, {"id": 3, "name": "oak"}]}'
    )
    assert "ash" in select(build(deep), "which items are named ash?").text


def _make_players(separator: str) -> bytes:
    rows = [["name", "team", "homeruns", "salary"]]
    rows += [[f"Player{number}", "Bos" if number % 3 else "Oak", str(number), str(number * 10)] for number in range(300)]
    rows += [["Ragged", "Oak"]]
    return "\n".join(separator.join(row) for row in rows).encode()


@pytest.mark.parametrize("separator", [",", "\t"])
@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("Which players of team Oak have more than 290 home runs?", ["Player291", "Player294", "Player297"]),
        ("Which players have a salary of at least 2970?", ["Player297", "Player298", "Player299"]),
        ("Which players have between 100 and 102 homeruns?", ["Player100", "Player101", "Player102"]),
    ],
)
def test_rows_of_a_table_in_lines_are_compared(separator: str, question: str, expected: list[str]) -> None:
    shown = select(build(_make_players(separator)), question, max_tokens=60).text
    assert [name for name in expected if name not in shown] == []


def test_of_two_columns_the_one_with_the_whole_name_is_compared() -> None:
    lines = ["name,homer86,homeruns", *(f"Player{number},{300 - number},{number}" for number in range(300))]
    shown = select(build("\n".join(lines).encode()), "Whose career home runs exceed 297?", max_tokens=60).text
    assert "Player298" in shown
    assert "Player2," not in shown


_PRICES = "name,price,since,lasts\n" + "".join(
    f"item{number},{number},{2020 + number % 6}-{number % 12 + 1:02}-{number % 28 + 1:02},{number % 90}m {number % 60}s\n"
    for number in range(1, 3000)
)


@pytest.mark.parametrize(
    ("question", "met", "not_met"),
    [
        ("Which items have a price no higher than 3?", [1, 2, 3], [4]),
        ("Which items have a price not above 3?", [1, 2, 3], [4]),
        ("Which items have a price not less than 2998?", [2998, 2999], [2997]),
        ("Which items have a price over 12 and under 15?", [13, 14], [11, 16]),
        ("Which items have a price below 3 or above 2998?", [], []),
    ],
)
def test_bounds_may_be_denied_or_share_a_column(question: str, met: list[int], not_met: list[int]) -> None:
    shown = select(build(_PRICES.encode()), question, max_tokens=200).text
    assert [number for number in met if f"item{number},{number}," not in shown] == []
    assert [number for number in not_met if f"item{number},{number}," in shown] == []


DATED = "name,born,size,lasts\n" + "\n".join(
    f"{name},{born},{size},{lasts}"
    for name, born, size, lasts in (
        ("ann", "2022-12-31", "500 MB", "50s"),
        ("ben", "2023-01-01", "2 GB", "2h"),
        ("cid", "2023-12-31", "20 KB", "45m"),
        ("dan", "2024-01-01", "1.5 GB", "31m"),
        ("eve", "2024-03-15", "3 GB", "5m"),
    )
)


@pytest.mark.parametrize(
    ("question", "names"),
    [
        ("Who was born after 2023?", "dan eve"),
        ("Who was born since 2023?", "ben cid dan eve"),
        ("Who was born before 2024?", "ann ben cid"),
        ("Who was born until 2023?", "ann ben cid"),
        ("Who was born between 2023 and 2024?", "ben cid dan eve"),
        ("Who was born after March 2024?", ""),
        ("Who was born before 2024-03?", "ann ben cid dan"),
        ("Whose size is over 1 GB?", "ben dan eve"),
        ("Which lasts are longer than 30 minutes?", "ben cid dan"),
    ],
)
def test_years_months_and_units_are_compared_as_what_they_are(question: str, names: str) -> None:
    index = build(DATED.encode())
    rows = find_longest_list(index)
    assert rows is not None
    cells = dict(read_rows(index, rows.table, rows.records))
    assert " ".join(cells[record][0] for record in find_meeting_rows(index, rows, question)) == names


def test_rows_that_do_not_fit_are_counted() -> None:
    shown = select(build(_PRICES.encode()), "Which items have a price over 1000?", max_tokens=300).text
    assert "item1001,1001," in shown
    assert "(matched 1999 records, showing " in shown
