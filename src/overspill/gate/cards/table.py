"""The card of tables: their rows and columns, what is in each column, and the first rows."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence, Sized
from itertools import islice

from msgspec import Struct

from overspill.gate.cards.card import Card, Section, indent, name
from overspill.gate.cards.sample import draw
from overspill.lexical.cells import read_columns, read_rows
from overspill.lexical.index import Index
from overspill.lexical.outline import Table
from overspill.lexical.render import render
from overspill.tables.delimited import Delimited, is_total
from overspill.tables.json_rows import read_cells, write_cell
from overspill.tables.json_tables import MIN_ROWS, JsonRow, JsonTable, find_json_tables
from overspill.tables.json_text import HeldJson
from overspill.tables.table import JsonRows, Omission
from overspill.tables.types import Reading, find_reading, is_value
from overspill.text.humanize import count_noun
from overspill.wording.cards import NextStep

_MAX_CELLS = 10_000
"""Cells that are read. Of a larger table, rows are drawn."""
_MIN_READ_ROWS = 10
_MAX_COLUMNS = 200
"""Columns that are described."""
_MAX_COLUMNS_ON_LINE = 10
_MAX_EXAMPLES = 12
_LAST_ROWS = 5
_MAX_TABLES = 12
"""More tables are described by what contains them."""
_MAX_VALUES = 4
"""Values that are named for one column."""
_MAX_DISTINCT_SHARE = 0.5
"""With more different values, the most frequent ones say little."""
_MEANINGS = {"seconds": "duration"}
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
    columns: Sequence[Sequence[object]]
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
        total="".join(_read_lines(index, range(table.last - 1, table.last))) if has_title and is_total(last) else "",
    )


def _read_lines(index: Index, records: range) -> list[str]:
    starts, ends = index.outline.starts, index.outline.ends
    return [" ".join(render(index, starts[record], ends[record]).split("\n")) for record in records]


def read_json_tables(held: HeldJson, total: int) -> list[ReadTable]:
    """The tables of a text of this size, if they are most of it."""
    found = list(islice(find_json_tables(held.documents), _MAX_TABLES + 1))
    tables = [(table, rows) for table in found if len(rows := list(table.rows())) >= MIN_ROWS]
    inside = sum(len(memoryview(row.raw)) for _, rows in tables for row in rows)
    if len(found) > _MAX_TABLES or inside <= _MIN_TABLE_SHARE * total:
        return []
    return [_read_json_table(table, rows, is_plain=not held.around and not held.is_converted) for table, rows in tables]


def _read_json_table(table: JsonTable, found: Sequence[JsonRow], *, is_plain: bool) -> ReadTable:
    first = [read_cells(row.raw, row.key) for row in found[:_MAX_EXAMPLES]]
    rows = [read_cells(found[number].raw, found[number].key) for number in _draw_rows(0, len(found), len(first[0]))]
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


def describe_column(column: str, cells: Sequence[object], *, is_all: bool, is_json: bool = False) -> str:
    """`status text, ok 1,200, failed 30, 2 others; 3% missing`, or, if there are more cells, `status text, ok 96%, failed 2%,
    2 others seen; 3% missing`."""
    filled = [cell.strip() if isinstance(cell, str) else cell for cell in cells if not _is_missing(cell)]
    texts = [cell for cell in filled if isinstance(cell, str)]
    reading = find_reading(dict.fromkeys(texts), column) if len(texts) == len(filled) else None
    if reading and reading.meaning != "boolean":
        filled = [text for text in texts if is_value(text)]
    missing = len(cells) - len(filled)
    if not filled:
        return f"{name(column)} empty" if is_all else f"{name(column)} empty wherever seen"
    seen = 0 if is_all else len(cells)
    described = _describe_read(filled, reading, seen, is_json=is_json) if reading else _describe_values(filled, seen)
    words = f"{name(column)} {described}" + ("" if is_all else " seen")
    return f"{words}; {_percent(missing, len(cells))} missing" if missing else words


def _is_missing(cell: object) -> bool:
    return cell is None or (isinstance(cell, str) and not cell.strip())


def _percent(part: int, whole: int) -> str:
    share = 100 * part / whole
    return f"{share:.0f}%" if 1 <= share <= 99 else "under 1%" if share < 1 else "over 99%"


def _describe_read(cells: Sequence[object], reading: Reading, seen: int, *, is_json: bool) -> str:
    """`number 1 to 900, but "Total" once`."""
    texts = [cell for cell in cells if isinstance(cell, str)]
    counts = Counter(texts)
    meaning = _MEANINGS.get(reading.meaning, reading.meaning)
    if reading.meaning == "boolean" or len(counts) == 1:
        return _describe_values(texts, seen, "text" if is_json else meaning)
    fitting = [text for text in counts if reading.fits(text)]
    kind = f"text, {meaning}s" if is_json and meaning == "number" else meaning
    words = f"{kind} {name(min(fitting, key=reading.measure))} to {name(max(fitting, key=reading.measure))}"
    if len(fitting) == len(counts):
        return words
    others = Counter({text: times for text, times in counts.items() if not reading.fits(text)})
    (text, times), *rest = others.most_common()
    more = f" and {count_noun(others.total() - times, 'other')}" if rest else ""
    return f"{words}, but {name(text)} {'once' if times == 1 else f'{times:,} times'}{more}"


def _describe_values(cells: Sequence[object], seen: int, kind: str = "") -> str:
    """`seen`: of how many rows the cells are; 0 if of all that there are."""
    kind = kind or _find_type(cells)
    if kind in ("array", "object"):
        sizes = [len(cell) for cell in cells if isinstance(cell, Sized)]
        return f"{kind} of {min(sizes):,}" if min(sizes) == max(sizes) else f"{kind} of {min(sizes):,} to {max(sizes):,}"
    texts = [write_cell(cell).strip() for cell in cells]
    counts = Counter(texts)
    if len(counts) == 1:
        return f"{kind}, {'only' if seen else 'always'} {name(texts[0])}"
    if kind == "number":
        return f"{kind} {name(min(texts, key=float))} to {name(max(texts, key=float))}"
    if len(counts) > _MAX_DISTINCT_SHARE * len(texts):
        return f"{kind}, all different" if not seen and len(counts) == len(texts) else f"{kind}, {len(counts):,} different"
    most = counts.most_common(_MAX_VALUES)
    named = [f"{name(value)} {_percent(times, seen) if seen else f'{times:,}'}" for value, times in most]
    others = len(counts) - len(named)
    return f"{kind}, {', '.join(named)}" + (f", {count_noun(others, 'other')}" if others else "")


def _find_type(cells: Sequence[object]) -> str:
    kinds = {type(cell) for cell in cells}
    if kinds == {bool}:
        return "boolean"
    if kinds <= {int, float}:
        return "number"
    if kinds == {list} or kinds == {dict}:
        return "array" if list in kinds else "object"
    return "text" if kinds == {str} else "mixed"


def _suggest(table: ReadTable) -> list[NextStep]:
    """Filter by a value of a column that has few. Only plain names go into a call: they are from the output."""
    path = table.label.lstrip("/").replace("/", ".")
    is_plain = _PLAIN_POINTER.fullmatch(table.label) is not None
    for column, cells in zip(table.names, table.columns, strict=False):
        counts = Counter(cell for cell in cells if type(cell) in (str, int) and not _is_missing(cell))
        if not 1 < len(counts) <= _MAX_DISTINCT_SHARE * len(cells):
            continue
        value = counts.most_common(_MAX_VALUES)[-1][0]
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
