"""SQL, cards and the engine on tables in shapes that are hard to read: all have the right count of rows, or one that is
explained."""

from __future__ import annotations

import re
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from time import process_time

import pytest
from asked_tables import load_sql, read_card_tables
from extras import needs
from hostile_tables import KINDS, HostileTable

from overspill.errors import BadRequest
from overspill.lexical.index import build
from overspill.lexical.rows.cells import list_notes, read_rows
from overspill.sql.library import Source, SqlLibrary
from overspill.store.readers import BytesReader
from overspill.tables.table import describe_rows

pytestmark = [needs("duckdb", "sql"), pytest.mark.usefixtures("forked_workers"), pytest.mark.slow, pytest.mark.no_cover]

_TABLES = 20
"""Of each kind."""
_SECONDS = 5.0
"""For a table, of the processor's time. Each takes less than a tenth of a second."""
_READ_COLUMNS = 3_000
"""So many are never too many."""


@pytest.mark.parametrize("kind", KINDS)
def test_cards_and_the_engine_count_rows_or_say_why_not(kind: str):
    cards = engine = 0
    for number in range(_TABLES):
        table = KINDS[kind](Random(f"{kind} {number}"))  # noqa: S311  # so that they are the same each time
        shown, index = read_card_tables(table.text), build(table.text)
        described = [(each.rows, ". ".join(describe_rows(each.omissions, each.tally))) for each in shown]
        cut = [(len(list(read_rows(index, each))), ". ".join(list_notes(index, each))) for each in index.outline.tables]
        cards += len(described) == 1 and _is_right(table, *described[0])
        engine += len(cut) == 1 and _is_right(table, *cut[0])
    assert (cards, engine) == (_TABLES, _TABLES)


@pytest.mark.parametrize("kind", KINDS)
def test_sql_counts_rows_or_says_why_not(kind: str):
    right = 0
    for number in range(_TABLES):
        table = KINDS[kind](Random(f"{kind} {number}"))  # noqa: S311  # so that they are the same each time
        with TemporaryDirectory() as folder:
            start = process_time()
            found = load_sql(table.text, Path(folder))
            assert process_time() - start < _SECONDS
        (read,) = found.tables
        right += _is_right(table, read.rows, f"{read.bad_rows} {read.note}" if read.bad_rows or read.note else "")
    assert right == _TABLES


def _is_right(table: HostileTable, rows: int, said: str) -> bool:
    """Of the only table: parts of it are not what a careful person sees."""
    named = {int(number.replace(",", "")) for number in re.findall(r"\d[\d,]*", said)}
    if rows == table.rows:
        return bool(said) or not table.must_be_explained
    return (rows == table.also and bool(said)) or abs(rows - table.rows) in named


@pytest.mark.parametrize("columns", [60, 100, 300, 3000])
def test_very_many_columns_are_read_or_refused_in_time(columns: int):
    rows = [
        [f"c{number}" for number in range(columns)],
        *([str(row * number % 7) for number in range(columns)] for row in range(3)),
    ]
    text = "\n".join(",".join(row) for row in rows).encode()
    refused, read = "", (b"", 0)
    with SqlLibrary() as library:
        try:
            answer = library.query("SELECT count(*) AS n FROM output", {"output": Source("key", BytesReader(text))}, 30)
            read = answer.lines, len(answer.loaded["output"].tables[0].columns)
        except BadRequest as error:
            refused = str(error)
    assert read == (b'{"n": 3}\n', columns + 1) or (columns > _READ_COLUMNS and "memory" in refused)
