"""Databases whose tables are made to lead everywhere: a question about them still takes time in proportion to their size."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
from linear import is_linear

from overspill.lexical.index import build
from overspill.lexical.select import select

pytestmark = [pytest.mark.slow, pytest.mark.no_cover]


def refer_by_many_columns(columns: int) -> bytes:
    teams = [{"id": number, "name": f"Alpha {number}"} for number in range(30)]
    games = [{"id": game} | {f"a{column}_team": game * column % 30 for column in range(columns)} for game in range(200)]
    return json.dumps({"team": teams, "games": games}).encode()


def name_each_column_once(columns: int) -> bytes:
    teams = [{"name": f"Alpha {team}"} | {f"k{team}_{column}": f"v{column}" for column in range(columns)} for team in range(125)]
    return json.dumps({"team": teams, "other": [{"id": number, "name": f"n{number}"} for number in range(5)]}).encode()


def refer_from_many_tables(rows: int) -> bytes:
    """The question names a row and no table."""
    teams = [{"id": 10_000 + number, "name": f"Alpha {number}"} for number in range(30)]
    tables = {
        f"t{table}": [{"no": row, "team_id": 10_000 + row % 30, "peers": [10_000 + row % 7]} for row in range(rows)]
        for table in range(38)
    }
    return json.dumps({"team": teams, **tables}).encode()


def refer_to_every_table(rows: int) -> bytes:
    tables = {
        f"t{table}": [{"id": f"t{table}--{row:x}", "name": f"Alpha {table} {row}"} for row in range(20)] for table in range(38)
    }
    links = [{"source_ref": f"t{row % 38}--{row % 20:x}", "target_ref": f"t{row % 31}--{row % 19:x}"} for row in range(rows)]
    return json.dumps({**tables, "links": links}).encode()


def hold_many_arrays_of_texts(arrays: int) -> bytes:
    text = "A line.\n" * 60
    return json.dumps({f"a{array}": [{"body": text, "n": row} for row in range(2)] for array in range(arrays)}).encode()


@pytest.mark.parametrize(
    ("make", "columns", "question"),
    [
        (refer_by_many_columns, 40, "Which games did Alpha 3 play against Alpha 4?"),
        (name_each_column_once, 200, "What is k5_3 of Alpha 3?"),
        (refer_from_many_tables, 100, "What does Alpha 3 still have to do?"),
        (refer_to_every_table, 2_000, "Which t3 does Alpha 7 5 use?"),
        (hold_many_arrays_of_texts, 1_000, "Which line is in a3?"),
    ],
)
def test_tables_of_many_columns_are_followed_in_bounded_time(make: Callable[[int], bytes], columns: int, question: str) -> None:
    def work(size: int) -> Callable[[], object]:
        document = make(size)
        return lambda: select(build(document), question)

    assert is_linear(work, columns, quick=2.5, hopeless=20.0)
