"""The history that `git log` prints."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import takewhile
from pathlib import Path

from overspill.sql.tables.table import Found, RowWriter
from overspill.tables.names import make_name

_COMMIT = re.compile(r"commit ([0-9a-f]{7,64})(?: \((.{1,1000})\))?$")
_FIELD = re.compile(r"([A-Z][A-Za-z]{2,30}):\s+(.{1,10000})$")
_PERSON = re.compile(r"(.{0,1000}?)\s*<([^<>]{0,1000})>$")
_DATE = re.compile(r"[A-Z][a-z]{2} ([A-Z][a-z]{2}) +(\d{1,2}) (\d\d:\d\d:\d\d) (\d{4}) ([+-]\d{4})$")
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_COLUMNS = ("commit", "author", "email", "date", "subject", "message", "changes")


def find_commits(lines: Iterator[str], target: Path) -> list[Found]:
    """Nothing if it is another kind of history."""
    writer = RowWriter(target, _COLUMNS)
    for number, commit in split_commits(lines):
        writer.write(number, _read(commit))
    return [writer.finish()] if writer.rows else []


def split_commits(lines: Iterator[str]) -> Iterator[tuple[int, list[str]]]:
    first, commit = 0, list[str]()
    for number, line in enumerate(lines, 1):
        if _COMMIT.match(line):
            if commit:
                yield first, commit
            first, commit = number, [line]
        elif commit:
            commit.append(line)
    if commit:
        yield first, commit


def _read(commit: list[str]) -> dict[str, str | None]:
    heading = _COMMIT.match(commit[0])
    row: dict[str, str | None] = {"commit": heading[1] if heading else None}
    if heading and heading[2]:
        row["refs"] = heading[2]
    body = len(commit)
    for place, line in enumerate(commit[1:], 1):
        if not (field := _FIELD.match(line)):
            body = place
            break
        row |= _read_field(field[1], field[2].strip())
    message = list(takewhile(lambda line: line.startswith("    ") or not line.strip(), commit[body:]))
    # What follows are changes, however far they are indented: lines of a patch often are.
    changes = "\n".join(commit[body + len(message) :]).rstrip()
    text = "\n".join(line[4:] for line in message).strip()
    return row | {"subject": text.split("\n", 1)[0] or None, "message": text or None, "changes": changes or None}


def _read_field(name: str, value: str) -> dict[str, str | None]:
    if person := _PERSON.match(value):
        if name == "Author":
            return {"author": person[1], "email": person[2]}
        return {make_name(name): value}
    if (date := _DATE.match(value)) and date[1] in _MONTHS:
        month = _MONTHS.index(date[1]) + 1
        return {make_name(name): f"{date[4]}-{month:02}-{int(date[2]):02} {date[3]}{date[5]}"}
    return {make_name(name): value}
