"""Logs: when, how bad, from where and what, and the `key=value` fields of each message."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from overspill.lexical.kinds.log import begins_with_stamp
from overspill.sql.tables.table import Found, RowWriter

_MAX_FIELDS = 60
"""Different keys that become columns. Fields with others stay in the message."""
_MAX_EVENT_CHARS = 1 << 20
_MAX_HEAD_CHARS = 400
_COLUMNS = ("time", "level", "source", "message")
_TIME = re.compile(
    r"[\[(\s]*(\d{4}[-/]\d\d[-/]\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d{1,9})?(?:\s?(?:Z|UTC|[+-]\d\d:?\d\d))?"
    r"|\d\d/[A-Z][a-z]{2}/\d{4}:\d\d:\d\d:\d\d [+-]\d{4}"
    r"|[A-Z][a-z]{2} {1,2}\d{1,2} \d\d:\d\d:\d\d(?:\.\d{1,6})?"
    r"|\d\d:\d\d:\d\d(?:[.,]\d{1,6})?"
    r"|\d{10}(?:\.\d{1,6}|\d{3})?(?=\s))[\])\s,:-]*"
)
_LEVEL = re.compile(
    r"[\[(<\s]*\b(TRACE|DEBUG|INFO|NOTICE|WARN|WARNING|ERROR|ERR|FATAL|CRITICAL|CRIT|SEVERE|PANIC|ALERT|EMERG)\b[\])>\s:|-]*",
    re.IGNORECASE,
)
_SOURCE = re.compile(r"\[?([A-Za-z_][\w.$/-]{1,80}(?:\[\d{1,10}\])?)\]?\s?(?::|- |\| )\s*")
_FIELD = re.compile(r'(?<![\w.])([A-Za-z_][\w.-]{0,60})=("(?:[^"\\]|\\.){0,10000}"|[^\s,;"]{1,10000})')


def find_log(lines: Iterator[str], target: Path) -> list[Found]:
    writer = RowWriter(target, _COLUMNS)
    fields: dict[str, str] = {}
    unstamped = 0
    for number, event in split_events(lines):
        row = _parse(event, fields)
        unstamped += row["time"] is None
        writer.write(number, row)
    note = f"{unstamped:,} lines have no time." if unstamped else ""
    return [writer.finish(note=note)]


def split_events(lines: Iterator[str]) -> Iterator[tuple[int, str]]:
    """A line that is indented belongs to the event above it."""
    first, event = 0, ""
    for number, line in enumerate(lines, 1):
        if event and line[:1] in (" ", "\t") and not begins_with_stamp(line.lstrip()) and len(event) < _MAX_EVENT_CHARS:
            event += "\n" + line
            continue
        if event.strip():
            yield first, event
        first, event = number, line
    if event.strip():
        yield first, event


def _parse(event: str, fields: dict[str, str]) -> dict[str, str | None]:
    rest, time, level, source = event, None, None, None
    if found := _TIME.match(rest[:_MAX_HEAD_CHARS]):
        time, rest = found[1].replace(",", "."), rest[found.end() :]
    if found := _LEVEL.match(rest[:_MAX_HEAD_CHARS]):
        level, rest = found[1].upper(), rest[found.end() :]
    if found := _SOURCE.match(rest[:_MAX_HEAD_CHARS]):
        source, rest = found[1], rest[found.end() :]
    if level is None and (found := _LEVEL.match(rest[:_MAX_HEAD_CHARS])):
        level, rest = found[1].upper(), rest[found.end() :]
    row: dict[str, str | None] = {"time": time, "level": level, "source": source, "message": rest}
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
