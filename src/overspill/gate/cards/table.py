"""The card of tables: their rows and columns, what is in each column, and the first rows."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from itertools import islice
from types import NoneType
from typing import Any

from msgspec import Struct

from overspill.gate.cards.card import Card, Section, indent, name
from overspill.gate.cards.columns import MAX_DISTINCT_SHARE, MAX_VALUES, describe_column
from overspill.gate.cards.sample import OutputSample, draw
from overspill.lexical.cells import read_columns, read_rows
from overspill.lexical.index import Index, build
from overspill.lexical.kinds.kind import Kind
from overspill.lexical.outline import Table
from overspill.lexical.render import render
from overspill.tables.delimited import Delimited, is_total
from overspill.tables.json_rows import read_cells, write_cell
from overspill.tables.json_tables import MIN_ROWS, JsonRow, JsonTable, find_json_tables
from overspill.tables.json_text import HeldJson
from overspill.tables.table import JsonRows, Omission
from overspill.text.humanize import count_noun
from overspill.wording.cards import NextStep

_MAX_CELLS = 1_200
"""Cells that are read. Of a larger table, rows are drawn."""
_MAX_JSON_CELLS = 6_000
"""Of JSON, which is faster to read, all are read up to this."""
_MIN_READ_ROWS = 10
_MAX_COLUMNS = 200
"""Columns that are described."""
_MAX_COLUMNS_ON_LINE = 10
_MAX_EXAMPLES = 12
_LAST_ROWS = 5
_MAX_TABLES = 12
"""More tables are described by what contains them."""
_MIN_TABLE_SHARE = 0.5
"""Of the output, for it to be described as tables."""
_IDENTIFIER = re.compile(r"[A-Za-z_]\w{0,29}", re.ASCII)
_PLAIN_VALUE = re.compile(r"[A-Za-z0-9][\w-]{0,29}", re.ASCII)
_PLAIN_POINTER = re.compile(r"(?:/[A-Za-z_]\w{0,29}){0,3}", re.ASCII)


class ReadTable(Struct, frozen=True):
    """A table with the cells that were read of it."""

    label: str
    """Its JSON pointer, if it is inside a document."""
    rows: int
    names: Sequence[str]
    columns: Sequence[Sequence[Any]]
    """The cells of each column that is described; None where a row has none."""
    examples: Sequence[str]
    read: int
    """Rows whose cells were read. If not all were, no statement is about all."""
    uneven: int = 0
    """How many of them have another number of cells than the header."""
    is_json: bool = False
    can_query: bool = False
    """Whether a query can select its rows."""
    omissions: Sequence[Omission] = ()
    above: Sequence[str] = ()
    """What is above the header of an output that is one table, such as a title."""
    total: str = ""
    """The last row, if it sums up others."""


def read_line_tables(sample: OutputSample, kind: Kind) -> list[ReadTable]:
    """The tables that the output is, if most of it is rows on lines."""
    if kind.traits.layout == "paragraphs" and sample.data.count(b"|") < sample.data.count(b"\n"):
        return []  # which takes the engine long to cut
    return read_engine_tables(build(sample.data, kind=kind))


def read_engine_tables(index: Index) -> list[ReadTable]:
    """The tables that the engine found, if they are most of the output."""
    outline = index.outline
    tables = [table for table in outline.tables if not isinstance(table.rows, JsonRows)]
    inside = sum(outline.ends[table.last - 1] - outline.starts[table.first] for table in tables)
    if inside <= _MIN_TABLE_SHARE * index.total_bytes or len(tables) > _MAX_TABLES:
        return []
    return [_read_table(index, table) for table in tables]


def _read_table(index: Index, table: Table) -> ReadTable:
    names = read_columns(index, table)
    records = _draw_rows(table.first, table.last, len(names))
    columns: list[list[object]] = [[] for _ in names[:_MAX_COLUMNS]]
    uneven = 0
    for _, row in read_rows(index, table, records):
        uneven += len(row) != len(names)
        for number, column in enumerate(columns):
            column.append(row[number] if number < len(row) else None)
    examples = _read_lines(index, range(table.first, min(table.last, table.first + _MAX_EXAMPLES)))
    has_title = isinstance(table.rows, Delimited) and index.outline.tables[0] == table
    above = _read_lines(index, range(table.first)) if has_title else []
    _, last = next(read_rows(index, table, [table.last - 1]))
    return ReadTable(
        "",
        table.last - table.first,
        names,
        columns,
        examples,
        len(records),
        uneven,
        omissions=table.omissions,
        above=above,
        total="".join(_read_lines(index, range(table.last - 1, table.last))) if is_total(last) else "",
    )


def _read_lines(index: Index, records: range) -> list[str]:
    starts, ends = index.outline.starts, index.outline.ends
    return [" ".join(render(index, starts[record], ends[record]).split("\n")) for record in records]


def read_json_tables(held: HeldJson, total: int) -> list[ReadTable]:
    """The tables of a text of this size, if they are most of it."""
    found = list(islice(find_json_tables(held.documents), _MAX_TABLES + 1))
    tables = [(table, rows) for table in found if len(rows := list(table.rows())) >= MIN_ROWS]
    inside = sum(sum(map(len, table.documents)) if table.documents else len(table.raw) for table, _ in tables)
    if len(found) > _MAX_TABLES or inside <= _MIN_TABLE_SHARE * total:
        return []
    return [_read_json_table(table, rows, is_plain=not held.around and not held.is_converted) for table, rows in tables]


def _read_json_table(table: JsonTable, found: Sequence[JsonRow], *, is_plain: bool) -> ReadTable:
    first = [read_cells(row.raw, row.key) for row in found[:_MAX_EXAMPLES]]
    is_small = len(found) * len(first[0]) <= _MAX_JSON_CELLS
    drawn = range(len(found)) if is_small else _draw_rows(0, len(found), len(first[0]))
    rows = [read_cells(found[number].raw, found[number].key) for number in drawn]
    names = list(dict.fromkeys(key for row in (*first, *rows) for key in row))
    columns = [[row.get(key) for row in rows] for key in names[:_MAX_COLUMNS]]
    examples = [
        " | ".join("" if (cell := row.get(key)) is None else write_cell(cell) for key in names[:_MAX_COLUMNS]) for row in first
    ]
    can_query = is_plain and table.shape in ("list", "documents")
    return ReadTable(table.pointer, len(found), names, columns, examples, len(rows), is_json=True, can_query=can_query)


def _draw_rows(first: int, last: int, columns: int) -> Sequence[int]:
    return draw(first, last, max(_MIN_READ_ROWS, _MAX_CELLS // max(1, columns)))


def make_table_card(tables: Sequence[ReadTable], *, is_whole: bool) -> Card:
    """All tables in the order of the output; the largest are first in line for room."""
    by_size = sorted(range(len(tables)), key=lambda number: -tables[number].rows)
    sections = [
        section
        for number, table in enumerate(tables)
        for section in _describe_table(table, 2 * by_size.index(number), is_only=len(tables) == 1, is_whole=is_whole)
    ]
    return Card(sections, _suggest(tables[by_size[0]]))


def _describe_table(table: ReadTable, rank: int, *, is_only: bool, is_whole: bool) -> list[Section]:
    is_all = is_whole and table.read == table.rows
    least, least_columns = "" if is_whole else "at least ", "at least " if table.is_json and not is_all else ""
    title = f"{least}{count_noun(table.rows, 'row')}, {least_columns}{count_noun(len(table.names), 'column')}"
    if table.label:
        title = f"{name(table.label)}: {title}"
    if not is_all:
        title += f", as seen in {table.read:,} of " + (f"the {table.rows:,} rows" if is_whole else "the rows")
    if table.read < table.rows:
        title += ", drawn at random"
    if table.uneven:
        title += f"; {table.uneven:,} of these rows have another number of cells"
    if table.total:
        title += f"; the last row sums up others: {name(table.total)}"
    title += "".join(f"; without {omission.count:,} {omission.what}" for omission in table.omissions)
    described = [
        describe_column(column, cells, is_all=is_all, is_json=table.is_json)
        for column, cells in zip(table.names, table.columns, strict=False)
    ]
    rows = [indent(row) for row in table.examples]
    if is_only:
        columns = Section(title, [f"- {each}" for each in described], len(table.names), len(described), rank=rank + 2)
        above = Section("above its header", [indent(line) for line in table.above], len(table.above), 2, rank=rank + 3)
        rest = [columns, Section("rows from the first on", rows, table.rows if is_whole else 0, 2, rank=rank + 1)]
        return [above, *rest] if table.above else rest
    more = len(table.names) - _MAX_COLUMNS_ON_LINE
    line = "; ".join([*described[:_MAX_COLUMNS_ON_LINE], *([f"{more:,} more"] if more > 0 else ())])
    return [Section(f"{title}: {line}. Its rows", rows, table.rows if is_whole else 0, 3, rank=rank + 1)]


def _suggest(table: ReadTable) -> list[NextStep]:
    """Filter by a value of a column that has few. Only plain names go into a call: they are from the output."""
    path = table.label.lstrip("/").replace("/", ".")
    is_plain = _PLAIN_POINTER.fullmatch(table.label) is not None
    for column, cells in zip(table.names, table.columns, strict=False):
        if not {*map(type, cells)} <= {str, int, NoneType}:
            continue
        counts = Counter(cells)
        del counts[None], counts[""]
        if not 1 < len(counts) <= MAX_DISTINCT_SHARE * len(cells):
            continue
        value = counts.most_common(MAX_VALUES)[-1][0]
        spelt = f"'{value}'" if isinstance(value, str) else f"`{value}`"
        if not _IDENTIFIER.fullmatch(column) or not _PLAIN_VALUE.fullmatch(str(value)):
            continue
        if table.can_query and is_plain:
            return [NextStep("query", f"{path}[?{column}=={spelt}]", f"the rows whose {column} is {value}")]
        if not table.can_query and isinstance(value, str) and not value[0].isdigit():
            return [NextStep("grep", value, f"the rows whose {column} is {value}")]
    if table.can_query and is_plain:
        return [NextStep("query", f"{path}[-{_LAST_ROWS}:]", f"the last {_LAST_ROWS} rows")]
    if table.can_query:
        return [NextStep("query", "@", "the whole document")]
    return [NextStep("lines", "1-50", "the first 50 rows")]
