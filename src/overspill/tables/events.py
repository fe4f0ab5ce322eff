"""Logs: the time, level, source and message of each event, and its `key=value` fields. Also the history of `git log`."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise, takewhile
from typing import Any

from overspill.tables.table import FoundTable, Omission, Row, RowFormat, Span, Text, make_name, number_lines
from overspill.text.lines import iterate_lines
from overspill.text.regex import regex

_MAX_FIELDS = 60
"""How many keys become columns. Fields with other keys stay in the message."""
_MAX_EVENT_BYTES = 1 << 20
_MAX_HEAD_CHARS = 400
_COLUMNS = ("time", "level", "source", "message")
_TIME = regex(
    r"\A[\[(\s]*+(\d{4}[-/]\d\d[-/]\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d{1,9})?(?:\s?(?:Z|UTC|[+-]\d\d:?\d\d))?"
    r"|\d\d/[A-Z][a-z]{2}/\d{4}:\d\d:\d\d:\d\d [+-]\d{4}"
    r"|[A-Z][a-z]{2} {1,2}\d{1,2} \d\d:\d\d:\d\d(?:\.\d{1,6})?"
    r"|\d\d:\d\d:\d\d(?:[.,]\d{1,6})?"
    r"|\d{10}(?:\.\d{1,6}|\d{3})?(?=\s))[\])\s,:-]*"
)
_FRAME = regex(rb"\s+\S|\xe2\x94\x82|Caused by:|Traceback |During handling of|The above exception")
_EVENT_STAMP = regex(rb"\W{0,3}\d{2,4}[-/.:]\d{1,2}[-/.:]\d{1,4}|[A-Z][a-z]{2}\s+\d{1,2} \d\d:|\[\s*\d+\.\d+\]")
_LEVEL = regex(
    r"(?i)\A[\[(<\s]*+\b(TRACE|DEBUG|INFO|NOTICE|WARN|WARNING|ERROR|ERR|FATAL|CRITICAL|CRIT|SEVERE|PANIC|ALERT|EMERG)\b[\])>\s:|-]*",
)
_SOURCE = regex(r"\A\[?([A-Za-z_][\w.$/-]{1,80}(?:\[\d{1,10}\])?)\]?\s?(?::|- |\| )\s*")
COMMIT = regex(rb"(?m)^commit ([0-9a-f]{7,64})(?: \(([^\n]{1,1000})\))?\r?$")
_COMMIT_FIELD = regex(r"([A-Z][A-Za-z]{2,30}):\s+(.{1,10000})$")
_PERSON = regex(r"(.{0,1000}?)\s*<([^<>]{0,1000})>$")
_DATE = regex(r"[A-Z][a-z]{2} ([A-Z][a-z]{2}) +(\d{1,2}) (\d\d:\d\d:\d\d) (\d{4}) ([+-]\d{4})$")
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_COMMIT_COLUMNS = ("commit", "author", "email", "date", "subject", "message", "changes")
_FIELD = regex(r'(?<![\w.])([A-Za-z_][\w.-]{0,60})=("(?:[^"\\]|\\.){0,10000}"|[^\s,;"]{1,10000})')


def continues_event(line: bytes | bytearray) -> bool:
    """Whether a line belongs to the event above it: it is indented, or in a stack trace."""
    return _FRAME.match(line) is not None and not _EVENT_STAMP.match(line.lstrip())


def read_events(text: Text) -> Iterator[tuple[FoundTable, Row]]:
    table, fields, unstamped, number = FoundTable(RowFormat(_COLUMNS)), dict[str, str](), 0, number_lines(text)
    for start, end in _find_events(text):
        event = bytes(text[start:end]).decode("utf-8", "replace").replace("\0", "").replace("\r\n", "\n")
        cells = _parse(event.lstrip("\ufeff").rstrip("\r\n"), fields)
        unstamped += cells["time"] is None
        table.omissions = (Omission(unstamped, "without a time", "line"),) if unstamped else ()
        yield table, Row(number(start), (start, end), cells)


def _find_events(text: Text) -> Iterator[Span]:
    """The spans of events, each with the lines that continue it."""
    first = last = 0
    for start, end in iterate_lines(text, 0, len(text)):
        is_near = first < last and last - first < _MAX_EVENT_BYTES
        if is_near and continues_event(bytes(text[start : min(end, start + _MAX_HEAD_CHARS)])):
            last = end
            continue
        if text[first:last].strip():
            yield first, last
        first, last = start, end
    if text[first:last].strip():
        yield first, last


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
            taken = {*_COLUMNS, *(column.lower() for column in fields.values())}
            column = fields[key] = key if key.lower() not in taken else f"{key}_{len(fields) + 1}"
        if column is not None and column not in row:
            row[column] = value[1:-1].replace('\\"', '"') if value[:1] == '"' else value
    return row


def read_commits(text: Text) -> Iterator[tuple[FoundTable, Row]]:
    table, number = FoundTable(RowFormat(_COMMIT_COLUMNS)), number_lines(text)
    for start, end in pairwise((*(found.start() for found in COMMIT.finditer(text)), len(text))):
        heading = COMMIT.match(text, start)
        cells: dict[str, Any] = {"commit": heading[1].decode()} if heading else {}
        if heading and heading[2]:
            cells["refs"] = heading[2].decode("utf-8", "replace")
        lines = bytes(text[start:end]).decode("utf-8", "replace").replace("\0", "").replace("\r\n", "\n").split("\n")
        yield table, Row(number(start), (start, end), cells | _read_commit(lines[1:]))


def _read_commit(lines: list[str]) -> dict[str, Any]:
    row: dict[str, Any] = {}
    fields = [found for found in map(_COMMIT_FIELD.match, takewhile(_COMMIT_FIELD.match, lines)) if found]
    for field in fields:
        name, value = make_name(field[1]), field[2].strip()
        if name == "author" and (person := _PERSON.match(value)):
            row |= {"author": person[1], "email": person[2]}
            continue
        if (date := _DATE.match(value)) and date[1] in _MONTHS:
            value = f"{date[4]}-{_MONTHS.index(date[1]) + 1:02}-{int(date[2]):02} {date[3]}{date[5]}"
        row[name] = value
    message = list(takewhile(lambda line: line.startswith("    ") or not line.strip(), lines[len(fields) :]))
    # All further lines are changes, even if indented, as lines of a patch often are.
    changes = "\n".join(lines[len(fields) + len(message) :]).rstrip()
    text = "\n".join(line[4:] for line in message).strip()
    return row | {"subject": text.split("\n", 1)[0] or None, "message": text or None, "changes": changes or None}
