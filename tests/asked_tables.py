"""What SQL, cards, the engine and the viewer say of the tables in a text, in one form."""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

from overspill.errors import BadRequest
from overspill.gate.cards.json_card import read_json_tables
from overspill.gate.cards.sample import OutputSample, Window
from overspill.gate.cards.table import ReadTable, read_text_tables
from overspill.lexical.index import build
from overspill.lexical.rows.cells import list_notes, read_columns, read_rows
from overspill.reading.positions import View
from overspill.sql import loading
from overspill.sql.protocol import LoadedTables, LoadRequest
from overspill.store.readers import BytesReader
from overspill.tables.json_tables import hold_documents
from overspill.tables.table import Tally, describe_rows, make_unique
from overspill.tables.types import find_reading
from overspill.text.lenient_json import UNREADABLE
from overspill.types import Size
from overspill.view.rendering import ShownText, render


class Answer(NamedTuple):
    names: list[str]
    kinds: list[str]
    """What the values of each column are; the engine does not say it."""
    rows: list[list[Any]]
    said: str
    """What is said of rows that are left out, or that are no rows."""
    is_typed: bool = False
    """Whether columns can be added up."""


def load_sql(text: bytes, folder: Path) -> LoadedTables:
    """Into `database` in an empty folder."""
    source, work = folder / "source", folder / "work"
    source.write_bytes(text)
    work.mkdir()
    return loading.load(LoadRequest(str(source), str(work), str(folder / "database")))


def ask_sql(text: bytes) -> list[Answer]:
    answers: list[Answer] = []
    with TemporaryDirectory() as folder:
        found = load_sql(text, Path(folder))
        assert not found.failed, found.failed
        if not found.tables:
            return []
        with loading.duckdb.connect(f"{folder}/database") as connection:
            for table in found.tables:
                names = [column.name for column in table.columns[1:]]
                quoted = ", ".join('"' + name.replace('"', '""') + '"' for name in names)
                query = f'SELECT to_json(t) FROM (SELECT {quoted} FROM "{table.name}") t'
                rows = [list(json.loads(row).values()) for (row,) in connection.execute(query).fetchall()]
                assert len(rows) == table.rows
                unread = f"{table.bad_rows} rows could not be read. " if table.bad_rows else ""
                answers.append(
                    Answer(names, [column.type for column in table.columns[1:]], rows, unread + table.note, is_typed=True)
                )
    return answers


def read_card_tables(text: bytes) -> list[ReadTable]:
    layout = build(text).traits.layout
    with suppress(BadRequest, *UNREADABLE):
        if layout in ("document", "documents"):
            return read_json_tables(hold_documents(text, layout), len(text))
    sample = OutputSample((Window(0, text),), Size(len(text), len(text), text.count(b"\n") + 1, 0))
    return read_text_tables(sample, layout)[0]


def ask_card(text: bytes) -> list[Answer]:
    return [_read_card(table, text) for table in read_card_tables(text)]


def _read_card(table: ReadTable, text: bytes) -> Answer:
    """Of a table that it reads only in part, a card has the rows of the engine, which draws them for it."""
    kinds: list[str] = []
    for name, cells in zip(table.names, table.columns, strict=True):
        reading = find_reading(dict.fromkeys(cell.strip() for cell in cells if isinstance(cell, str)), name)
        kinds.append(reading.meaning if reading else " ".join({type(cell).__name__ for cell in cells if cell is not None}))
    said = ". ".join(describe_rows(table.omissions, table.tally))
    rows = [list(row) for row in zip(*table.columns, strict=True)]
    if table.read < table.rows:
        rows = next(answer.rows for answer in ask_engine(text) if answer.names == list(table.names))
    assert len(rows) == table.rows
    return Answer(list(table.names), kinds, rows, said)


def ask_viewer(text: bytes) -> list[Answer]:
    """Only where it shows a table."""
    shown = render(ShownText(BytesReader(text), View(BytesReader(text))))
    if shown.form != "table":
        return []
    names = list(shown.names) or make_unique([""] * max(map(len, shown.rows)))
    said = ". ".join((*Tally(len(names), shown.rows).describe(), shown.note))
    return [Answer(names, [], [list(row) for row in shown.rows], said)]


def ask_engine(text: bytes) -> list[Answer]:
    index = build(text)
    return [
        Answer(
            read_columns(index, table),
            [],
            [list(cells) for _, cells in read_rows(index, table)],
            ". ".join(list_notes(index, table)),
        )
        for table in index.outline.tables
    ]
