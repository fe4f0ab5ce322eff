"""Logs: when, how bad, from where and what, and the `key=value` fields of each message."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from overspill.tables.table import FoundTable, Omission, Row, RowFormat, Span, Text, number_lines
from overspill.text.lines import iterate_lines

_MAX_FIELDS = 60
"""Different keys that become columns. Fields with others stay in the message."""
_MAX_EVENT_BYTES = 1 << 20
_MAX_HEAD_CHARS = 400
_COLUMNS = ("time", "level", "source", "message")
_TIME = re.compile(
    r"\A[\[(\s]*+(\d{4}[-/]\d\d[-/]\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d{1,9})?(?:\s?(?:Z|UTC|[+-]\d\d:?\d\d))?"
    r"|\d\d/[A-Z][a-z]{2}/\d{4}:\d\d:\d\d:\d\d [+-]\d{4}"
    r"|[A-Z][a-z]{2} {1,2}\d{1,2} \d\d:\d\d:\d\d(?:\.\d{1,6})?"
    r"|\d\d:\d\d:\d\d(?:[.,]\d{1,6})?"
    r"|\d{10}(?:\.\d{1,6}|\d{3})?(?=\s))[\])\s,:-]*"
)
_LEVEL = re.compile(
    r"\A[\[(<\s]*+\b(TRACE|DEBUG|INFO|NOTICE|WARN|WARNING|ERROR|ERR|FATAL|CRITICAL|CRIT|SEVERE|PANIC|ALERT|EMERG)\b[\])>\s:|-]*",
    re.IGNORECASE,
)
_SOURCE = re.compile(r"\A\[?([A-Za-z_][\w.$/-]{1,80}(?:\[\d{1,10}\])?)\]?\s?(?::|- |\| )\s*")
_FIELD = re.compile(r'(?<![\w.])([A-Za-z_][\w.-]{0,60})=("(?:[^"\\]|\\.){0,10000}"|[^\s,;"]{1,10000})')


def read_events(text: Text) -> Iterator[tuple[FoundTable, Row]]:
    table, fields, unstamped, number = FoundTable(RowFormat(_COLUMNS)), dict[str, str](), 0, number_lines(text)
    for start, end in _find_events(text):
        event = bytes(text[start:end]).decode("utf-8", "replace").replace("\0", "").replace("\r\n", "\n")
        cells = _parse(event.lstrip("\ufeff").rstrip("\r\n"), fields)
        unstamped += cells["time"] is None
        table.omissions = (Omission(unstamped, "lines have no time"),) if unstamped else ()
        yield table, Row(number(start), (start, end), cells)


def _find_events(text: Text) -> Iterator[Span]:
    """A line that is indented belongs to the event above it."""
    first = last = 0
    for start, end in iterate_lines(text, 0, len(text)):
        line = bytes(text[start : start + _MAX_HEAD_CHARS])
        if first < last and line[:1] in (b" ", b"\t") and last - first < _MAX_EVENT_BYTES and not _begins_event(line):
            last = end
            continue
        if text[first:last].strip():
            yield first, last
        first, last = start, end
    if text[first:last].strip():
        yield first, last


def _begins_event(line: bytes) -> bool:
    return _TIME.match(line.decode("utf-8", "replace")) is not None


def _parse(event: str, fields: dict[str, str]) -> dict[str, Any]:
    row: dict[str, Any] = dict.fromkeys(_COLUMNS)
    rest = event
    for name, pattern in (("time", _TIME), ("level", _LEVEL), ("source", _SOURCE), ("level", _LEVEL)):
        if row[name] is None and (found := pattern.match(rest[:_MAX_HEAD_CHARS])):
            row[name], rest = found[1], rest[found.end() :]
    row |= {
        "time": row["time"] and row["time"].replace(",", "."),
        "level": row["level"] and row["level"].upper(),
        "message": rest,
    }
    for key, value in _FIELD.findall(rest):
        column = fields.get(key)
        if column is None and len(fields) < _MAX_FIELDS:
            column = fields[key] = _name(key, fields)
        if column is not None and column not in row:
            row[column] = value[1:-1].replace('\\"', '"') if value[:1] == '"' else value
    return row


def _name(key: str, fields: dict[str, str]) -> str:
    taken = {*_COLUMNS, *(column.lower() for column in fields.values())}
    return key if key.lower() not in taken else f"{key}_{len(fields) + 1}"
