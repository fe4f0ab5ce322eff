"""The cells of tables, whatever parts them, and the columns that words name."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from overspill.engine.index import Index
from overspill.engine.outline import Table
from overspill.engine.show import shown
from overspill.engine.words import STOP, stem, subwords

_NUMBER = re.compile(r"[-−]?\d[\d,' ]*(?:\.\d+)?")
_PLAIN = str.maketrans("−", "-", ",' ")
_UNITS = "KMGTP"
_UNIT = re.compile(r" ?([kKMGTP])i?B?(?!\w)")
_WIDE_GAP = re.compile(r"\s{2,}")
_YEAR = re.compile(r"\b(1[0-9]{3}|20[0-9]{2})\b")
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_DATE = re.compile(
    rf"(?P<d1>\d{{1,2}})?\W{{0,2}}(?P<month>{'|'.join(_MONTHS)})[a-z]*\.?\W{{0,2}}(?P<d2>\d{{1,2}})?\b", re.IGNORECASE
)


def columns_of(index: Index, table: Table) -> list[str]:
    outline = index.outline
    if table.cells == "json":
        return list(_fields(index, table.first))
    text = shown(index, outline.label_starts[table.header], outline.label_ends[table.header])
    return _split(text, table)


def rows_of(index: Index, table: Table, records: Sequence[int] = ()) -> Iterator[tuple[int, list[str]]]:
    """Of these records, or of all."""
    names = columns_of(index, table)
    for record in records or range(table.first, table.last):
        if table.cells == "json":
            fields = _fields(index, record)
            yield record, [fields.get(name, "") for name in names]
        else:
            text = shown(index, index.outline.starts[record], index.outline.ends[record])
            yield record, text.split(maxsplit=len(names) - 1) if table.cells == "words" else _split(text, table)


def column_named(names: list[str], words: Sequence[str]) -> int | None:
    """The column that the first of these words names which names one; of several such, the one that most of them name."""
    known = [{stem(part) for word in re.findall(r"[^\W_]+", name) for part in (word.lower(), *subwords(word))} for name in names]
    stems = [stem(word) for word in words if word not in STOP and len(word) > 1]

    def naming(number: int) -> int:
        return sum(any(_akin(word, part) for part in known[number]) for word in stems)

    for word in stems:
        if named := [number for number, parts in enumerate(known) if any(_akin(word, part) for part in parts)]:
            return max(named, key=naming)
    return None


def _akin(one: str, other: str) -> bool:
    """Forms of one word, or one that is cut off: memory, mem."""
    shorter, longer = sorted((len(one), len(other)))
    near = (shorter >= 4 or (shorter == 3 and longer == 6)) and longer - shorter <= 3
    return one == other or (near and one[:shorter] == other[:shorter])


def _fields(index: Index, record: int) -> dict[str, str]:
    raw = bytes(index.text[index.outline.starts[record] : index.outline.ends[record]])
    raw = raw.replace(index.fill, b"") if index.fill else raw
    try:
        fields = msgspec.json.decode(raw, type=dict[str, Any])
    except (msgspec.DecodeError, UnicodeDecodeError):
        return {}
    return {key: str(field) for key, field in fields.items()}


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
        # A cell longer than the parser takes: no cell of this row can be told.
        return []


def is_date(cell: str) -> bool:
    return _DATE.search(cell) is not None


def measured(cell: str, as_date: bool = False) -> float | None:
    """A number, or in a column of dates the days of one."""
    if as_date:
        year, date = _YEAR.search(cell), _DATE.search(cell)
        day = int(date["d1"] or date["d2"] or 1) if date else 0
        month = _MONTHS.index(date["month"].lower()) if date else 0
        return int(year[1] if year else 0) * 372.0 + month * 31 + day if year or date else None
    number = _NUMBER.search(cell)
    if not number:
        return None
    unit = _UNIT.match(cell, number.end())
    size = 1000.0 ** (1 + _UNITS.index(unit[1].upper())) if unit else 1.0
    return float(number[0].translate(_PLAIN)) * size
