"""Writes SQL for questions that count or add up. Passages cannot answer them, because they are about all rows."""

from __future__ import annotations

from collections.abc import Sequence

from overspill.lexical.index import Index
from overspill.lexical.rows.cells import find_column, read_columns, sample_columns
from overspill.lexical.words import read_lexicon, split_words
from overspill.tables.table import JsonRows
from overspill.tables.types import find_reading
from overspill.text.regex import regex

_COUNTS = regex(r"(?i)\bhow many\b|\b(?:count|number) of\b|\bcount (?:the|all|how)\b")
_ADDS = regex(r"(?i)\b(?:total|sum|altogether)\b")
_AVERAGES = regex(r"(?i)\b(?:average|mean)\b")
_GROUPS = regex(r"(?i)\b(?:per|by|for each|for every|grouped by)\s+([^\W_]+)")
_PLAIN_NAME = regex(r"(?a)[A-Za-z_]\w{0,29}")
_PLAIN_VALUE = regex(r"(?a)[A-Za-z][\w .-]{0,29}")
"""Only values like this go into a statement, because they come from the output."""
_MAX_VALUES = 60
_MAX_CONDITIONS = 3


def suggest_sql(index: Index, question: str) -> str:
    """A statement about an output's only table, using names in the question. Empty if that does not count or add up."""
    tables = index.outline.tables
    if len(tables) != 1 or not (_COUNTS.search(question) or _ADDS.search(question) or _AVERAGES.search(question)):
        return ""
    (table,) = tables
    names = read_columns(index, table)
    columns = index.remember(sample_columns, table)
    words = [word for word in split_words(question) if word not in read_lexicon("stop")]
    is_json = isinstance(table.rows, JsonRows)
    plain = [name if _PLAIN_NAME.fullmatch(name) else "" for name in names]
    measured = [_spell_measure(name, cells, is_json=is_json) for name, cells in zip(plain, columns, strict=True)]
    number = find_column([name if spelt else "" for name, spelt in zip(plain, measured, strict=True)], words)
    what = "count(*)"
    if number is not None and not _COUNTS.search(question):
        what = f"{'avg' if _AVERAGES.search(question) else 'sum'}({measured[number]})"
    group = find_column(plain, [found[1].lower()]) if (found := _GROUPS.search(question)) else None
    conditions = _find_conditions(plain, columns, f" {' '.join(split_words(question))} ")[:_MAX_CONDITIONS]
    if what == "count(*)" and not conditions and group is None:
        return "" if not _COUNTS.search(question) else "SELECT count(*) FROM output"
    chosen = f'"{plain[group]}", {what}' if group is not None else what
    where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
    return f"SELECT {chosen} FROM output{where}{' GROUP BY 1' if group is not None else ''}"  # noqa: S608  # of plain names and values


def _spell_measure(name: str, cells: Sequence[str], *, is_json: bool) -> str:
    """The column to add up, or an empty string. A quantity with a unit has its own column next to its text."""
    reading = find_reading(cells, name) if name else None
    if reading is None or reading.meaning in ("boolean", "date", "time"):
        return ""
    is_all = all(map(reading.fits, filter(None, cells)))
    return f'"{name if is_json or (reading.replaces and is_all) else f"{name}_{reading.meaning}"}"'


def _find_conditions(names: Sequence[str], columns: Sequence[Sequence[str]], said: str) -> list[str]:
    """Conditions for columns with few values, if the question contains one of them."""
    found: list[str] = []
    for name, cells in zip(names, columns, strict=True):
        values = {cell for cell in cells if _PLAIN_VALUE.fullmatch(cell)} if name else set[str]()
        if len(values) > min(_MAX_VALUES, len(cells) // 2):
            continue
        if said_values := [value for value in values if f" {' '.join(split_words(value))} " in said]:
            found.append(f"\"{name}\" = '{max(said_values, key=len)}'")
    return found
