"""`overspill sql`: files and pipes in, tab-separated rows out, and mistakes in one line."""

from __future__ import annotations

import gzip
import json
import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from commands import Place

pytestmark = pytest.mark.usefixtures("forked_workers")

ORDERS = json.dumps([{"id": n, "user": n % 2, "total": n * 1.5} for n in range(5)])
USERS = "id,name\n0,Ann\n1,Ben\n"


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Place:
    made = Place(tmp_path, monkeypatch, capsys)
    Path("orders.json").write_text(ORDERS)
    Path("users.csv.gz").write_bytes(gzip.compress(USERS.encode()))
    return made


def test_files_are_joined_and_decoded(place: Place):
    statement = "SELECT name, sum(total) AS total FROM orders JOIN users ON users.id = user GROUP BY 1 ORDER BY 1"
    done = place.overspill("sql", statement, "orders.json", "users.csv.gz")
    assert (done.code, done.out) == (0, "name\ttotal\nAnn\t9.0\nBen\t6.0\n")
    assert done.err.startswith("overspill: Decoded from gzip.")


@pytest.mark.slow
def test_standard_input_is_a_table(place: Place):
    done = place.process("sql", "SELECT count(*) AS n FROM input", input=USERS.encode(), capture_output=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"n\n2\n", b"")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no named pipes")
def test_a_named_pipe_is_a_table(place: Place):
    os.mkfifo("users.csv")
    with ThreadPoolExecutor() as threads:
        threads.submit(Path("users.csv").write_text, USERS)
        done = place.overspill("sql", "SELECT count(*) AS n FROM users", "users.csv")
    assert (done.code, done.out, done.err) == (0, "n\n2\n", "")


def test_rows_can_be_printed_as_json(place: Place):
    done = place.overspill("sql", "SELECT id, total FROM orders WHERE id > 3", "orders.json", "--json")
    assert (done.code, json.loads(done.out)) == (0, [{"id": 4, "total": 6.0}])


@pytest.mark.parametrize(
    ("statement", "content", "said"),
    [
        ("SELECT totl FROM asked", ORDERS, "total"),
        pytest.param("SELECT * FROM askd", ORDERS, "asked", marks=pytest.mark.slow),
        pytest.param("SELECT 1 +", ORDERS, "syntax error", marks=pytest.mark.slow),
        ("DROP TABLE asked", ORDERS, "DROP is not possible here"),
        pytest.param("SELECT * FROM asked", "", "is empty", marks=pytest.mark.slow),
        ("SELECT * FROM asked", "only a few words\n", "has no table"),
    ],
)
def test_a_mistake_is_one_message_and_exit_code_2(place: Place, statement: str, content: str, said: str):
    Path("asked").write_text(content)
    done = place.overspill("sql", statement, "asked")
    assert (done.code, done.out) == (2, "")
    assert said in done.err
    assert "Traceback" not in done.err


def test_a_file_that_does_not_exist_is_named(place: Place):
    done = place.overspill("sql", "SELECT 1", "order.json")
    assert (done.code, done.out) == (2, "")
    assert "order.json" in done.err
