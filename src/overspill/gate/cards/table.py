"""The card of tables: their rows and columns, what is in each column, and the first rows."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from itertools import accumulate, repeat
from types import NoneType
from typing import Any

from msgspec import Struct

from overspill.gate.cards.card import Card, Section, indent, name
from overspill.gate.cards.columns import MAX_DISTINCT_SHARE, MAX_VALUES, describe_column, write_cell
from overspill.gate.cards.json_rows import JsonTable, read_cells, read_row
from overspill.gate.cards.sample import OutputSample, draw
from overspill.lexical.cells import read_columns, read_rows
from overspill.lexical.index import Index, build
from overspill.lexical.kinds.kind import Kind
from overspill.lexical.outline import Table
from overspill.lexical.render import render
from overspill.tables.delimited import Delimited
from overspill.tables.table import JsonRows
from overspill.text.humanize import count_noun
from overspill.wording.cards import NextStep

_MAX_CELLS = 1_200
"""Cells that are read. Of a larger table, rows are drawn."""
_MAX_JSON_CELLS = 6_000
"""Of JSON, whose rows are parsed at once, all are read up to this."""
_MAX_LINES = 250
_HEAD_LINES, _TAIL_LINES = 20, 3
"""Lines that the engine always reads: they may be above the header, or below the rows."""
_MARKS = (b",", b"\t", b";", b"|")
_BLANK_OR_RULE = re.compile(rb"\n[ \t\r|+=:-]*+(?=\n)")
_ROW = re.compile(rb"(?:[^\"\n]++|\"[^\"]*+\")++(?:\n|\Z)|\n")
"""A line of delimited rows, with the line ends that its quoted cells have."""
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
    above: Sequence[str] = ()
    """What is above the header of an output that is one table, such as a title."""


def read_line_table(sample: OutputSample, kind: Kind) -> ReadTable | None:
    """The table that the output is, if it is one with a row on each line. The engine finds it in the first lines, the last, and
    some drawn from all of them; the others are counted."""
    data, is_delimited = sample.data.rstrip(b"\r\n"), kind.traits.layout == "rows"
    lines = _ROW.findall(data) if is_delimited and b'"' in data else data.splitlines(keepends=True)
    gaps = len(_BLANK_OR_RULE.findall(data, sum(map(len, lines[:_HEAD_LINES]))))
    if gaps >= len(sample.windows) and not is_delimited:
        return None
    if gaps:
        lines = [*lines[:_HEAD_LINES], *filter(bytes.strip, lines[_HEAD_LINES:])]
    marks = (b"  ",) if kind.traits.layout == "aligned" else _MARKS
    columns = max((sum(map(bool, line.split(mark))) for line in lines[:_HEAD_LINES] for mark in marks), default=1)
    drawn = draw(0, len(lines), max(_MIN_READ_ROWS, min(_MAX_CELLS // max(1, columns), _MAX_LINES)))
    inner = range(_HEAD_LINES, len(lines) - _TAIL_LINES)
    numbers = sorted({*range(len(lines))[:_HEAD_LINES], *drawn, *range(len(lines))[-_TAIL_LINES:]})
    index = build(b"".join(map(lines.__getitem__, numbers)), kind=kind)
    if len(index.outline.tables) != 1 or not _are_most(index, index.outline.tables):
        return None
    (table,) = index.outline.tables
    begun = {index.outline.starts[record]: record for record in range(table.first, table.last)}
    places = accumulate((len(lines[number]) for number in numbers), initial=0)
    records = {number: begun[place] for number, place in zip(numbers, places, strict=False) if place in begun}
    is_barred = kind.traits.layout == "paragraphs"
    if not all(number in records for number in drawn if number in inner) or (
        is_barred and min(map(bytes.count, lines[_HEAD_LINES:-_TAIL_LINES], repeat(b"|")), default=2) < 2
    ):
        return None
    read = [records[number] for number in drawn if number in records]
    return _read_table(index, table, read, len(records) + len(lines) - len(numbers))


def _are_most(index: Index, tables: Sequence[Table]) -> bool:
    outline = index.outline
    inside = sum(outline.ends[table.last - 1] - outline.starts[table.first] for table in tables)
    return inside > _MIN_TABLE_SHARE * index.total_bytes and len(tables) <= _MAX_TABLES


def read_engine_tables(index: Index) -> list[ReadTable]:
    """The tables that the engine found, if they are most of the output."""
    tables = [table for table in index.outline.tables if not isinstance(table.rows, JsonRows)]
    if not _are_most(index, tables):
        return []
    return [
        _read_table(index, table, _draw_rows(table.first, table.last, len(read_columns(index, table))), table.last - table.first)
        for table in tables
    ]


def _read_table(index: Index, table: Table, records: Sequence[int], rows: int) -> ReadTable:
    names = read_columns(index, table)
    columns: list[list[object]] = [[] for _ in names[:_MAX_COLUMNS]]
    uneven = 0
    for _, row in read_rows(index, table, records):
        uneven += len(row) != len(names)
        for number, column in enumerate(columns):
            column.append(row[number] if number < len(row) else None)
    examples = _read_lines(index, range(table.first, min(table.last, table.first + _MAX_EXAMPLES)))
    has_title = isinstance(table.rows, Delimited) and index.outline.tables[0] == table
    above = _read_lines(index, range(table.first)) if has_title else []
    return ReadTable("", rows, names, columns, examples, len(records), uneven, above=above)


def _read_lines(index: Index, records: range) -> list[str]:
    starts, ends = index.outline.starts, index.outline.ends
    return [" ".join(render(index, starts[record], ends[record]).split("\n")) for record in records]


def read_json_tables(tables: Sequence[JsonTable], total: int) -> list[ReadTable]:
    """`total`: the size of the document."""
    if len(tables) > _MAX_TABLES or sum(table.bytes for table in tables) <= _MIN_TABLE_SHARE * total:
        return []
    return [_read_json_table(table) for table in tables]


def _read_json_table(table: JsonTable) -> ReadTable:
    first, rows = [read_row(row) for row in table.rows[:_MAX_EXAMPLES]], list[dict[str, object]]()
    is_small = len(table.rows) * len(first[0]) <= _MAX_JSON_CELLS
    numbers = range(len(table.rows)) if is_small else _draw_rows(0, len(table.rows), len(first[0]))
    cells = read_cells([table.rows[number] for number in numbers], _MAX_COLUMNS)
    if cells is None:  # row by row
        numbers = _draw_rows(0, len(table.rows), len(first[0]))
        rows = [read_row(table.rows[number]) for number in numbers]
    names = list(dict.fromkeys(key for row in (*first, *rows, cells or {}) for key in row))
    described, none = names[:_MAX_COLUMNS], [None] * len(numbers)
    columns = [[row.get(key) for row in rows] if cells is None else cells.get(key, none) for key in described]
    examples = [" | ".join("" if (cell := row.get(key)) is None else write_cell(cell) for key in described) for row in first]
    return ReadTable(table.pointer, len(table.rows), names, columns, examples, len(numbers), is_json=True)


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
        if table.is_json and is_plain:
            return [NextStep("query", f"{path}[?{column}=={spelt}]", f"the rows whose {column} is {value}")]
        if not table.is_json and isinstance(value, str) and not value[0].isdigit():
            return [NextStep("grep", value, f"the rows whose {column} is {value}")]
    if table.is_json and is_plain:
        return [NextStep("query", f"{path}[-{_LAST_ROWS}:]", f"the last {_LAST_ROWS} rows")]
    if table.is_json:
        return [NextStep("query", "@", "the whole document")]
    return [NextStep("lines", "1-50", "the first 50 rows")]
