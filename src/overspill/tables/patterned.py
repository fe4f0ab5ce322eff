"""Lines of one shape without a header: `ls -l`, access logs of web servers, `mount`."""

from __future__ import annotations

import re
from collections.abc import Sequence

from overspill.tables.table import RowFormat

_MIN_SHARE = 0.8
_LIMITS = re.compile(r"total \d|\S.{0,1000}:$")
"""What `ls` writes above its rows."""
_MODE = r"\A([-dlbcpsD][-rwxsStT]{9}[.+@]?) +(\d+) +(\S+) +(\S+) +(\d[\d.]*[A-Za-z]{0,3}|\d+, +\d+) +"
_MODE_NAMES = ("mode", "links", "owner", "group", "size")
_CLIENT = r"\A(\S++) - (\S++) \[([^]]{1,99})\] "
_QUOTED = r'"((?:[^"\\]++|\\.)*+)"'
_REQUEST = (
    r'"(?:([A-Z][A-Z-]{0,30}) ((?:[^\s"\\]++|\\.| (?!HTTP/))++)(?: (HTTP/[\d.]{1,5}))?|((?:[^"\\]++|\\.)*+))" (\d{3}|-) (\d+|-)'
)
_REQUEST_NAMES = ("remote", "user", "time", "method", "path", "protocol", "status", "bytes")
_SHAPES: dict[str, tuple[tuple[str, ...], re.Pattern[str]]] = {
    "listing": (
        (*_MODE_NAMES, "month", "day", "time", "name"),
        re.compile(_MODE + r"([A-Z][a-z]{2}) +(\d{1,2}) +(\d\d:\d\d|\d{4}) (.+)"),
    ),
    "long listing": ((*_MODE_NAMES, "date", "time", "name"), re.compile(_MODE + r"(\d{4}-\d\d-\d\d) (\d\d:\d\d) (.+)")),
    "full listing": (
        (*_MODE_NAMES, "date", "time", "zone", "name"),
        re.compile(_MODE + r"(\d{4}-\d\d-\d\d) (\d\d:\d\d:\d\d\.\d{1,9}) ([+-]\d{4}) (.+)"),
    ),
    "short listing": (
        (*_MODE_NAMES, "time", "name"),
        re.compile(_MODE + r"(\d\d-\d\d \d\d:\d\d|\d{4}-\d\d-\d\d|\d{9,10}) +(.+)"),
    ),
    "combined access": ((*_REQUEST_NAMES, "referer", "agent"), re.compile(f"{_CLIENT}{_REQUEST} {_QUOTED} {_QUOTED}")),
    "access": (_REQUEST_NAMES, re.compile(_CLIENT + _REQUEST)),
    "longer access": ((*_REQUEST_NAMES, "referer", "agent", "more"), re.compile(f"{_CLIENT}{_REQUEST} {_QUOTED} {_QUOTED} (.+)")),
    "mounts": (("source", "target", "fstype", "options"), re.compile(r"\A(\S++) on (/.*) type (\S+) \((\S+)\)")),
}


class Patterned(RowFormat, frozen=True):
    shape: str = ""

    @property
    def is_log(self) -> bool:
        return "access" in self.shape

    def split(self, row: str) -> list[str]:
        found = _SHAPES[self.shape][1].fullmatch(row.rstrip())
        if found is None:
            return []
        cells = [cell or "" for cell in found.groups()]
        if self.is_log:
            # A line that is not an HTTP request stays whole, in the column of the path.
            cells[4:7] = [cells[4] or cells[6], cells[5]]
        return cells


def find_patterned(lines: Sequence[str]) -> Patterned | None:
    """The shape of most of these lines."""
    rows = [line for line in lines if line.strip() and not _LIMITS.match(line)]
    for shape, (names, pattern) in _SHAPES.items():
        if any(pattern.fullmatch(row.rstrip()) for row in rows[:3]):
            matching = sum(pattern.fullmatch(row.rstrip()) is not None for row in rows)
            if matching >= _MIN_SHARE * len(rows):
                return Patterned(names, shape)
    return None
