"""Lists of rows. A list in which some rows are too long for one record is no table, but its other rows can be read like one."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import islice

from msgspec import Struct

from overspill.lexical.index import Index
from overspill.lexical.outline import Table
from overspill.lexical.rows.cells import MAX_COLUMNS, MOST_ROWS, read_columns, read_fields, read_rows
from overspill.tables.table import JsonRows

_MIN_ROWS = 3
_SAMPLED_ROWS = 50
_MIN_NAMED_SHARE = 0.9
_NAME = re.compile(r"(?![\da-f-]{20,}+$)(?!\w{1,10}:|[./]|[\[{])(?=.{0,20}?[^\W\d_]{2}).{1,80}", re.IGNORECASE)
"""A few words, and no address, path, list or identifier made of digits."""


class RowList(Struct, frozen=True):
    table: Table
    records: Sequence[int]

    def keep(self, records: Iterable[int]) -> list[int]:
        """Those that are rows of this list."""
        return [record for record in records if _holds(self.records, record)]


def find_list(index: Index, record: int) -> RowList | None:
    """The rows that a record is one of."""
    if table := index.outline.table_of(record):
        return RowList(table, range(table.first, min(table.last, table.first + MOST_ROWS)))
    return index.remember(_read_siblings, index.outline.under[record]) if index.traits.has_members else None


def find_longest_list(index: Index) -> RowList | None:
    return index.remember(_find_longest)


def _find_longest(index: Index) -> RowList | None:
    outline, text = index.outline, index.text
    sizes: Counter[int] = Counter()
    firsts: dict[int, int] = {}
    for record, (start, end, label) in enumerate(zip(outline.starts, outline.ends, outline.under, strict=True)):
        if text[start : start + 1] == b"{" or outline.table_of(record):
            sizes[label] += end - start
            firsts.setdefault(label, record)
    return find_list(index, firsts[max(sizes, key=sizes.__getitem__)]) if sizes else None


def _read_siblings(index: Index, label: int) -> RowList | None:
    outline, text = index.outline, index.text
    first = outline.record_from(outline.label_starts[label]) if label >= 0 else 0
    below = range(first, min(len(outline), first + outline.extents[label] if label >= 0 else len(outline)))
    records = [
        record
        for record in below
        if outline.under[record] == label and text[outline.starts[record] : outline.starts[record] + 1] == b"{"
    ][:MOST_ROWS]
    if len(records) < _MIN_ROWS:
        return None
    table = Table(records[0], records[-1] + 1, -1, JsonRows(are_siblings=True))
    sample = records[:: max(1, len(records) // _SAMPLED_ROWS)]
    names = (name for record in sample for name in read_fields(index, record))
    index.columns[table] = list(islice(dict.fromkeys(names), MAX_COLUMNS))
    return RowList(table, records)


def _holds(records: Sequence[int], record: int) -> bool:
    place = bisect_left(records, record)
    return place < len(records) and records[place] == record


def find_naming_field(index: Index, record: int) -> str:
    """The first field that has some words in nearly every row like this one, and other ones in each; or else nothing."""
    rows = find_list(index, record)
    return index.remember(_find_naming_field, rows.records[0]) if rows else ""


def _find_naming_field(index: Index, record: int) -> str:
    if not (rows := find_list(index, record)):
        return ""
    columns = read_columns(index, rows.table)
    sample = [cells for _, cells in read_rows(index, rows.table, rows.records[:: max(1, len(rows.records) // _SAMPLED_ROWS)])]
    for number, name in enumerate(columns):
        named = [cells[number] for cells in sample if _NAME.fullmatch(cells[number])]
        if "." not in name and len(set(named)) >= _MIN_NAMED_SHARE * len(sample):
            return name
    return ""
