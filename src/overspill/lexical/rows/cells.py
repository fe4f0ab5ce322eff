"""Reads the cells of tables and lists, and finds columns by name."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import islice
from typing import cast

from msgspec import Struct

from overspill.lexical.index import Index
from overspill.lexical.outline import Table
from overspill.lexical.reply.render import render
from overspill.lexical.words import read_lexicon, split_subwords, stem
from overspill.tables.json_rows import VALUE, read_cells, split_member
from overspill.tables.table import JsonRows, Tally, describe_rows, is_total, name_column
from overspill.text.regex import regex

MOST_ROWS = 200_000
"""The most rows of a table to compare with each other."""
_SAMPLED_ROWS = 50
"""How many rows to read to learn which fields they have. Not every row has all of them."""
MAX_COLUMNS = 500
"""The most columns of JSON rows, which may have any number of different fields. Each row gets a cell for every column."""
COMPARED_ROWS = 200
"""How many rows to read to learn what a column contains."""
_MAX_REMEMBERED_ROWS = 5_000
"""How many JSON rows to remember. Several steps of a question read the same ones."""
_MIN_LISTED_ROWS = 3
_MAX_SPANNING_BYTES = 1 << 20
"""The largest table of a page to read again for spanning cells."""
_SPANNING = regex(rb"(?i)\s(?:row|col)span\b")
_WORD = regex(r"[^\W_]+")
_MAX_REMEMBERED_CHARS = 100
"""The stems of a longer name are not remembered."""


def read_columns(index: Index, table: Table) -> list[str]:
    if table not in index.columns:
        index.columns[table] = _read_columns(index, table)
    return index.columns[table]


def _read_columns(index: Index, table: Table) -> list[str]:
    outline = index.outline
    if isinstance(table.rows, JsonRows):
        step = max(1, (table.last - table.first) // _SAMPLED_ROWS)
        names = (name for record in range(table.first, table.last, step) for name in _read_fields(index, table.rows, record))
        return list(islice(dict.fromkeys(names), MAX_COLUMNS))
    if table.rows.names:
        return list(table.rows.names)
    if header := index.remember(_read_spanning, table)[0]:
        return [name_column(header, column) for column in range(max(map(len, header)))]
    return table.rows.split(render(index, outline.label_starts[table.header], outline.label_ends[table.header]))


def find_header(index: Index, table: Table) -> tuple[int, int]:
    """The span of a table's header, including all of its rows."""
    start, end = index.outline.label_starts[table.header], index.outline.label_ends[table.header]
    rows = len(index.remember(_read_spanning, table)[0])
    return start, index.outline.ends[table.first + rows - 2] if rows > 1 else end


def _read_spanning(index: Index, table: Table) -> list[list[list[str]]]:
    """The header rows and other rows of a page's table, if any of its cells span several columns or rows. Else empty."""
    start, end = index.outline.label_starts[table.header], index.outline.ends[table.last - 1]
    is_short = index.traits.is_markup and table.header >= 0 and end - start <= _MAX_SPANNING_BYTES
    if not is_short or not _SPANNING.search(index.source, start, end):
        return [[], []]
    from overspill.tables.markup import read_spanning  # noqa: PLC0415  # the parser takes long to import

    header, rows = read_spanning(bytes(index.source[start:end]))
    # A long row may take several records.
    return [header, rows if len(header) + len(rows) == 1 + table.last - table.first else []]


def ends_with_total(index: Index, table: Table) -> bool:
    """Whether the last row sums up others."""
    return not isinstance(table.rows, JsonRows) and is_total(next(read_rows(index, table, [table.last - 1]))[1])


def list_notes(index: Index, table: Table) -> list[str]:
    """Notes on its rows: what the output leaves out, what could not be read, and a last row with totals."""
    if isinstance(table.rows, JsonRows):
        empty = [record for record in range(table.first, table.last) if not _read_fields(index, table.rows, record)]
        spans = (slice(index.outline.starts[record], index.outline.ends[record]) for record in empty)
        return list(Tally(None, (() for span in spans if bytes(index.text[span]).strip(b"{} \t\r\n"))).describe())
    tally = Tally(len(read_columns(index, table)), (cells for _, cells in read_rows(index, table)))
    return list(describe_rows(table.omissions, tally))


def read_rows(index: Index, table: Table, records: Sequence[int] = ()) -> Iterator[tuple[int, list[str]]]:
    """The cells of these records, or of all. They are cached: do not change them."""
    names = read_columns(index, table)
    known = index.remember(_remember_rows)
    header, rows = index.remember(_read_spanning, table) if index.traits.is_markup else ((), ())
    for record in records or range(table.first + max(0, len(header) - 1), table.last):
        if isinstance(table.rows, JsonRows):
            if (cells := known.get(record)) is None:
                fields = _read_fields(index, table.rows, record)
                cells = [fields.get(name, "") for name in names]
                if len(known) < _MAX_REMEMBERED_ROWS:
                    known[record] = cells
            yield record, cells
        elif table.last - record <= len(rows):
            yield record, rows[record - table.last]
        else:
            yield record, table.rows.split(render(index, index.outline.starts[record], index.outline.ends[record]))


def _remember_rows(_: Index) -> dict[int, list[str]]:
    return {}


def sample_columns(index: Index, table: Table, *records: int) -> list[list[str]]:
    """The cells of each column in the first of these rows, or of all."""
    names = read_columns(index, table)
    rows = [fill_row(cells, len(names)) for _, cells in islice(read_rows(index, table, records), COMPARED_ROWS)]
    return [[cells[number] for cells in rows] for number in range(len(names))]


def fill_row(cells: list[str], columns: int) -> list[str]:
    """The cells of a row, padded if there are fewer than columns."""
    return cells if len(cells) >= columns else cells + [""] * (columns - len(cells))


def find_column(names: list[str], words: Sequence[str]) -> int | None:
    """The column named by the first of these words that names any. If it names several, the one that most of the words name,
    unabbreviated if possible."""
    known = [(_remember_stems if len(name) <= _MAX_REMEMBERED_CHARS else _stem_name)(name) for name in names]
    stems = [stem(word) for word in words if word not in read_lexicon("stop") and len(word) > 1]

    def naming(number: int) -> tuple[int, int]:
        same = [any(is_same_word(word, part) for part in known[number]) for word in stems]
        return sum(same), len(known[number].intersection(stems))

    for word in stems:
        if named := [number for number, parts in enumerate(known) if any(is_same_word(word, part) for part in parts)]:
            return max(named, key=naming)
    return None


def _stem_name(name: str) -> frozenset[str]:
    """The stems of the words of a column's name, and of their parts."""
    return frozenset(stem(part) for word in _WORD.findall(name) for part in (word.lower(), *split_subwords(word)))


_remember_stems = lru_cache(maxsize=4_096)(_stem_name)


def is_same_word(one: str, other: str) -> bool:
    """Whether these are forms of one word, or one abbreviates the other: memory, mem."""
    if one == other:
        return True
    if len(one) > len(other):
        one, other = other, one
    return len(one) >= 3 and other.startswith(one) and len(other) - len(one) <= max(3, len(one) // 2)


def _read_fields(index: Index, rows: JsonRows, record: int) -> dict[str, str]:
    outline = index.outline
    raw = bytes(index.text[outline.starts[record] : outline.ends[record]])
    raw = raw.replace(index.fill, b"") if index.fill else raw
    above = outline.under[record] if rows.are_lists else -1
    if above >= 0:
        key = split_member(bytes(index.text[outline.label_starts[above] : outline.label_ends[above]]))[0]
    else:
        key, raw = split_member(raw)
    cells = read_cells(raw, key, merges_lists=True)
    if rows.names and isinstance(listed := cells.get(VALUE), list):
        cells = dict(zip(rows.names, cast("list[object]", listed), strict=False))
    return {name: str(cell) for name, cell in cells.items()}


class RowList(Struct, frozen=True):
    """The rows of a table, or of a list in which some rows are too long for one record and the others read like a table."""

    table: Table
    records: Sequence[int]

    def keep(self, records: Iterable[int]) -> list[int]:
        """Keeps the rows of this list."""
        rows = self.records if isinstance(self.records, range) else frozenset(self.records)
        return [record for record in records if record in rows]


def find_list(index: Index, record: int) -> RowList | None:
    """The list of rows that a record belongs to."""
    if table := index.outline.table_of(record):
        return RowList(table, range(table.first, min(table.last, table.first + MOST_ROWS)))
    return index.remember(_read_siblings, index.outline.under[record]) if index.traits.has_members else None


def find_longest_list(index: Index) -> RowList | None:
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
    if len(records) < _MIN_LISTED_ROWS:
        return None
    rows = JsonRows(are_siblings=True)
    table = Table(records[0], records[-1] + 1, -1, rows)
    sample = records[:: max(1, len(records) // _SAMPLED_ROWS)]
    names = (name for record in sample for name in _read_fields(index, rows, record))
    index.columns[table] = list(islice(dict.fromkeys(names), MAX_COLUMNS))
    return RowList(table, records)
