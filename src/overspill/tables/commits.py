"""The history that `git log` prints."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise, takewhile
from typing import Any

from overspill.tables.names import make_name
from overspill.tables.table import FoundTable, Row, RowFormat, Text, number_lines

COMMIT = re.compile(rb"(?m)^commit ([0-9a-f]{7,64})(?: \(([^\n]{1,1000})\))?\r?$")
_FIELD = re.compile(r"([A-Z][A-Za-z]{2,30}):\s+(.{1,10000})$")
_PERSON = re.compile(r"(.{0,1000}?)\s*<([^<>]{0,1000})>$")
_DATE = re.compile(r"[A-Z][a-z]{2} ([A-Z][a-z]{2}) +(\d{1,2}) (\d\d:\d\d:\d\d) (\d{4}) ([+-]\d{4})$")
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_COLUMNS = ("commit", "author", "email", "date", "subject", "message", "changes")


def read_commits(text: Text) -> Iterator[tuple[FoundTable, Row]]:
    table, number = FoundTable(RowFormat(_COLUMNS)), number_lines(text)
    for start, end in pairwise((*(found.start() for found in COMMIT.finditer(text)), len(text))):
        heading = COMMIT.match(text, start)
        cells: dict[str, Any] = {"commit": heading[1].decode()} if heading else {}
        if heading and heading[2]:
            cells["refs"] = heading[2].decode("utf-8", "replace")
        lines = bytes(text[start:end]).decode("utf-8", "replace").replace("\0", "").replace("\r\n", "\n").split("\n")
        yield table, Row(number(start), (start, end), cells | _read(lines[1:]))


def _read(lines: list[str]) -> dict[str, Any]:
    row: dict[str, Any] = {}
    fields = [found for found in map(_FIELD.match, takewhile(_FIELD.match, lines)) if found]
    for field in fields:
        row |= _read_field(field[1], field[2].strip())
    message = list(takewhile(lambda line: line.startswith("    ") or not line.strip(), lines[len(fields) :]))
    # What follows are changes, however far they are indented: lines of a patch often are.
    changes = "\n".join(lines[len(fields) + len(message) :]).rstrip()
    text = "\n".join(line[4:] for line in message).strip()
    return row | {"subject": text.split("\n", 1)[0] or None, "message": text or None, "changes": changes or None}


def _read_field(name: str, value: str) -> dict[str, str]:
    if name == "Author" and (person := _PERSON.match(value)):
        return {"author": person[1], "email": person[2]}
    if (date := _DATE.match(value)) and date[1] in _MONTHS:
        value = f"{date[4]}-{_MONTHS.index(date[1]) + 1:02}-{int(date[2]):02} {date[3]}{date[5]}"
    return {make_name(name): value}
