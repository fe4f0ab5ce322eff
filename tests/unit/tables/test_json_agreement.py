"""The engine, SQL and the card see the same tables in JSON, and what they see is what Python reads."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, TypeAlias, cast

import pytest
from extras import needs
from slow import every_fourth

from overspill.gate.cards.json_card import read_json_tables
from overspill.lexical.index import build
from overspill.lexical.rows.cells import list_notes, read_columns, read_rows
from overspill.sql.answers import query_text, read_row
from overspill.store.readers import BytesReader
from overspill.tables.json_rows import read_cells
from overspill.tables.json_tables import find_json_tables, hold_documents
from overspill.tables.json_text import hold_json
from overspill.tables.table import JsonRows

pytestmark = pytest.mark.usefixtures("forked_workers")

Row: TypeAlias = dict[str, Any]
ORDERS: list[Row] = [
    {"id": n, "of": {"name": f"c{n % 3}", "at": {"city": 'U"lm'}}, "total": n * 1.25, "paid": n % 2 == 0, "note": f"it's\n{n}"}
    for n in range(40)
]
FINDINGS = {f"src/a{n}.py": [{"line": n * 10 + m, "rule": "E501"} for m in range(n % 4)] for n in range(30)}
SPARSE: list[Row] = [{"id": n} | ({"late": n} if n > 30 else {}) | ({"none": None} if n % 2 else {}) for n in range(60)]


def flat(row: Row, above: str = "") -> Row:
    found: Row = {}
    for name, value in row.items():
        found |= flat(cast("Row", value), f"{above}{name}.") if isinstance(value, dict) and value else {above + name: value}
    return found


def text_of(rows: list[Row]) -> str:
    return json.dumps(rows)


FIXTURES: dict[str, tuple[str, list[Row]]] = {
    "an array": (text_of(ORDERS), ORDERS),
    "an array over many lines": (json.dumps(ORDERS, indent=2), ORDERS),
    "an envelope": (json.dumps({"page": 1, "data": {"items": ORDERS}}), ORDERS),
    "lines": ("".join(json.dumps(row) + "\n" for row in ORDERS), ORDERS),
    "documents over many lines": ("\n".join(json.dumps(row, indent=1) for row in ORDERS), ORDERS),
    "objects by their keys": (
        json.dumps({f"k/{n}": row for n, row in enumerate(ORDERS)}),
        [{"_key": f"k/{n}", **row} for n, row in enumerate(ORDERS)],
    ),
    "lists by their keys": (json.dumps(FINDINGS), [{"_key": key, **row} for key, rows in FINDINGS.items() for row in rows]),
    "a tool's text": (json.dumps({"content": [{"type": "text", "text": text_of(ORDERS)}]}), ORDERS),
    "a tool's short text": (json.dumps({"content": [{"type": "text", "text": text_of(ORDERS[:3])}]}), ORDERS[:3]),
    "one of two texts": (json.dumps([{"text": f"Found:\n{text_of(ORDERS)}"}, {"text": "No {more} [now]."}]), ORDERS),
    "a string": (json.dumps(text_of(ORDERS)), ORDERS),
    "a fence": (f"These are all.\n\n```json\n{json.dumps(ORDERS, indent=1)}\n```\n", ORDERS),
    "words above": (f"Found 40 rows:\n{text_of(ORDERS)}\n", ORDERS),
    "Python": (repr(ORDERS), ORDERS),
    "some rows with more": (text_of(SPARSE), SPARSE),
    "a sheet": (
        json.dumps({"range": "A1:C", "values": [["id", "city", "zip"], *([n, f"c{n}", n * 3][: 2 + n % 2] for n in range(9))]}),
        [{"id": n, "city": f"c{n}"} | ({"zip": n * 3} if n % 2 else {}) for n in range(9)],
    ),
    "a fence below brackets": (f"Here [really]:\n\n```json\n{json.dumps(ORDERS)}\n```\n", ORDERS),
    "long numbers": (
        '[{"n": 12345678901234567890}, {"n": 7}, {"n": 0.12345678901234567891}]',
        [{"n": "12345678901234567890"}, {"n": "7"}, {"n": "0.12345678901234567891"}],
    ),
}
_NOT_AS_THEY_ARE = ("a tool's text", "a tool's short text", "one of two texts", "a string", "long numbers")
"""The texts that have the rows in another spelling."""


def as_written(value: Any) -> Any:
    return None if value is None else str(value)


@pytest.mark.parametrize("name", FIXTURES)
def test_the_card_has_the_rows_that_python_reads(name: str):
    text, rows = FIXTURES[name]
    held = hold_json(text.encode())
    (table,) = find_json_tables(held.documents)
    found = [read_cells(raw, key) for _, raw, key in table.rows()]
    spelt: Callable[[Any], Any] = as_written if name == "long numbers" else lambda value: value
    assert [{key: spelt(cell) for key, cell in row.items()} for row in found] == [flat(row) for row in rows]
    (read,) = read_json_tables(held, 1)
    assert (read.rows, list(read.names)) == (len(rows), list(dict.fromkeys(key for row in rows for key in flat(row))))


@pytest.mark.parametrize("name", [name for name in FIXTURES if name != "long numbers"])
def test_the_engine_has_the_rows_that_python_reads(name: str):
    text, rows = FIXTURES[name]
    index = build(text.encode())
    (table,) = [table for table in index.outline.tables if isinstance(table.rows, JsonRows)]
    names = read_columns(index, table)
    assert set(names) == {key for row in rows for key in flat(row)}
    found = [dict(zip(names, cells, strict=True)) for _, cells in read_rows(index, table)]
    assert found == [{key: str(flat(row)[key]) if key in flat(row) else "" for key in names} for row in rows]


@needs("duckdb", "sql")
@pytest.mark.parametrize("name", every_fourth(FIXTURES))
def test_sql_has_the_rows_that_python_reads_and_says_where_each_is(name: str):
    text, rows = FIXTURES[name]
    answer = query_text("SELECT * FROM output", BytesReader(text.encode()), 60)
    assert answer.columns[0] == "_row"
    names = answer.columns[1:]
    assert set(names) == {key for row in rows for key in row}
    wanted = [[row.get(name) for name in names] for row in rows]
    assert [list(row[1:]) for row in answer.rows] == wanted
    if name in _NOT_AS_THEY_ARE:
        return
    for (where, *_), row in list(zip(answer.rows, rows, strict=True))[::13]:
        found = read_row(BytesReader(text.encode()), where)
        own: Any = {key: value for key, value in row.items() if key != "_key"}
        own = list(own.values()) if name == "a sheet" else own
        assert (eval(found.text) if name == "Python" else json.loads(found.text)) == own  # noqa: S307


@pytest.mark.parametrize(
    "member",
    [
        [{"id": number} for number in range(4)],
        [None, {"id": 1}, {"id": 2}, {"id": 3}],
        {key: {"id": number} for number, key in enumerate("abc")},
        {"deep": {"deeper": [{"id": 1}, {"id": 2}, {"id": 3}]}},
        json.dumps([{"id": number} for number in range(4)], indent=2),
        str([{"id": number} for number in range(4)]),
    ],
)
def test_a_table_is_found_in_whatever_member_holds_it(member: object):
    held = hold_json(json.dumps({"page": 1, "said": "no {table} [here]", "data": member}).encode())
    (table,) = find_json_tables(held.documents)
    assert table.pointer.startswith("/data")


@needs("duckdb", "sql")
def test_lines_that_are_no_json_are_counted_by_all():
    lines = [json.dumps({"id": n, "of": {"a": n}, "tags": [{"t": 1}, {"t": 2}, {"t": 3}]}) for n in range(40)]
    text = "\n".join([lines[0], "-- rotated --", *lines[1:9], '{"id": 5,', *lines[9:], "{'id': 1"]).encode()
    (card,) = read_json_tables(hold_documents(text, "documents"), len(text))
    assert (card.rows, [(each.count, each.what) for each in card.omissions]) == (40, [(3, "left out, which could not be read")])
    index = build(text)
    (table,) = index.outline.tables
    assert (table.last - table.first, list_notes(index, table)) == (43, ["3 rows could not be read"])
    answer = query_text("SELECT count(*) FROM output", BytesReader(text), 60)
    assert (answer.rows, answer.notes) == (((40,),), ("Left out 3 rows of output that could not be read.",))


def test_rows_whose_strings_hold_json_stay_rows():
    rows = [{"id": number, "more": json.dumps([{"a": number, "b": "x"}])} for number in range(9)]
    for text in (json.dumps(rows), json.dumps({"rows": rows}), "\n".join(map(json.dumps, rows))):
        (table,) = build(text.encode()).outline.tables
        assert table.last - table.first == 9
