"""SQL over every kind of table agrees with the same question answered in Python over the rows that the table was made of."""

import csv
import html
import io
import json
from collections import Counter
from collections.abc import Callable
from typing import Any, TypeAlias

import msgspec
import pytest
from extras import needs

from overspill.sql.library import Source, SqlLibrary
from overspill.store.readers import BytesReader

pytestmark = [needs("duckdb", "sql"), pytest.mark.usefixtures("forked_workers")]

Row: TypeAlias = dict[str, Any]

ORDERS: list[Row] = [
    {
        "id": n,
        "customer": f"c{n * 7 % 11}",
        "total": round(n * 13.7 % 250, 2),
        "paid": n % 3 == 0,
        "day": f"2024-03-{n % 28 + 1:02d}",
    }
    for n in range(1, 90)
]
PODS: list[Row] = [
    {"name": f"web-{n}", "state": ("Running", "Pending", "Failed")[n % 3], "restarts": n * n % 17, "node": f"node{n % 4}"}
    for n in range(60)
]
CITIES: list[Row] = [
    {"city": name, "people": people, "area": area, "state": state}
    for name, people, area, state in [
        ("Ulm", 126405, 118.69, "BW"),
        ("Bonn", 330579, 141.06, "NW"),
        ("Jena", 110502, 114.77, "TH"),
        ("Mainz", 218578, 97.74, "RP"),
        ("Köln", 1084831, 405.02, "NW"),
        ("Trier", 110674, 117.06, "RP"),
    ]
]
SENSORS: list[Row] = [
    {"sensor": f"s{n % 5}", "value": n * 0.25 - 3, "ok": n % 4 != 0, "at": f"2024-05-01T{n % 24:02d}:00:00Z"} for n in range(120)
]
PEOPLE: list[Row] = [
    {"name": f"person {n}", "age": 20 + n * 3 % 50, "team": "abc"[n % 3], "mail": f"p{n}@example.org"} for n in range(75)
]
STOCK: list[Row] = [
    {"sku": f"{n:05d}", "left": (n * 31) % 40, "shelf": f"A-{n % 9}", "note": "" if n % 2 else f"x, {n}"} for n in range(80)
]
DATA = {"orders": ORDERS, "pods": PODS, "cities": CITIES, "sensors": SENSORS, "people": PEOPLE, "stock": STOCK}


def as_text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def write_json(rows: list[Row]) -> str:
    return json.dumps(rows)


def write_envelope(rows: list[Row]) -> str:
    return json.dumps({"meta": {"page": 1}, "data": {"items": rows}})


def write_embedded(rows: list[Row]) -> str:
    return json.dumps({"text": json.dumps(rows)})


def write_lines(rows: list[Row]) -> str:
    return "".join(json.dumps(row) + "\n" for row in rows)


def write_delimited(mark: str) -> Callable[[list[Row]], str]:
    def write(rows: list[Row]) -> str:
        text = io.StringIO()
        writer = csv.writer(text, delimiter=mark)
        writer.writerow(rows[0])
        writer.writerows([as_text(value) for value in row.values()] for row in rows)
        return text.getvalue()

    return write


def write_columns(rows: list[Row]) -> str:
    table = [[name.upper() for name in rows[0]], *([as_text(value) or "-" for value in row.values()] for row in rows)]
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    return "".join(
        "   ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() + "\n" for row in table
    )


def write_markdown(rows: list[Row]) -> str:
    lines = [list(rows[0]), ["---"] * len(rows[0]), *([as_text(value) for value in row.values()] for row in rows)]
    return (
        "# Report\n\nThese are the rows of the report.\n\n"
        + "".join(f"| {' | '.join(line)} |\n" for line in lines)
        + "\nThe end.\n"
    )


def write_page(rows: list[Row]) -> str:
    head = "".join(f"<th>{name}</th>" for name in rows[0])
    body = "".join(
        "<tr>" + "".join(f"<td>{html.escape(as_text(value))}</td>" for value in row.values()) + "</tr>\n" for row in rows
    )
    return f"<!doctype html><html><body><h1>Rows</h1><table><tr>{head}</tr>\n{body}</table></body></html>"


def write_log(rows: list[Row]) -> str:
    def fields(row: Row) -> str:
        return " ".join(f'{name}="{as_text(value)}"' for name, value in row.items())

    return "".join(f"2024-06-01T10:{n // 60:02d}:{n % 60:02d}Z INFO worker: row {fields(row)}\n" for n, row in enumerate(rows))


def write_elements(rows: list[Row]) -> str:
    def members(row: Row) -> str:
        return "".join(f"<{name}>{html.escape(as_text(value))}</{name}>" for name, value in row.items())

    return f"<?xml version='1.0'?>\n<page>\n<rows>{''.join(f'<row>{members(row)}</row>' for row in rows)}</rows></page>"


def write_attributes(rows: list[Row]) -> str:
    def members(row: Row) -> str:
        return " ".join(f'{name}="{html.escape(as_text(value))}"' for name, value in row.items())

    return f"<rows>{''.join(f'<row {members(row)}/>' for row in rows)}</rows>"


WRITERS: dict[str, Callable[[list[Row]], str]] = {
    "json": write_json,
    "envelope": write_envelope,
    "embedded": write_embedded,
    "lines": write_lines,
    "csv": write_delimited(","),
    "tsv": write_delimited("\t"),
    "semicolons": write_delimited(";"),
    "columns": write_columns,
    "markdown": write_markdown,
    "page": write_page,
    "log": write_log,
    "elements": write_elements,
    "attributes": write_attributes,
}

Question: TypeAlias = tuple[str, Callable[[list[Row]], list[Row]]]
QUESTIONS: dict[str, list[Question]] = {
    "orders": [
        ("SELECT count(*) AS n FROM output", lambda rows: [{"n": len(rows)}]),
        ("SELECT id FROM output WHERE total > 200 ORDER BY id", lambda rows: [{"id": r["id"]} for r in rows if r["total"] > 200]),
        (
            "SELECT customer, count(*) AS n FROM output GROUP BY customer ORDER BY customer",
            lambda rows: [{"customer": c, "n": n} for c, n in sorted(Counter(r["customer"] for r in rows).items())],
        ),
        (
            "SELECT round(sum(total), 2) AS s FROM output WHERE paid",
            lambda rows: [{"s": round(sum(r["total"] for r in rows if r["paid"]), 2)}],
        ),
        (
            "SELECT id FROM output WHERE day BETWEEN '2024-03-05' AND '2024-03-07' ORDER BY id",
            lambda rows: [{"id": r["id"]} for r in rows if "2024-03-05" <= r["day"] <= "2024-03-07"],
        ),
    ],
    "pods": [
        (
            "SELECT name FROM output WHERE restarts > 12 ORDER BY name",
            lambda rows: sorted(({"name": r["name"]} for r in rows if r["restarts"] > 12), key=str),
        ),
        (
            "SELECT state, max(restarts) AS most FROM output GROUP BY state ORDER BY state",
            lambda rows: [
                {"state": s, "most": max(r["restarts"] for r in rows if r["state"] == s)}
                for s in sorted({r["state"] for r in rows})
            ],
        ),
        ("SELECT count(DISTINCT node) AS n FROM output", lambda rows: [{"n": len({r["node"] for r in rows})}]),
        (
            "SELECT sum(restarts) AS s FROM output WHERE node = 'node2'",
            lambda rows: [{"s": sum(r["restarts"] for r in rows if r["node"] == "node2")}],
        ),
        (
            "SELECT name FROM output ORDER BY restarts DESC, name LIMIT 3",
            lambda rows: [{"name": r["name"]} for r in sorted(rows, key=lambda r: (-r["restarts"], r["name"]))[:3]],
        ),
    ],
    "cities": [
        (
            "SELECT city FROM output ORDER BY people DESC LIMIT 1",
            lambda rows: [{"city": max(rows, key=lambda r: r["people"])["city"]}],
        ),
        (
            "SELECT state, sum(people) AS p FROM output GROUP BY 1 ORDER BY 1",
            lambda rows: [
                {"state": s, "p": sum(r["people"] for r in rows if r["state"] == s)} for s in sorted({r["state"] for r in rows})
            ],
        ),
        (
            "SELECT city FROM output WHERE area < 115 ORDER BY city",
            lambda rows: sorted(({"city": r["city"]} for r in rows if r["area"] < 115), key=str),
        ),
        ("SELECT round(avg(area), 2) AS a FROM output", lambda rows: [{"a": round(sum(r["area"] for r in rows) / len(rows), 2)}]),
        ("SELECT count(*) AS n FROM output WHERE city LIKE '%ö%'", lambda rows: [{"n": sum("ö" in r["city"] for r in rows)}]),
    ],
    "sensors": [
        (
            "SELECT min(value) AS low, max(value) AS high FROM output",
            lambda rows: [{"low": min(r["value"] for r in rows), "high": max(r["value"] for r in rows)}],
        ),
        ("SELECT count(*) AS n FROM output WHERE NOT ok", lambda rows: [{"n": sum(not r["ok"] for r in rows)}]),
        (
            "SELECT sensor, sum(value) AS s FROM output GROUP BY sensor ORDER BY sensor",
            lambda rows: [
                {"sensor": s, "s": sum(r["value"] for r in rows if r["sensor"] == s)} for s in sorted({r["sensor"] for r in rows})
            ],
        ),
        (
            'SELECT count(*) AS n FROM output WHERE hour("at") >= 20',
            lambda rows: [{"n": sum(int(r["at"][11:13]) >= 20 for r in rows)}],
        ),
        (
            "SELECT value FROM output ORDER BY value LIMIT 2",
            lambda rows: [{"value": v} for v in sorted(r["value"] for r in rows)[:2]],
        ),
    ],
    "people": [
        (
            "SELECT team, count(*) AS n FROM output WHERE age >= 40 GROUP BY team ORDER BY team",
            lambda rows: [{"team": t, "n": n} for t, n in sorted(Counter(r["team"] for r in rows if r["age"] >= 40).items())],
        ),
        (
            "SELECT name FROM output WHERE mail = 'p7@example.org'",
            lambda rows: [{"name": r["name"]} for r in rows if r["mail"] == "p7@example.org"],
        ),
        (
            "SELECT max(age) - min(age) AS span FROM output",
            lambda rows: [{"span": max(r["age"] for r in rows) - min(r["age"] for r in rows)}],
        ),
        (
            "SELECT count(*) AS n FROM output a JOIN output b ON a.age = b.age",
            lambda rows: [{"n": sum(n * n for n in Counter(r["age"] for r in rows).values())}],
        ),
        (
            "SELECT name FROM output ORDER BY age, name LIMIT 2",
            lambda rows: [{"name": r["name"]} for r in sorted(rows, key=lambda r: (r["age"], r["name"]))[:2]],
        ),
    ],
    "stock": [
        (
            'SELECT sku FROM output WHERE "left" = 0 ORDER BY sku',
            lambda rows: [{"sku": r["sku"]} for r in rows if r["left"] == 0],
        ),
        (
            'SELECT shelf, sum("left") AS s FROM output GROUP BY shelf ORDER BY shelf',
            lambda rows: [
                {"shelf": s, "s": sum(r["left"] for r in rows if r["shelf"] == s)} for s in sorted({r["shelf"] for r in rows})
            ],
        ),
        ("SELECT count(*) AS n FROM output WHERE sku = '00042'", lambda rows: [{"n": 1}]),
        ("SELECT max(sku) AS last FROM output", lambda rows: [{"last": max(r["sku"] for r in rows)}]),
        ("SELECT count(DISTINCT shelf) AS n FROM output", lambda rows: [{"n": len({r["shelf"] for r in rows})}]),
    ],
}


def ask(text: str, questions: list[Question], rows: list[Row]) -> list[tuple[str, list[Row], list[Row]]]:
    """The questions for which SQL and Python differ."""
    with SqlLibrary() as library:
        sources = {"output": Source("key", BytesReader(text.encode()))}
        differing: list[tuple[str, list[Row], list[Row]]] = []
        for sql, answer in questions:
            found = library.query(sql, sources, 60)
            assert not found.result.failed, (sql, found.result.failed)
            got = [msgspec.json.decode(line) for line in found.lines.splitlines()]
            if not same(got, answer(rows)):
                differing.append((sql, got, answer(rows)))
    return differing


def same(got: list[Row], wanted: list[Row]) -> bool:
    """Columns of programs are in upper case, and sums of fractions differ in the last digit."""
    lowered = [{key.lower(): value for key, value in row.items()} for row in got]
    return len(got) == len(wanted) and all(
        one.keys() == other.keys() and all(equal(one[key], other[key]) for key in one)
        for one, other in zip(lowered, wanted, strict=True)
    )


def equal(got: Any, wanted: Any) -> bool:
    return got == pytest.approx(wanted) if isinstance(wanted, float) else got == wanted


@pytest.mark.parametrize("kind", ["csv", "envelope"])
def test_sql_agrees_with_python(kind: str) -> None:
    assert ask(WRITERS[kind](ORDERS), QUESTIONS["orders"][:2], ORDERS) == []


@pytest.mark.slow
@pytest.mark.no_cover
@pytest.mark.parametrize("data", DATA)
@pytest.mark.parametrize("kind", WRITERS)
def test_sql_agrees_with_python_on_every_kind_of_table(kind: str, data: str) -> None:
    assert ask(WRITERS[kind](DATA[data]), QUESTIONS[data], DATA[data]) == []


def test_there_are_enough_tables_and_questions() -> None:
    assert len(WRITERS) * len(DATA) >= 40
    assert sum(map(len, QUESTIONS.values())) * len(WRITERS) >= 300
