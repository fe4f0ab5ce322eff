"""Engine, card, SQL and viewer agree about delimited outputs, and with Python's parser of CSV on what they were written from."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path

import msgspec
import pytest
from asked_tables import read_card_tables
from extras import needs
from msgspec import Struct
from slow import every_fourth

from overspill.lexical.index import build
from overspill.lexical.rows.cells import read_columns, read_rows
from overspill.reading.positions import View
from overspill.sql.library import Source, SqlLibrary
from overspill.store.readers import BytesReader
from overspill.view.rendering import ShownText, render

pytestmark = pytest.mark.usefixtures("forked_workers")

OUTPUTS = Path(__file__).parent / "outputs"


class Expected(Struct, frozen=True):
    """The output's rows are below so many lines, blank ones included."""

    mark: str
    lines: int
    names: str
    above: int = 0

    @property
    def columns(self) -> list[str]:
        return self.names.split("|")


EXPECTED = {
    "pivot_export": Expected(",", 4, "Year Region|Year Product|2023 Revenue|2023 Units|2024 Revenue|2024 Units", above=1),
    "world_bank": Expected(
        ",",
        5,
        "Country Name|Country Code|Indicator Name|Indicator Code|2016|2017|2018|2019|2020|2021|2022|2023|column13",
        above=2,
    ),
    "bank_statement": Expected(";", 4, "Buchungstag|Vorgang|Empfänger|Zweck|Betrag", above=2),
    "daily_cases": Expected(
        ",", 1, "|".join(["Province/State", "Country/Region", "Lat", "Long", *(f"1/{day}/20" for day in range(22, 32))])
    ),
    "sensor_log": Expected(",", 2, "time|temp °C|humidity %|pressure hPa"),
    "mysql_batch": Expected("\t", 1, "id|user|email|last_login|quota"),
    "parts_list": Expected("\t", 1, "sku|name|length|price"),
    "ragged_hosts": Expected(",", 1, "id|host|state|note"),
    "mixed_ends": Expected(",", 1, "id|kind|value"),
    "git_log_tabs": Expected("\t", 0, "column1|column2|column3"),
    "du_all": Expected("\t", 0, "column1|column2"),
    "dpkg_query": Expected("\t", 0, "column1|column2|column3"),
}


def read_output(name: str) -> tuple[bytes, Expected, list[list[str]]]:
    data, expected = (OUTPUTS / f"{name}.txt").read_bytes(), EXPECTED[name]
    lines = list(io.StringIO(data.decode("utf-8-sig"), newline=""))[expected.lines :]
    return data, expected, [row for row in csv.reader(lines, delimiter=expected.mark) if "".join(row).strip()]


def fit(cells: Sequence[object], width: int) -> list[str]:
    """A missing cell and an empty one are the same here, and cells beyond the names are left out."""
    return [same_text(cells[column]) if column < len(cells) else "" for column in range(width)]


def same_text(cell: object) -> str:
    """Numbers and times as SQL has them."""
    text = "" if cell is None else str(cell)
    if re.fullmatch(r"-?(0|[1-9]\d*)(\.\d+)?", text):
        return repr(float(text))
    try:
        return datetime.fromisoformat(text).replace(tzinfo=None).isoformat()
    except ValueError:
        return text


@pytest.mark.parametrize("name", EXPECTED)
def test_the_engine_finds_names_and_cells(name: str) -> None:
    data, expected, rows = read_output(name)
    index = build(data)
    (table,) = index.outline.tables
    assert read_columns(index, table) == expected.columns
    assert [cells for _, cells in read_rows(index, table)] == rows
    assert table.first == expected.above


@pytest.mark.parametrize("name", EXPECTED)
def test_the_card_finds_names_and_cells(name: str) -> None:
    data, expected, rows = read_output(name)
    (table,) = read_card_tables(data)
    assert (table.rows, table.names, sum(each.count for each in table.omissions)) == (len(rows), expected.columns, expected.above)
    width = len(expected.columns)
    assert [fit(row, width) for row in zip(*table.columns, strict=True)] == [fit(row, width) for row in rows]


@pytest.mark.parametrize("name", EXPECTED)
def test_the_viewer_finds_names_and_cells(name: str) -> None:
    data, expected, rows = read_output(name)
    rendered = render(ShownText(BytesReader(data), View(BytesReader(data))))
    assert rendered.names == (tuple(expected.columns) if expected.names[:7] != "column1" else ())
    assert [list(row) for row in rendered.rows] == rows
    assert len(rendered.above) == expected.above


@needs("duckdb", "sql")
@pytest.mark.parametrize("name", every_fourth(EXPECTED))
def test_sql_finds_names_and_cells(name: str) -> None:
    data, expected, rows = read_output(name)
    with SqlLibrary() as library:
        found = library.query("SELECT * FROM output ORDER BY _row", {"output": Source("key", BytesReader(data))}, 60)
    (table,) = found.loaded["output"].tables
    width = len(expected.columns)
    assert table.rows == len(rows)
    assert [column.name for column in table.columns][: width + 1] == ["_row", *expected.columns]
    got = [list(msgspec.json.decode(line, type=dict[str, object]).values()) for line in found.lines.splitlines()]
    assert [row[0] for row in got] == list(range(1, len(rows) + 1))
    assert [fit(row[1 : width + 1], width) for row in got] == [fit(row, width) for row in rows]
    assert bool(expected.above) == ("above the header left out" in table.note)
