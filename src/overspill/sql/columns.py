"""Reads the text in a column as typed values. If rows disagree, the column stays text, with the values in another column."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from msgspec import Struct

from overspill.sql.statements import quote, quote_name
from overspill.tables.table import make_unique
from overspill.tables.types import BYTES, MIN_FITTING_SHARE, NO_VALUE, READINGS, SECONDS, Reading, find_reading, is_value
from overspill.text.humanize import count_noun, quote_line

_SAMPLED_ROWS = 300
_SAMPLED_COLUMNS_AT_A_TIME = 500
"""DuckDB takes 32 KB or more for each column of a query, in each thread."""
_COLUMNS_AT_A_TIME = 20
"""How many columns have their patterns in memory at the same time."""
_MAX_NOTES = 5
_NO_VALUES = ", ".join(map(quote, sorted(NO_VALUE)))
_SPELT_ONE_WAY = ("integer", "date")
"""Kinds of values with only one spelling: writing a value back and comparing is many times faster than a pattern."""
_DIFFERS = "error('A row differs from the first ones.')"
_UNIT = "lower(regexp_extract({}, '([a-zA-Z]+)$', 1))"
_FACTOR = f"CASE {_UNIT} {' '.join(f'WHEN {quote(unit)} THEN {factor!r}' for unit, factor in BYTES.items())} ELSE 1.0 END"
_DURATION = " + ".join(
    f"coalesce(TRY_CAST(regexp_extract({{}}, '([0-9]+([.][0-9]+)?)\\s?{unit}([^a-zµ]|$)', 1) AS DOUBLE), 0) * {seconds!r}"
    for unit, seconds in SECONDS.items()
)
_PLAIN_UTC = "regexp_replace(replace({}, ',', '.'), '(Z| ?UTC|[+]00:?00)$', '')"
_VALUES: dict[str, str] = {
    "integer": "TRY_CAST({} AS BIGINT)",
    "float": "TRY_CAST({} AS DOUBLE)",
    "flag": "TRY_CAST({} AS BOOLEAN)",
    "letter": "TRY_CAST({} AS BOOLEAN)",
    "date": "TRY_CAST({} AS DATE)",
    "day first": "CAST(try_strptime({}, '%d.%m.%Y') AS DATE)",
    "time": f"TRY_CAST({_PLAIN_UTC} AS TIMESTAMP)",
    "offset time": "CAST(TRY_CAST(replace({}, ',', '.') AS TIMESTAMPTZ) AS TIMESTAMP)",
    "access time": "CAST(try_strptime({}, '%d/%b/%Y:%H:%M:%S %z') AS TIMESTAMP)",
    "cores": "TRY_CAST(replace({}, 'm', '') AS DOUBLE) / CASE WHEN {} LIKE '%m' THEN 1000 ELSE 1 END",
    "bytes": f"TRY_CAST(regexp_replace({{}}, '[^0-9.-]', '', 'g') AS DOUBLE) * ({_FACTOR})",
    "duration": f"({_DURATION})",
    "thousands": "TRY_CAST(replace({}, ',', '') AS DOUBLE)",
    "decimal comma": "TRY_CAST(replace(replace({}, '.', ''), ',', '.') AS DOUBLE)",
    "noted": "TRY_CAST(split_part({}, ' ', 1) AS BIGINT)",
    "percent": "TRY_CAST(regexp_replace({}, '[%, ]', '', 'g') AS DOUBLE)",
    "decimal comma percent": "TRY_CAST(replace(regexp_replace({}, '[% ]', '', 'g'), ',', '.') AS DOUBLE)",
    "money": "TRY_CAST(regexp_replace({}, '[$€£¥, ]', '', 'g') AS DOUBLE)",
}
"""The SQL that reads a value, with `{}` for its text."""


class _Chosen(Struct, frozen=True):
    """How to read a column, as the rows confirm. `others` counts the values that cannot be read so."""

    reading: Reading
    is_filled: bool
    """Whether all rows with text have a value."""
    others: int = 0

    @property
    def replaces(self) -> bool:
        return self.reading.replaces and self.is_filled and not self.others

    @property
    def suffix(self) -> str:
        if self.reading.name in ("offset time", "access time"):
            return "utc"
        return "flag" if self.reading.meaning == "boolean" else self.reading.meaning

    def value(self, source: str, *, is_checked: bool) -> str:
        value = _VALUES[self.reading.name].replace("{}", source)
        if not is_checked:
            return f"CASE WHEN {_matches(self.reading, source)} THEN {value} END" if self.others else value
        text = f"nullif({source}, '')" if self.replaces else _value_text(source)
        if self.reading.name in _SPELT_ONE_WAY:
            same = f"CAST({value} AS VARCHAR) = {source} OR CAST({value} AS VARCHAR) = ltrim({source})"  # mostly the first
            return f"CASE WHEN {same} THEN {value} WHEN {text} IS NOT NULL THEN {_DIFFERS} END"
        fits = f"regexp_full_match({source}, {quote(self.reading.pattern)})"
        return f"CASE WHEN {text} IS NULL THEN NULL WHEN {fits} THEN coalesce({value}, {_DIFFERS}) ELSE {_DIFFERS} END"


def read_types(
    connection: Any, table: str, columns: Sequence[tuple[str, str]], *, is_typed: bool, is_checked: bool = False
) -> tuple[list[tuple[str, str]], list[str]]:
    """The columns to select from a table that was read as text, each with its expression and name, and notes on them.

    `columns` has names and SQL types. If `is_typed`, the text itself says which values are numbers, as JSON does. If
    `is_checked`, the table is only a sample, and the expressions raise an error if other rows differ from it."""
    texts = [name for name, kind in columns if kind == "VARCHAR"]
    found = _choose(connection, table, texts) if texts else {}
    names = make_unique(name for name, _ in columns)
    chosen, beside, notes = list[str](), list[tuple[str, str]](), list[str]()
    for (column, _), name in zip(columns, names, strict=True):
        source, typed = quote_name(column), found.get(column)
        if typed and typed.replaces and not (is_typed and typed.reading.meaning == "number"):
            source = typed.value(source, is_checked=is_checked)
        elif typed:
            beside.append((typed.value(source, is_checked=is_checked), f"{name}_{typed.suffix}"))
            if typed.others and len(notes) < _MAX_NOTES:
                text, other = _value_text(source), f"NOT ({_matches(typed.reading, source)})"
                select = f"SELECT {text} FROM {table} WHERE {text} IS NOT NULL AND {other} LIMIT 1"
                such = f"{count_noun(typed.others, 'value')} such as {quote_line(connection.execute(select).fetchone()[0])}"
                notes.append(f"{quote_name(name)} is text because of {such}; {quote_name(beside[-1][1])} has the others.")
        chosen.append(source)
    unique = make_unique([*names, *(name for _, name in beside)])
    selected = list(zip([*chosen, *(value for value, _ in beside)], unique, strict=True))
    return selected, notes


def _choose(connection: Any, table: str, columns: list[str]) -> dict[str, _Chosen]:
    """How to read each column: what the first rows suggest, if the other rows confirm it."""
    sampled = _sample(connection, table, columns)
    suggested = {column: reading for column, values in sampled if (reading := find_reading(values, column))}
    found = _confirm(connection, table, suggested)
    refused = [column for column in suggested if column not in found or found[column].others]
    # Another way must fit all values, so it must fit those of the sample, which takes no query.
    others = {
        column: [each for each in READINGS[READINGS.index(suggested[column]) + 1 :] if all(map(each.fits, values))]
        for column, texts in _sample(connection, table, refused)
        if (values := list(filter(is_value, texts)))
    }
    for reading in (each for each in READINGS if not each.is_cpu):
        fitting = _confirm(connection, table, {column: reading for column, each in others.items() if reading in each})
        for column, each in fitting.items():
            if not each.others:
                found[column] = each
                del others[column]
    return found


def _sample(connection: Any, table: str, columns: list[str]) -> Iterator[tuple[str, list[str]]]:
    for start in range(0, len(columns), _SAMPLED_COLUMNS_AT_A_TIME):
        part = columns[start : start + _SAMPLED_COLUMNS_AT_A_TIME]
        rows = connection.execute(f"SELECT {', '.join(map(quote_name, part))} FROM {table} LIMIT {_SAMPLED_ROWS}").fetchall()
        for column, values in zip(part, zip(*rows, strict=True), strict=False):
            yield column, [value for value in values if value]


def _value_text(source: str) -> str:
    """The text of a value, or NULL if it is missing."""
    return f"CASE WHEN lower({source}) NOT IN ({_NO_VALUES}) THEN {source} END"


def _matches(reading: Reading, source: str) -> str:
    return f"regexp_full_match({source}, {quote(reading.pattern)}) AND {_VALUES[reading.name].replace('{}', source)} IS NOT NULL"


def _confirm(connection: Any, table: str, readings: Mapping[str, Reading]) -> dict[str, _Chosen]:
    pairs, found = list(readings.items()), dict[str, _Chosen]()
    for start in range(0, len(pairs), _COLUMNS_AT_A_TIME):
        part, counted = pairs[start : start + _COLUMNS_AT_A_TIME], list[str]()
        for source, fits in ((quote_name(column), _matches(reading, quote_name(column))) for column, reading in part):
            counted += (f"count(nullif({source}, ''))", f"count({_value_text(source)})", f"count_if({fits})")
        counts = iter(connection.execute(f"SELECT {', '.join(counted)} FROM {table}").fetchone())
        for (column, reading), filled, values, fitting in zip(part, counts, counts, counts, strict=True):
            if values > 0 and fitting >= MIN_FITTING_SHARE * values:
                found[column] = _Chosen(reading, filled == values, values - fitting)
    return found
