"""What is a table, what its columns are called, and what their text means."""

import json
import re
from collections.abc import Callable
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import msgspec
import pytest
from extras import needs
from linear import is_linear

from overspill.errors import BadRequest
from overspill.lexical.index import build
from overspill.sql import loading
from overspill.sql.columns import read_types
from overspill.sql.library import Source, SqlLibrary
from overspill.sql.protocol import LoadedTables, LoadRequest
from overspill.sql.writing import TableSource
from overspill.store.readers import BytesReader
from overspill.tables.markup import read_elements
from overspill.tables.table import MAX_TABLES, make_unique

pytestmark = [needs("duckdb", "sql"), pytest.mark.usefixtures("forked_workers")]


def load_all(text: str | bytes, kind: str = "") -> LoadedTables:
    """Loads in this process, where mistakes show."""
    with TemporaryDirectory() as folder:
        source = Path(folder, "source")
        source.write_bytes(text if isinstance(text, bytes) else text.encode())
        work = Path(folder, "work")
        work.mkdir()
        found = loading.load(LoadRequest(str(source), str(work), f"{folder}/database", kind))
    assert not found.failed, found.failed
    return found


def load(text: str | bytes, kind: str = "") -> dict[str, tuple[int, dict[str, str]]]:
    """Rows, and columns with their types, of each table."""
    found = load_all(text, kind)
    return {table.name: (table.rows, {column.name: column.type for column in table.columns}) for table in found.tables}


def ask(sql: str, text: str, kind: str = "") -> tuple[list[Any], tuple[str, ...]]:
    with SqlLibrary() as library:
        found = library.query(sql, {"output": Source("key", BytesReader(text.encode()), kind)}, 60)
    assert not found.result.failed, found.result.failed
    return [list(msgspec.json.decode(line).values()) for line in found.lines.splitlines()], found.notes


PODS = """NAME     READY   STATUS             RESTARTS   AGE    MEM
web-0    1/1     Running            0          5d3h   12Mi
web-1    0/1     CrashLoopBackOff   12         3h     1Gi
db-0     1/1     Running            1          45m    <none>
"""
DISKS = """Filesystem      Size  Used Avail Use% Mounted on
overlay          99G   45G   54G  46% /
tmpfs            64M     0   64M   0% /dev
disk             64M     0   64M   0% /data
"""
LISTING = """total 12
-rw-r--r-- 1 root root   123 Nov 16 03:00 a b.txt
drwxr-xr-x 2 root staff 4096 Nov 15 02:00 dir
"""


@pytest.mark.slow
def test_columns_of_programs_get_numbers_beside_their_units() -> None:
    rows, _ = ask('SELECT name, restarts, age_seconds, mem_bytes, mem FROM output ORDER BY "_row"', PODS)
    assert rows == [
        ["web-0", 0, 5 * 86400 + 3 * 3600, 12 * 1024**2, "12Mi"],
        ["web-1", 12, 3 * 3600, 1024**3, "1Gi"],
        ["db-0", 1, 45 * 60, None, "<none>"],
    ]
    rows, _ = ask('SELECT "Mounted on", "Use%_percent", size_bytes FROM output', DISKS)
    assert rows == [["/", 46, 99 * 1024**3], ["/dev", 0, 64 * 1024**2], ["/data", 0, 64 * 1024**2]]  # as `df -h` counts
    rows, _ = ask("SELECT name, size FROM output", LISTING)
    assert rows == [["a b.txt", 123], ["dir", 4096]]


@pytest.mark.slow
def test_text_that_a_number_would_change_stays_text() -> None:
    _, columns = load(
        "id,zip,mixed,day,big\n1,01234,1,2024-01-02,12345678901234567890\n2,99999,x,2024-01-03,2\n3,00001,2,2024-02-30,3\n"
    )["output"]
    assert columns == {"_row": "BIGINT", "id": "BIGINT", "zip": "VARCHAR", "mixed": "VARCHAR", "day": "VARCHAR", "big": "VARCHAR"}


@pytest.mark.slow
def test_times_are_utc_and_keep_their_text_where_a_zone_would_be_lost() -> None:
    text = json.dumps(
        [
            {"at": "2024-01-02T03:04:05+02:00", "z": "2024-01-02T03:04:05Z"},
            {"at": "2024-06-02T03:04:05-05:00", "z": "2024-01-02T03:04:06Z"},
        ]
    )
    rows, _ = ask('SELECT "at", at_utc, z FROM output', text)
    assert rows == [
        ["2024-01-02T03:04:05+02:00", "2024-01-02 01:04:05", "2024-01-02 03:04:05"],
        ["2024-06-02T03:04:05-05:00", "2024-06-02 08:04:05", "2024-01-02 03:04:06"],
    ]


@pytest.mark.slow
def test_times_with_a_zone_are_answered_as_text() -> None:
    sql = """SELECT "at"::TIMESTAMPTZ AS "a""b", [("at"::TIMESTAMPTZ)], n, n, now() - now() FROM output ORDER BY n DESC; -- all"""
    rows, _ = ask(sql, '[{"n":1,"at":"2024-01-02T03:04:05+02:00"},{"n":2,"at":"2024-06-02T03:04:05Z"}]')
    assert rows == [
        ["2024-06-02 03:04:05+00", "['2024-06-02 03:04:05+00']", 2, 2, "0:00:00"],
        ["2024-01-02 01:04:05+00", "['2024-01-02 01:04:05+00']", 1, 1, "0:00:00"],
    ]


@pytest.mark.slow
def test_numbers_that_do_not_fit_are_not_rounded() -> None:
    rows, _ = ask("SELECT id FROM output", '[{"id": 12345678901234567890123}, {"id": 7}]')
    assert rows == [["12345678901234567890123"], ["7"]]


@pytest.mark.slow
def test_odd_names_and_rows_of_json_all_have_a_place() -> None:
    text = '{"a":1,"A":2,"":3,"_row":4}\nnot json\n\n{"a":5,"a":6}\n[7]\n{"a":"\\ud800"}\n'
    rows, notes = ask('SELECT "_row", a, "A_2", value FROM output', text, "ndjson")
    assert [row[0] for row in rows] == [1, 4, 5, 6]
    assert rows[0][1:3] == ["1", 2]
    assert notes == ("Left out 1 row of output that could not be read.",)


@pytest.mark.slow
def test_nested_values_are_structs_and_lists() -> None:
    rows, _ = ask(
        "SELECT owner.name, len(tags), meta.deep.x FROM output ORDER BY 1",
        json.dumps(
            {"data": [{"owner": {"name": "b"}, "tags": [1, 2], "meta": {"deep": {"x": 1}}}, {"owner": {"name": "a"}, "tags": []}]}
        ),
    )
    assert rows == [["a", 0, None], ["b", 2, 1]]


@pytest.mark.slow
def test_rows_say_where_they_are() -> None:
    rows, _ = ask('SELECT "_row" FROM output WHERE v = 2', json.dumps({"a": {"b/c": [{"v": 1}, {"v": 2}]}}))
    assert rows == [["/a/b~1c/1"]]
    rows, _ = ask("SELECT \"_row\" FROM output WHERE name = 'db-0'", PODS)
    assert rows == [[4]]
    rows, _ = ask('SELECT "_key", "_row" FROM output WHERE v = 2', json.dumps({f"p{n}": {"v": n} for n in range(4)}))
    assert rows == [["p2", "/p2"]]


@pytest.mark.slow
def test_several_tables_of_a_page_are_named_by_their_captions() -> None:
    page = (
        "<html><body><h2>Rates</h2><table><tr><th>City<th>Pop</tr><tr><td>Ulm<td>126,000</tr></table>"
        "<table><caption>Two of them</caption><tr><th>a<th>b</tr><tr><td rowspan=2>1<td>2</tr><tr><td>3</tr></table></html>"
    )
    assert load(page) == {
        "output_rates": (1, {"_row": "BIGINT", "City": "VARCHAR", "Pop": "VARCHAR", "Pop_number": "DOUBLE"}),
        "output_two_of_them": (2, {"_row": "BIGINT", "a": "BIGINT", "b": "BIGINT"}),
    }


@pytest.mark.slow
def test_ragged_rows_are_kept_and_reported() -> None:
    rows, notes = ask("SELECT * FROM output", "id,name\n1,a\n2,b,c\n3\n", "csv")
    assert rows == [[1, 1, "a", None], [2, 2, "b", "c"], [3, 3, None, None]]
    assert notes == ('output: 2 rows with more or fewer cells than the header. Cells beyond the header are in "_extra".',)


@pytest.mark.slow
def test_rows_above_the_header_are_left_out_and_reported() -> None:
    text = "Orders of March, all regions\n\nid,city,total\n" + "".join(f"{n},Leeds,{n}.50\n" for n in range(9))
    assert load(text)["output"] == (9, {"_row": "BIGINT", "id": "BIGINT", "city": "VARCHAR", "total": "DOUBLE"})
    rows, notes = ask("SELECT _row, id, total FROM output WHERE id = 4", text)
    assert rows == [[5, 4, 4.5]]
    assert notes == ("output: 1 row above the header left out: Orders of March, all regions.",)


@pytest.mark.parametrize("end", ["\n", "\r"])
def test_a_header_may_be_longer_than_what_is_read_to_recognise_it(end: str) -> None:
    names = [f"{'n' * 90_000}{each}" for each in range(5)]
    (table,) = load_all("".join(",".join(cells) + end for cells in (names, *["abcde"] * 9)), "csv").tables
    assert (table.rows, table.note) == (9, "")
    assert [column.name for column in table.columns] == ["_row", *names]


@pytest.mark.parametrize("name", ["a", pytest.param(",", marks=pytest.mark.slow)])
def test_a_header_that_is_too_long_is_refused_clearly(name: str) -> None:
    text = name * 1_100_000 + ",b\n1,2\n3,4\n"
    with SqlLibrary() as library, pytest.raises(BadRequest, match=r"the row that names its columns is longer than 1\.0 MB"):
        library.load(Source("key", BytesReader(text.encode()), "csv"))
    assert load("a,b\n1,2\n3," + "x" * 1_100_000 + "\n", "csv")["output"][0] == 2


def test_cells_beyond_the_header_have_a_column_of_their_own() -> None:
    rows, notes = ask("SELECT * FROM output", "_extra,name\n1,a\n2,b,c,d\n", "csv")
    assert rows == [[1, 1, "a", None], [2, 2, "b", "c,d"]]
    assert notes == ('output: 1 row with more or fewer cells than the header. Cells beyond the header are in "_extra_2".',)


@pytest.mark.slow
def test_cells_beyond_the_header_have_a_column_in_a_wide_table_too() -> None:
    names, cells = [f"c{each}" for each in range(3_001)], [str(each) for each in range(3_002)]
    (table,) = load_all("".join(",".join(row) + "\n" for row in (names, cells, cells)), "csv").tables
    assert [column.name for column in table.columns] == ["_row", *names[:2_999], "_extra"]
    assert table.note.startswith(
        '2 rows with more or fewer cells than the header. Cells beyond the header are in "_extra". '
        "2 columns after the first 2,999 left out: "
    )


def test_a_line_end_of_an_old_computer_ends_a_row() -> None:
    rows = "".join(f"{n},Leeds,{n}.50\r" for n in range(9))
    assert load("id,city,total\r" + rows, "csv")["output"][0] == 9
    assert load("All\rorders\nid,city,total\n" + rows.replace("\r", "\n"), "csv")["output"][0] == 9


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("id,id,,select,Ünï cödé\n1,2,3,4,5\n6,7,8,9,10\n", ["_row", "id", "id_2", "column3", "select", "Ünï cödé"]),
        ("\ufeffid,name\n1,a\n2,b\n", ["_row", "id", "name"]),
        ("1,2,3\n4,5,6\n7,8,9\n", ["_row", "column1", "column2", "column3"]),
    ],
)
def test_every_column_has_a_name(text: str, names: list[str]) -> None:
    ((_, columns),) = load(text, "csv").values()
    assert list(columns) == names


@pytest.mark.slow
def test_a_table_may_have_thousands_of_columns() -> None:
    width = 3_000
    text = ",".join(f"c{n}" for n in range(width)) + "\n" + "\n".join(",".join(map(str, range(width))) for _ in range(3)) + "\n"
    rows, columns = load(text, "csv")["output"]
    assert (rows, len(columns)) == (3, width + 1)


@pytest.mark.parametrize("text", ["Only some words.\nAnd more of them.\n", ""])
def test_what_has_no_table_loads_none(text: str) -> None:
    assert load(text) == {}


def test_a_stack_trace_belongs_to_the_event_above_it_for_sql_and_the_engine() -> None:
    trace = 'Traceback (most recent call last):\n  File "a.py", line 7\nCaused by: haste'
    log = 6 * f"2026-01-01 10:00:00 ERROR app: no place\n{trace}\n2026-01-01 10:00:01 INFO app: on it goes\n"
    assert ask("SELECT count(*), max(message) FROM output", log, "log")[0] == [[12, "on it goes"]]
    assert ask("SELECT DISTINCT message FROM output WHERE level = 'ERROR'", log, "log")[0] == [[f"no place\n{trace}"]]
    assert len(build(log.encode()).outline) == 12


@pytest.mark.slow
@pytest.mark.parametrize("data", [b"[" * 200_000, b'{"\xff": [["a", "b"]], "a": {"b": 1}, "c": {"d": 1}}'])
def test_hostile_json_is_refused_clearly(data: bytes) -> None:
    with SqlLibrary() as library, pytest.raises(BadRequest, match="could not be read"):
        library.load(Source("key", BytesReader(data), "json"))


def test_what_is_nested_too_deeply_for_columns_is_text() -> None:
    text = '{"a": ' * 200 + "1" + "}" * 200
    (table,) = load_all(text, "json").tables
    assert (table.rows, [column.name for column in table.columns]) == (1, ["_row", "a"])
    assert ask("SELECT contains(CAST(a AS VARCHAR), '{\"a\":1}') FROM output", text)[0] == [[True]]


KINDS = {
    "json": json.dumps({"data": [{"a": 1, "b": "x"}, {"a": 2, "b": "y"}]}),
    "keyed json": json.dumps({f"k{n}": {"a": n, "b": "x"} for n in range(2)} | {"k9": {"a": 9, "b": "z"}}),
    "lines of json": '{"a": 1, "b": "x"}\n{"a": 2, "b": "y"}\n',
    "csv": "a,b\n1,x\n2,y\n3,z\n",
    "ragged csv": "a,b\n1,x\n2,y\n3,z,more\n4,z\n5,y\n6,x\n7,z\n8,y\n",
    "columns": "A     B     C\n1     x     p\n22    y     q\n333   z     r\n",
    "drawn columns": " a   |  b   |  c\n-----+------+----\n 1   |  x   |  p\n 2   |  y   |  q\n",
    "markdown": "# T\n\nSome words before it.\n\n| a | b |\n|---|---|\n| 1 | x |\n",
    "page": "<!doctype html><html><table><tr><th>a<th>b</tr><tr><td>1<td>x</tr></table></html>",
    "log": "".join(f"2024-01-01T00:00:0{n}Z INFO web: done a={n} b=x\n  more\n" for n in range(5)),
    "listing": "total 1\n-rw-r--r-- 1 a b 12 Nov 16 03:00 x\n",
}


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_is_loaded(kind: str) -> None:
    ((rows, columns),) = load(KINDS[kind], "csv" if "csv" in kind else "").values()
    assert rows > 0
    wanted = {"size", "name"} if kind == "listing" else {"a", "b"}
    assert wanted <= {column.lower() for column in columns}


@pytest.mark.slow
@pytest.mark.promise("nothing-silently-cut")
def test_tables_beyond_the_limit_are_mentioned() -> None:
    page = "".join(f"# T{n}\n\n| a | b |\n|---|---|\n| 1 | 2 | 3 |\n\nwords\n\n" for n in range(60))
    _, notes = ask("SHOW TABLES", "Some words about it.\n\n" + page)
    assert notes == ("output_t49: Tables after this one are not loaded.",)


@pytest.mark.parametrize("text", ["id,name\n0,Ann\n1,Ben\n", "id\tname\n1\tBen", "id;name\r\n1;Ben\r\n"])
def test_few_rows_are_a_table(text: str) -> None:
    ((_, columns),) = load(text).values()
    assert columns == {"_row": "BIGINT", "id": "BIGINT", "name": "VARCHAR"}


def test_a_sentence_is_no_table() -> None:
    assert load("First, we met.\nThen, it rained, and we went home.\n") == {}


JUNIT = """<?xml version="1.0"?>
<testsuites>
<testsuite name="a" time="1.5">
<testcase name="t1" time="0.5"/>
<testcase name="t2" time="1.0"><failure message="boom">line 1
line 2</failure></testcase>
</testsuite>
<testsuite name="b" time="3"><testcase name="t3" time="3"/></testsuite>
</testsuites>
"""


def test_elements_that_repeat_are_rows_and_know_what_they_are_in() -> None:
    assert {name: rows for name, (rows, _) in load(JUNIT).items()} == {"output_testsuite": 2, "output_testcase": 3}
    rows, _ = ask(
        'SELECT s.name, c._row, c.name, c.time, failure, "failure.message" FROM output_testcase c '
        "JOIN output_testsuite s ON s._row = c._parent ORDER BY c._row",
        JUNIT,
    )
    assert rows == [
        ["a", JUNIT.index('<testcase name="t1"'), "t1", 0.5, None, None],
        ["a", JUNIT.index('<testcase name="t2"'), "t2", 1.0, "line 1\nline 2", "boom"],
        ["b", JUNIT.index('<testcase name="t3"'), "t3", 3.0, None, None],
    ]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ('<!DOCTYPE a [<!ENTITY a "' + "x" * 99 + '">]>\n<a><b>&a;</b><b>&a;</b></a>', "declares entities"),
        ('<!DOCTYPE a [<!ENTITY a SYSTEM "file:///etc/passwd">]>\n<a><b>&a;</b><b>&a;</b></a>', "declares entities"),
        ("<a>" * 5_000, "nested more than"),
        ("<a><b>1</b><b>2</a>", "not well-formed"),
    ],
)
def test_hostile_xml_is_refused_clearly(text: str, problem: str) -> None:
    with SqlLibrary() as library, pytest.raises(BadRequest, match=problem):
        library.load(Source("key", BytesReader(text.encode()), "xml"))


@pytest.mark.slow
@pytest.mark.parametrize("declared", ["iso-8859-1", "utf-16", "hex"])
def test_the_encoding_that_a_decoded_document_declares_does_not_matter(declared: str) -> None:
    text = f'<?xml version="1.0" encoding="{declared}"?>\n<a><b n="caf\u00e9"/><b n="th\u00e9"/></a>'
    assert ask("SELECT n FROM output", text)[0] == [["caf\u00e9"], ["th\u00e9"]]


@pytest.mark.slow
def test_names_that_sql_cannot_tell_apart_and_our_own_are_columns_too() -> None:
    text = '<?xml version="1.0"?>\n<r>\n<a>\n<b ID="1" id="2" _row="3" _parent="4"/>\n<b/></a>\n<a/></r>'
    rows, _ = ask('SELECT _row, _parent, "ID", id_2, _row_2, _parent_2 FROM output_b ORDER BY _row', text)
    first, second, parent = text.index("<b ID"), text.index("<b/>"), text.index("<a>")
    assert rows == [[first, parent, 1, 2, 3, 4], [second, parent, None, None, None, None]]


@pytest.mark.slow
def test_an_entity_that_is_declared_elsewhere_stays_as_it_is_written() -> None:
    text = '<?xml version="1.0"?>\n<!DOCTYPE a SYSTEM "http://example.invalid/a.dtd">\n<a><b>x&nbsp;y</b><b>z</b></a>'
    assert ask("SELECT text FROM output", text)[0] == [["x&nbsp;y"], ["z"]]


@pytest.mark.slow
def test_a_cell_may_be_large() -> None:
    text = f'<?xml version="1.0"?>\n<a><b>{"x" * 36_000_000}</b><b>z</b></a>'
    assert ask("SELECT length(text) FROM output", text)[0] == [[36_000_000], [1]]


@pytest.mark.slow
def test_many_elements_that_are_no_table_are_read_in_linear_time() -> None:
    kinds = "".join(f"<t{number}/><t{number}/>" for number in range(MAX_TABLES))
    long = "v" * 99

    def read(times: int) -> Callable[[], object]:
        text = f"<r>{kinds}<row>{f'<z>{long}</z>' * times}</row><row/></r>".encode()
        return lambda: list(read_elements(text))

    assert is_linear(read, 20_000, quick=0.1, hopeless=20)


COMMITS = """commit 1111111111111111111111111111111111111111 (HEAD -> main, tag: v1)
Merge: 2222222 3333333
Author: Ann Lee <ann@example.org>
Date:   Tue Mar 5 09:08:07 2024 +0200

    Mend the door

    It was open.

 door.py | 2 +-

commit 2222222222222222222222222222222222222222
Author: Ben <ben@example.org>
Date:   Mon Mar 4 01:00:00 2024 +0200

    Build a door
"""


def test_a_history_has_a_row_for_each_commit() -> None:
    columns = "_row, substr(commit, 1, 3), author, email, strftime(date_utc, '%d %H'), subject, message, changes, refs, merge"
    rows, _ = ask(f"SELECT {columns} FROM output ORDER BY _row", COMMITS)
    assert rows == [
        [
            *(1, "111", "Ann Lee", "ann@example.org", "05 07", "Mend the door", "Mend the door\n\nIt was open."),
            *(" door.py | 2 +-", "HEAD -> main, tag: v1", "2222222 3333333"),
        ],
        [12, "222", "Ben", "ben@example.org", "03 23", "Build a door", "Build a door", None, None, None],
    ]


@pytest.mark.slow
def test_an_indented_line_of_a_patch_is_no_part_of_the_message() -> None:
    patch = "diff --git a/a.py b/a.py\n@@ -1,2 +1,2 @@\n     def f():\n-        return 1\n+        return 2\n \n     def g():"
    text = COMMITS.replace(" door.py | 2 +-", patch)
    rows, _ = ask("SELECT message, changes FROM output ORDER BY _row LIMIT 1", text)
    assert rows == [["Mend the door\n\nIt was open.", patch]]


ORDERS = [f"{number},n{number},{number % 7}" for number in range(200)]


@pytest.mark.parametrize(
    ("title", "header", "rows"),
    [("\n", "\r\n", "\r\n"), ("\r\n", "\n", "\n"), ("\n", "\n", "\r\n"), ("\r", "\n", "\n"), ("\r\n", "\r\n", "\n")],
)
@pytest.mark.parametrize("quotes", ["", '"'])
def test_every_row_is_there_however_lines_end(title: str, header: str, rows: str, quotes: str) -> None:
    text = f"All orders{title}id,{quotes}name{quotes},size{header}" + "".join(row + rows for row in ORDERS)
    count, columns = load(text, "csv")["output"]
    assert count == len(ORDERS)
    assert list(columns) == ["_row", "id", "name", "size"]


class CountingConnection:
    """Counts the statements that a real connection runs."""

    def __init__(self, connection: Any) -> None:
        self._connection, self.count = connection, 0

    def execute(self, statement: str) -> Any:
        self.count += 1
        return self._connection.execute(statement)


def test_a_row_of_words_below_many_columns_of_numbers_takes_few_queries() -> None:
    names = [f"c{number}" for number in range(100)]
    with loading.duckdb.connect() as connection:
        numbers = ", ".join(f"CAST(range AS VARCHAR) AS {name}" for name in names)
        connection.execute(
            f"CREATE TEMP TABLE rows AS SELECT {numbers} FROM range(30) UNION ALL SELECT {('?, ' * 100)[:-2]}", names
        )
        counting = CountingConnection(connection)
        selected, notes = read_types(counting, "temp.rows", [(name, "VARCHAR") for name in names], is_typed=False)
    assert [name for _, name in selected] == [*names, *(f"{name}_number" for name in names)]
    assert notes[0] == '"c0" is text because of 1 value such as c0; "c0_number" has the others.'
    assert (len(notes), counting.count < 20) == (5, True)


def test_rows_that_a_reader_loses_are_counted(tmp_path: Path) -> None:
    file = tmp_path / "rows"
    file.write_text('{"a": 1}\n{"a": 2}\n')
    reader = f"read_json('{file}', format='newline_delimited', columns={{a: 'BIGINT'}})"
    with loading.duckdb.connect() as connection:
        found, rows = loading.read_rows(connection, TableSource(reader, "rowid + 1", rows=5, bad_rows=1))
        assert (rows, found.bad_rows) == (2, 4)
        found, rows = loading.read_rows(
            connection, TableSource("(SELECT 1 AS a)", "rowid + 1", rows=2, otherwise=lambda: TableSource(reader, "1"))
        )
        assert (rows, found.bad_rows) == (2, 0)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("text", "rows", "columns"),
    [
        ("[{" + ",".join(['"a":1'] * 5_000) + "}]", 1, 3_000),
        (json.dumps([{f"k{n}": n for n in range(5_000)}]), 1, 3_000),
        (json.dumps([{f"k{n}": n} for n in range(20_000)]), 20_000, 400),
        ("".join(json.dumps({f"k{n}": n}) + "\n" for n in range(20_000)), 20_000, 400),
        (json.dumps([{f"k{n}": n for n in range(3_000)}] + [{}] * 20_000), 20_001, 399),
        ('<?xml version="1.0"?>\n<a><b ' + " ".join(f"n{n}=''" for n in range(9_999)) + "/><b/></a>", 2, 3_000),
    ],
    ids=["repeated", "wide", "sparse", "sparse lines", "empty", "attributes"],
)
def test_columns_that_there_is_no_room_for_are_left_out_and_counted(text: str, rows: int, columns: int) -> None:
    (table,) = load_all(text).tables
    assert (table.rows, len(table.columns)) == (rows, columns + 1)
    assert re.match(rf"[\d,]+ columns after the first {columns:,} left out: SQL would take too long", table.note)


@pytest.mark.slow
def test_objects_with_too_many_different_keys_are_text() -> None:
    (table,) = load_all(json.dumps([{"id": n, "x": {f"k{n}": n}} for n in range(6_000)])).tables
    assert (table.rows, table.note) == (6_000, "Objects with too many different keys are text.")
    assert [column.type for column in table.columns] == ["VARCHAR", "BIGINT", "VARCHAR"]


def test_time_to_name_repeated_columns_is_linear() -> None:
    assert is_linear(lambda size: partial(make_unique, ["a"] * size), 2_000, quick=0.05, hopeless=5)


def test_rows_below_a_key_that_occurs_twice_are_all_loaded() -> None:
    found = load('{"rows": [{"a": 1}, {"a": 2}], "page": 1, "rows": [{"a": 3}]}')
    assert {name: rows for name, (rows, _) in found.items()} == {"output_rows": 2, "output_rows_2": 1}
    assert load('{"x": {"a": 1}, "y": {"a": 2}, "z": {"a": 3}, "x": {"a": 4}}')["output"][0] == 4
