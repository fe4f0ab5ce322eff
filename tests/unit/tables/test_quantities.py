"""What numbers with commas, brackets and units mean, to the readings of columns and to the engine's comparisons."""

from __future__ import annotations

import pytest

from overspill.lexical.rows.measures import measure
from overspill.tables.types import find_reading


@pytest.mark.parametrize(
    ("cell", "value"),
    [
        ("1,5", 1.5),
        ("-0,75 %", -0.75),
        ("1,500", 1500.0),
        ("1,234,567.8", 1234567.8),
        ("(50)", -50.0),
        ("($1,200.50)", -1200.5),
        ("17 (2)", 17.0),
        ("found (50)", 50.0),
    ],
)
def test_a_cell_is_measured_as_people_read_it(cell: str, value: float):
    assert measure(cell) == value


@pytest.mark.parametrize(
    ("cells", "total"),
    [
        (["1,5%", "2,25 %", "10%"], 13.75),
        (["1.5%", "1,200%"], 1201.5),
        (["99G", "1G"], 100 * 1024.0**3),
        (["$1,200.50", "$3"], 1203.5),
    ],
)
def test_a_column_is_added_up_as_people_read_it(cells: list[str], total: float):
    reading = find_reading(cells)
    assert reading is not None
    assert sum(map(reading.measure, cells)) == total


def test_money_with_a_decimal_comma_is_not_a_hundred_times_as_much():
    reading = find_reading(["€1,50", "€2,75"])
    assert reading is None or reading.measure("€1,50") == 1.5
