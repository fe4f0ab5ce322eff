"""A row that a query selected can be found in the output, byte for byte."""

from __future__ import annotations

import json
from typing import Any

import pytest
from extras import needs

from overspill.errors import BadRequest
from overspill.sql.answers import query_text, read_row
from overspill.store.readers import BytesReader

pytestmark = pytest.mark.usefixtures("forked_workers")

ORDERS = [{"id": n, "note": f'a "note" {{[{n}' + "\n" * (n % 2), "tags": ["x", n]} for n in range(30)]
LOG = "".join(f"2026-11-16 12:00:{n:02} ERROR order {n} failed\n  at line {n}\n  at main\n" for n in range(30))
CSV = "id,note\n" + "".join(f'{n},"two\nlines, {n}"\n' + "\n" * (n == 3) for n in range(30))
TITLED = "id,note,other\n" + "".join(f"{n},a,b\n" for n in range(30))
XML = "<all>" + "".join(f'<order id="{n}" note="a > b"><item>{n}</item></order>\n' for n in range(30)) + "</all>"
EMPTY_XML = "<all>" + "".join(f'<order id="{n}" note="a > b"/>' for n in range(30)) + "</all>"
COLUMNS = "NAME      STATUS    AGE\n" + "".join(f"pod-{n:<6}Running   {n}d\n" for n in range(30))
BY = "Author: A <a@example.com>\nDate:   Mon Nov 16 12:00:00 2026 +0000"
HISTORY = "".join(f"commit {n:040x}\n{BY}\n\n    Change {n}\n\n" for n in range(30))
ENVELOPE = '{"a": {"b": 1}, "k\\"ey":\n{"rows": [' + ",\n".join(map(json.dumps, ORDERS)) + "]}}"
CASES: dict[str, tuple[str, str, str]] = {
    "JSON": (json.dumps(ORDERS), "id = 17", json.dumps(ORDERS[17])),
    "JSON in an envelope": (ENVELOPE, "id = 3", ENVELOPE[ENVELOPE.index('{"id": 3,') : ENVELOPE.index(',\n{"id": 4,')]),
    "lines of JSON": ("".join(json.dumps(order) + "\n" for order in ORDERS), "id = 17", json.dumps(ORDERS[17])),
    "CSV": (CSV, "id = 17", '17,"two\nlines, 17"'),
    "CSV without a header": (CSV.partition("\n")[2], "column1 = 0", '0,"two\nlines, 0"'),
    "CSV below a title": ('All notes\n\n"as of\ntoday"\n' + TITLED, "id = 17", "17,a,b"),
    "CSV below a line of spaces": ("All notes\n   \n" + TITLED, "id = 17", "17,a,b"),
    "CSV below half-empty rows": ("All notes,,\n,first,\n" + TITLED, "id = 29", "29,a,b"),
    "two rows": ("id,note\n0,a\n1,b\n", "id = 1", "1,b"),
    "a table in Markdown": ("# T\n\n| id | note |\n|---|---|\n| 1 | x |\n| 2 | y |\n", "id = 2", "| 2 | y |"),
    "a log": (LOG, "message LIKE 'order 17 %'", LOG.splitlines(keepends=True)[51] + "  at line 17\n  at main"),
    "XML": (XML, "id = 17", '<order id="17" note="a > b"><item>17</item></order>'),
    "XML without text": (EMPTY_XML, "id = 17", '<order id="17" note="a > b"/>'),
    "aligned columns": (COLUMNS, "name = 'pod-17'", "pod-17    Running   17d"),
    "git log": (HISTORY, "subject = 'Change 29'", HISTORY[HISTORY.index(f"commit {29:040x}") :].rstrip()),
}


@needs("duckdb", "sql")
@pytest.mark.parametrize(
    ("text", "where", "expected"),
    [pytest.param(*case, id=name, marks=[] if name in ("JSON", "CSV") else pytest.mark.slow) for name, case in CASES.items()],
)
def test_a_selected_row_is_found_as_it_is_in_the_text(text: str, where: str, expected: str):
    data = text.encode()
    answer = query_text(f"SELECT _row FROM output WHERE {where}", BytesReader(data), 60)
    ((row,),) = answer.rows
    found = read_row(BytesReader(data), row)
    assert data[found.start : found.end].decode() == found.text
    assert found.text.rstrip("\n") == expected


@pytest.mark.parametrize(
    ("text", "row", "said"),
    [
        (json.dumps(ORDERS), "/30", "no row '/30'"),
        (json.dumps(ORDERS), "/x", "no row '/x'"),
        (json.dumps({"a": ORDERS}), "/b/1", "no row '/b/1'"),
        ("[1, {]", "/1", "not JSON"),
        (5_000 * "[" + 5_000 * "]", "/0", "not JSON"),
        *(('{"a": 1}\n{"a": 2}\n!', row, f"no row '{row}'") for row in ("/x", "/-1", "/9", f"/{9**99}", "/999999999/a")),
        ('{"a": {"x": 1}, "a": {"y": 22}, "b": 3}', "/b", "a key twice"),
        (CSV, 31, "no row 31"),
        (CSV, 0, "no row 0"),
        (LOG, 91, "no row 91"),
        (LOG, -1, "no row -1"),
        (XML, 3, "no row 3"),
        (XML, 1_000_000, "no row 1000000"),
        ("<html><body><table>" + "<tr><td>1</td><td>2</td></tr>" * 9 + "</table></body></html>", 1, "only numbered"),
    ],
)
def test_what_is_not_there_is_a_clear_error(text: str, row: Any, said: str):
    with pytest.raises(BadRequest, match=said):
        read_row(BytesReader(text.encode()), row)


def test_json_inside_a_string_is_where_the_string_is():
    text = json.dumps({"text": json.dumps(ORDERS)})
    found = read_row(BytesReader(text.encode()), "/text/4")
    assert json.loads(json.loads(found.text)) == ORDERS
