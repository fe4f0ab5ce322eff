"""What the text in a column means: numbers, times, or quantities with units. All rows must agree, or the column stays text."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

from msgspec import Struct

from overspill.sql.tables.table import quote, quote_name
from overspill.tables.names import make_unique
from overspill.text.patterns import Pattern, compile_pattern

_SAMPLED_ROWS = 300
_COLUMNS_AT_A_TIME = 100
_NO_VALUE = frozenset(("", "-", "--", "<none>", "<unknown>", "<nil>", "n/a", "na", "none", "null", "nan", "unknown", "?"))
"""What programs print where there is no value. Such a column stays text, and its parsed column has NULL there."""


class Reading(Struct, frozen=True):
    """A way to read text: `pattern` says whether all of it can be read, `value` is the SQL that reads it, with `{}` for it."""

    pattern: str
    value: str
    suffix: str
    """For the name of the column beside the text, where the text has to stay."""
    replaces: bool = False
    """Whether a column of it needs no text beside it, because nothing is lost."""

    def suits(self, texts: set[str]) -> bool:
        values = [text for text in texts if self.replaces or text.lower() not in _NO_VALUE]
        matches = _compile(self.pattern).search
        return bool(values) and all(matches(value.encode("utf-8", "replace")) for value in values)


_BYTES = "(?i)0|-?[0-9]+([.][0-9]+)?\\s?([kmgtpe]i?b?|bytes?|b)"
_DURATION = "([0-9]+([.][0-9]+)?\\s?(d|h|m|s|ms|us|µs|ns|w|y)\\s?)+"
_ISO = "[0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9]{2}:[0-9]{2}(:[0-9]{2}([.,][0-9]{1,9})?)?"

_UNIT_FACTOR = (
    "CASE lower(regexp_extract({}, '([a-zA-Z]+)$', 1)) "
    + " ".join(
        f"WHEN '{letter}{ending}' THEN {float(base**power)!r}"
        for power, letter in enumerate("kmgtpe", 1)
        for ending, base in (("", 1000), ("b", 1000), ("i", 1024), ("ib", 1024))
    )
    + " ELSE 1.0 END"
)
_UNITS = {
    "y": 31536000.0,
    "w": 604800.0,
    "d": 86400.0,
    "h": 3600.0,
    "m": 60.0,
    "s": 1.0,
    "ms": 1e-3,
    "(us|µs)": 1e-6,
    "ns": 1e-9,
}
_FLOAT = "-?(0|[1-9][0-9]*)?[.][0-9]{1,14}|-?(0|[1-9][0-9]*)([.][0-9]{1,14})?[eE][-+]?[0-9]{1,2}|-?(0|[1-9][0-9]{0,14})"
_UTC = "(Z| ?UTC|[+]00:?00)"
_OFFSET = "(Z| ?UTC|\\s?[+-][0-9]{2}(:?[0-9]{2})?)"
_APACHE = "[0-9]{2}/[A-Z][a-z]{2}/[0-9]{4}:[0-9]{2}:[0-9]{2}:[0-9]{2} [+-][0-9]{4}"
_SECONDS = " + ".join(
    f"coalesce(TRY_CAST(regexp_extract({{}}, '([0-9]+([.][0-9]+)?)\\s?{unit}([^a-zµ]|$)', 1) AS DOUBLE), 0) * {seconds!r}"
    for unit, seconds in _UNITS.items()
)

READINGS: tuple[Reading, ...] = (
    Reading("-?(0|[1-9][0-9]{0,17})", "TRY_CAST({} AS BIGINT)", "number", replaces=True),
    Reading(_FLOAT, "TRY_CAST({} AS DOUBLE)", "number", replaces=True),
    Reading("(?i)true|false", "TRY_CAST({} AS BOOLEAN)", "flag", replaces=True),
    Reading("[0-9]{4}-[0-9]{2}-[0-9]{2}", "TRY_CAST({} AS DATE)", "date", replaces=True),
    Reading(
        f"{_ISO}{_UTC}?", f"TRY_CAST(regexp_replace(replace({{}}, ',', '.'), '{_UTC}$', '') AS TIMESTAMP)", "time", replaces=True
    ),
    Reading(f"{_ISO}{_OFFSET}?", "CAST(TRY_CAST(replace({}, ',', '.') AS TIMESTAMPTZ) AS TIMESTAMP)", "utc"),
    Reading(_APACHE, "CAST(try_strptime({}, '%d/%b/%Y:%H:%M:%S %z') AS TIMESTAMP)", "utc"),
    Reading(_BYTES, f"TRY_CAST(regexp_replace({{}}, '[^0-9.-]', '', 'g') AS DOUBLE) * ({_UNIT_FACTOR})", "bytes"),
    Reading(_DURATION, f"({_SECONDS})", "seconds"),
    Reading(
        "[-+]?[1-9][0-9]{0,2}(,[0-9]{3}){1,4}([.][0-9]+)?|[-+]?(0|[1-9][0-9]{0,14})([.][0-9]+)?",
        "TRY_CAST(replace({}, ',', '') AS DOUBLE)",
        "number",
    ),
    Reading("[-+]?[0-9.,]+\\s?%", "TRY_CAST(regexp_replace({}, '[%, ]', '', 'g') AS DOUBLE)", "percent"),
    Reading("-?[$€£¥]\\s?-?[0-9][0-9,]*([.][0-9]+)?", "TRY_CAST(regexp_replace({}, '[$€£¥, ]', '', 'g') AS DOUBLE)", "number"),
)
"""The first that reads all of a column is taken."""


_NO_VALUES = ", ".join(map(quote, sorted(_NO_VALUE)))


def write_expressions(
    connection: Any, table: str, columns: Sequence[tuple[str, str]], *, is_typed: bool, is_checked: bool = False
) -> list[tuple[str, str]]:
    """The columns to select from a table that was read as text: expression and name. `columns` has names and SQL types. If
    `is_checked`, the table is a sample of one, and the expressions raise an error if other rows are not like it."""
    texts = [name for name, kind in columns if kind == "VARCHAR"]
    readings: dict[str, Reading] = {}
    for start in range(0, len(texts), _COLUMNS_AT_A_TIME):
        readings |= _choose(connection, table, texts[start : start + _COLUMNS_AT_A_TIME])
    names = dict(zip((name for name, _ in columns), make_unique(name for name, _ in columns), strict=True))
    chosen: list[tuple[str, str]] = []
    beside: list[tuple[str, str]] = []
    for column, kind in columns:
        source, reading = quote_name(column), readings.get(column)
        if kind == "JSON":
            chosen.append((f"json_extract_string({source}, '$')", names[column]))
        elif kind == "TIMESTAMP WITH TIME ZONE":
            chosen.append((f"CAST({source} AS TIMESTAMP)", names[column]))
        elif reading is None:
            chosen.append((source, names[column]))
        elif reading.replaces and not (is_typed and reading.suffix == "number"):
            chosen.append((_write_value(source, reading, is_checked=is_checked), names[column]))
        else:
            chosen.append((source, names[column]))
            beside.append((_write_value(source, reading, is_checked=is_checked), f"{names[column]}_{reading.suffix}"))
    unique = make_unique([name for _, name in chosen] + [name for _, name in beside])
    return [(expression, name) for (expression, _), name in zip([*chosen, *beside], unique, strict=True)]


def _choose(connection: Any, table: str, columns: list[str]) -> dict[str, Reading]:
    """What the first rows suggest, if all rows confirm it."""
    selected = ", ".join(map(quote_name, columns))
    rows = connection.execute(f"SELECT {selected} FROM {table} LIMIT {_SAMPLED_ROWS}").fetchall()
    suggested: dict[str, Reading] = {}
    for column, values in zip(columns, zip(*rows, strict=True), strict=False):
        texts = {value for value in values if value}
        if reading := next((reading for reading in READINGS if reading.suits(texts)), None):
            suggested[column] = reading
    confirmed = _fit(connection, table, list(suggested.items()))
    for column, refused in suggested.items():
        if column not in confirmed:
            others = READINGS[READINGS.index(refused) + 1 :]
            fitting = (_fit(connection, table, [(column, reading)]) for reading in others)
            confirmed |= next(filter(None, fitting), dict[str, Reading]())
    return confirmed


@cache
def _compile(pattern: str) -> Pattern:
    return compile_pattern(rf"\A(?:{pattern})\z".encode(), utf8=True)


def _fit(connection: Any, table: str, pairs: list[tuple[str, Reading]]) -> dict[str, Reading]:
    if not pairs:
        return {}
    tests: list[str] = []
    for column, reading in pairs:
        source = quote_name(column)
        text = _write_text(source, reading)
        fits = f"regexp_full_match({text}, {quote(reading.pattern)}) AND {reading.value.replace('{}', source)} IS NOT NULL"
        tests.append(f"count({text}) > 0 AND count({text}) = count_if({fits})")
    found = connection.execute(f"SELECT {', '.join(tests)} FROM {table}").fetchone()
    return {column: reading for (column, reading), fits in zip(pairs, found, strict=True) if fits}


def _write_text(source: str, reading: Reading) -> str:
    """What has to be read of a cell; NULL if nothing."""
    return f"nullif({source}, '')" if reading.replaces else f"CASE WHEN lower({source}) NOT IN ({_NO_VALUES}) THEN {source} END"


def _write_value(source: str, reading: Reading, *, is_checked: bool) -> str:
    value = reading.value.replace("{}", source)
    if not is_checked:
        return value
    text, differs = _write_text(source, reading), "error('A row differs from the first ones.')"
    fits = f"regexp_full_match({source}, {quote(reading.pattern)})"
    return f"CASE WHEN {text} IS NULL THEN NULL WHEN {fits} THEN coalesce({value}, {differs}) ELSE {differs} END"
