"""The room, the engine and cards read what real commands print as its source says."""

from __future__ import annotations

import json

import pytest
from command_outputs import NAMES, read_output

from overspill.gate.cards.make import make_card
from overspill.lexical.index import build
from overspill.lexical.rows.cells import read_columns, read_rows
from overspill.store.meter import size_of
from overspill.tables.lines import find_tables
from overspill.text.humanize import count_noun


@pytest.mark.parametrize("name", NAMES)
def test_every_cell_is_what_the_source_says(name: str):
    text, names, rows, omitted = read_output(name)
    (found,) = find_tables(text, 0, len(text))
    assert list(found.format.names) == names
    spans = zip(found.starts, found.ends, strict=True)
    assert [found.format.split(text[start:end].decode()) for start, end in spans] == rows
    assert sum(omission.count for omission in found.omissions) == omitted


@pytest.mark.parametrize("name", NAMES)
def test_the_engine_has_the_same_table(name: str):
    text, names, rows, omitted = read_output(name)
    index = build(text)
    (table,) = index.outline.tables
    assert read_columns(index, table) == names
    assert [cells for _, cells in read_rows(index, table)] == rows
    assert sum(omission.count for omission in table.omissions) == omitted


@pytest.mark.parametrize("name", NAMES)
def test_the_card_has_the_same_table(name: str):
    text, names, rows, omitted = read_output(name)
    made = make_card(lambda start, end: text[start:end], size_of(text.decode(), None))
    shown = made.write(10_000, lambda written: len(written) // 4)
    assert f"{count_noun(len(rows), 'row')}, {count_noun(len(names), 'column')}" in shown
    assert all(f"- {column} " in shown or f"- {json.dumps(column)} " in shown for column in names)
    assert (f"; {count_noun(omitted, 'row')} that the output does not show" in shown) == bool(omitted)
