"""Reads the cells of tables, whatever separates them, and finds columns by name."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any, cast

import msgspec

from overspill.lexical.grid import name_column
from overspill.lexical.headers import MAX_HEADER_ROWS, read_header
from overspill.lexical.index import Index
from overspill.lexical.outline import Table
from overspill.lexical.render import render
from overspill.lexical.words import read_lexicon, split_subwords, stem

MOST_ROWS = 200_000
"""Rows of a table that are compared with each other at most."""
_SAMPLED_ROWS = 50
"""Rows to read to find out which fields rows have: not every row has all of them."""
_MAX_FIELD_DEPTH = 3
_OBJECT = msgspec.json.Decoder(dict[str, Any])
_WIDE_GAP = re.compile(r"\s{2,}")
_WORD = re.compile(r"[^\W_]+")
_MAX_REMEMBERED_CHARS = 100
"""The stems of a longer name are not remembered."""


def read_columns(index: Index, table: Table) -> list[str]:
    if table not in index.columns:
        index.columns[table] = _read_columns(index, table)
    return index.columns[table]


def _read_columns(index: Index, table: Table) -> list[str]:
    outline = index.outline
    if table.cells == "json":
        step = max(1, (table.last - table.first) // _SAMPLED_ROWS)
        return list(dict.fromkeys(name for record in range(table.first, table.last, step) for name in _fields(index, record)))
    if rows := index.remember(_read_header_rows, table):
        return [name_column(rows, column) for column in range(max(map(len, rows)))]
    return _split(render(index, outline.label_starts[table.header], outline.label_ends[table.header]), table)


def find_header(index: Index, table: Table) -> tuple[int, int]:
    """Where the header of a table is, with all of its rows."""
    start, end = index.outline.label_starts[table.header], index.outline.label_ends[table.header]
    rows = len(index.remember(_read_header_rows, table))
    return start, index.outline.ends[table.first + rows - 2] if rows > 1 else end


def _read_header_rows(index: Index, table: Table) -> list[list[str]]:
    """Empty unless a cell of the header spans several columns or rows."""
    outline = index.outline
    start, end = outline.label_starts[table.header], outline.label_ends[table.header]
    if not index.traits.is_markup or b"span" not in bytes(index.source[start:end]).lower():
        return []
    spans = [(start, end)]
    spans += [(outline.starts[record], outline.ends[record]) for record in range(table.first, table.last)[: MAX_HEADER_ROWS - 1]]
    return read_header((bytes(index.source[start:end]), _split(render(index, start, end), table)) for start, end in spans)


def read_rows(index: Index, table: Table, records: Sequence[int] = ()) -> Iterator[tuple[int, list[str]]]:
    """The cells of these records, or of all."""
    names = read_columns(index, table)
    for record in records or range(table.first, table.last):
        if table.cells == "json":
            fields = _fields(index, record)
            yield record, [fields.get(name, "") for name in names]
        else:
            text = render(index, index.outline.starts[record], index.outline.ends[record])
            yield record, text.split(maxsplit=len(names) - 1) if table.cells == "words" else _split(text, table)


def find_column(names: list[str], words: Sequence[str]) -> int | None:
    """The column named by the first of these words that names one; among several, the one that most of the words name."""
    known = [(_remember_stems if len(name) <= _MAX_REMEMBERED_CHARS else _stem_name)(name) for name in names]
    stems = [stem(word) for word in words if word not in read_lexicon("stop") and len(word) > 1]

    def naming(number: int) -> int:
        return sum(any(_same_word(word, part) for part in known[number]) for word in stems)

    for word in stems:
        if named := [number for number, parts in enumerate(known) if any(_same_word(word, part) for part in parts)]:
            return max(named, key=naming)
    return None


def _stem_name(name: str) -> frozenset[str]:
    """The stems of the words of a column's name, and of their parts."""
    return frozenset(stem(part) for word in _WORD.findall(name) for part in (word.lower(), *split_subwords(word)))


_remember_stems = lru_cache(maxsize=4_096)(_stem_name)


def _same_word(one: str, other: str) -> bool:
    """Whether these are forms of one word, or one abbreviates the other: memory, mem."""
    if one == other:
        return True
    if len(one) > len(other):
        one, other = other, one
    return len(one) >= 3 and other.startswith(one) and len(other) - len(one) <= max(3, len(one) // 2)


def _fields(index: Index, record: int) -> dict[str, str]:
    raw = bytes(index.text[index.outline.starts[record] : index.outline.ends[record]])
    raw = raw.replace(index.fill, b"") if index.fill else raw
    try:
        fields = _OBJECT.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return {}
    return dict(_flat(fields, ""))


def _flat(fields: dict[str, Any], above: str, depth: int = 0) -> Iterator[tuple[str, str]]:
    """A member of an object inside a row is a field of that row: `status.phase`."""
    for key, field in fields.items():
        if depth < _MAX_FIELD_DEPTH and isinstance(field, dict):
            yield from _flat(cast("dict[str, Any]", field), f"{above}{key}.", depth + 1)
        else:
            yield above + key, str(cast(object, field))


def _split(text: str, table: Table) -> list[str]:
    if table.cells == "pipes":
        return [cell.strip() for cell in text.strip().removeprefix("|").split("|")]
    if table.cells in ("spaced", "words"):
        return _WIDE_GAP.split(text.strip()) if table.cells == "spaced" else text.split()
    if '"' not in text:
        return text.split(table.delimiter)
    try:
        return next(csv.reader([text.replace("\n", " ").replace("\r", " ")], delimiter=table.delimiter))
    except csv.Error:
        # A cell is too long for the parser, so the cells of this row are unknown.
        return []
