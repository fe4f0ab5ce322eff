"""The answer to a query: a header and rows, with tabs between the cells."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from mmap import mmap
from typing import Any, cast

import msgspec
from msgspec import Struct

from overspill.errors import BadRequest
from overspill.sql.library import QueryResult, Source, SqlLibrary
from overspill.sql.protocol import LoadedTables, rename
from overspill.store.protocols import Reader
from overspill.text.encoding import decode
from overspill.text.humanize import SUMMARY_CHARS, count_noun, one_line, shorten
from overspill.text.regex import regex

_UNKNOWN_COLUMN = regex(r'[Cc]olumn "([^"\n]{1,200})" not found')
_UNKNOWN_TABLE = regex(r"The table '([^']{1,200})' does not exist\.$")
_AMBIGUOUS = frozenset(("", "NULL", "null"))
_MAX_COLUMNS_SHOWN = 60


def spell_cell(value: Any) -> str:
    """The text of a cell: quoted as in JSON if it could be mistaken for another cell, row or value."""
    if value is None:
        return "NULL"
    if isinstance(value, str):
        is_plain = value not in _AMBIGUOUS and value[0] not in '"[{' and value.isprintable() and value == value.strip()
        return value if is_plain else json.dumps(value, ensure_ascii=False)
    return json.dumps(value, ensure_ascii=False)


class SqlAnswer(Struct, frozen=True):
    """`rows` has only the first rows if there are too many to write down; `total` counts all of them."""

    columns: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]
    total: int
    notes: tuple[str, ...] = ()
    """What the answer does not cover, such as rows that could not be read."""

    @property
    def lines(self) -> list[str]:
        """The header and the rows, with tabs between cells."""
        return ["\t".join(map(spell_cell, cells)) for cells in (self.columns, *self.rows)]

    @property
    def text(self) -> str:
        return "\n".join(self.lines)


def read_answer(found: QueryResult, notes: Iterable[str] = ()) -> SqlAnswer:
    """Raises BadRequest if the query failed."""
    if found.result.failed:
        raise BadRequest(_explain_failure(found.result.failed, found.loaded))
    rows = tuple(tuple(cast("dict[str, Any]", msgspec.json.decode(line)).values()) for line in found.lines.splitlines())
    return SqlAnswer(tuple(column.name for column in found.result.columns), rows, found.result.rows, (*found.notes, *notes))


def _explain_failure(failed: str, tables: Mapping[str, LoadedTables]) -> str:
    """What went wrong, the nearest match for a missing column or table, and the existing columns with their types."""
    named = {rename(table.name, name): table for name, found in tables.items() for table in found.tables}
    columns = {column.name for table in named.values() for column in table.columns}
    cards: list[str] = []
    for name, table in named.items():
        shown = ", ".join(one_line(f"{column.name} {column.type}") for column in table.columns[:_MAX_COLUMNS_SHOWN])
        more = f", and {len(table.columns) - _MAX_COLUMNS_SHOWN:,} more" if len(table.columns) > _MAX_COLUMNS_SHOWN else ""
        cards.append(f"  {name}: {count_noun(table.rows, 'row')} ({shown}{more})")
    if unknown := _UNKNOWN_COLUMN.search(failed):
        nearest = shorten(repr(find_nearest(unknown[1], columns)), SUMMARY_CHARS)
        failed = f"There is no column {unknown[1]!r}" + (f"; did you mean {nearest}?" if nearest != "''" else ".")
    elif (unknown := _UNKNOWN_TABLE.search(failed)) and (near := find_nearest(unknown[1], named)):
        failed = f"{failed[:-1]}; did you mean {near!r}?"
    return "\n".join([failed, "Tables:", *cards]) if cards else failed


def find_nearest(name: str, known: Iterable[str]) -> str:
    spellings = {other.lower(): other for other in known}
    return next((spellings[match] for match in get_close_matches(name.lower(), spellings, 1)), "")


class SqlRow(Struct, frozen=True):
    """A row of a table in its original text, from byte `start` up to byte `end`."""

    start: int
    end: int
    text: str


def read_row(text: Reader, row: int | str) -> SqlRow:
    """The row whose `_row` is `row`. Blocks. Raises BadRequest if it does not exist or `_row` is not a position in the text."""
    from overspill.sql.rows import find_row  # noqa: PLC0415  # recognises the text, with a part of the engine

    data = text.buffer()
    whole = data.obj
    start, end = find_row(whole if isinstance(whole, bytes | mmap) and len(whole) == data.nbytes else bytes(data), row)
    return SqlRow(start, end, decode(text.read(start, end)))


def query_text(statement: str, text: Reader, seconds: float, notes: Iterable[str] = ()) -> SqlAnswer:
    """Query the tables in a text. Blocks. They are called `output` and loaded for this query only. `notes` go with the answer."""
    sources = {"output": Source("text", text)}
    with SqlLibrary() as library:
        return read_answer(library.query(statement, sources, seconds), notes)
