"""Finds the tables in lines of text: aligned columns, rows with bars, and lines of one shape."""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import islice

from msgspec import Struct, field
from msgspec.structs import replace

from overspill.tables.aligned import Aligned, find_aligned, is_data, is_underline
from overspill.tables.bars import DRAWN, MAY_BEGIN_BARRED, Barred, read_barred
from overspill.tables.table import FoundTable, Omission, RowFormat, Text, make_unique
from overspill.text.lines import is_blank, iterate_lines, read_line
from overspill.text.regex import Pattern, regex

_SAMPLED_ROWS = 300
_MAX_ABOVE = 8
"""How many lines may precede a header with a rule below it."""
_MAX_TITLES = 2
"""How many lines may precede a header without a rule."""
_MAX_TITLE_CHARS = 120
_APART = regex(r"\S(?: {2,}|\t+)(?=\S)")
_NUMBERED = regex(r"(?<!\S)[-+]?\d")
FOOTER = regex(rb"\s*+\(?\d[\d,]{0,20} rows?\b[^\n]{0,60}\s*+$")
_DOTS = regex(rb"\.\.+(?: ++\.\.+)++$")
"""What pandas prints in place of hidden rows."""
_ALL_ROWS = regex(rb"\s*+\[(\d{1,12}) rows x \d{1,9} columns\]")
_HEAD_BYTES = 64
_MAX_REMEMBERED_BYTES = 8_000
_MIN_PATTERNED_SHARE = 0.8
_LIMITS = regex(r"total \d|\S.{0,1000}:$")
"""What `ls` prints above its rows."""
_MODE = r"\A([-dlbcpsD][-rwxsStT]{9}[.+@]?) +(\d+) +(\S+) +(\S+) +(\d[\d.]*[A-Za-z]{0,3}|\d+, +\d+) +"
_MODE_NAMES = ("mode", "links", "owner", "group", "size")
_CLIENT = r"\A(\S++) - (\S++) \[([^]]{1,99})\] "
_QUOTED = r'"((?:[^"\\]++|\\.)*+)"'
_REQUEST = (
    r'"(?:([A-Z][A-Z-]{0,30}) ((?:[^\s"\\]++|\\.| (?!HTTP/))++)(?: (HTTP/[\d.]{1,5}))?|((?:[^"\\]++|\\.)*+))" (\d{3}|-) (\d+|-)'
)
_REQUEST_NAMES = ("remote", "user", "time", "method", "path", "protocol", "status", "bytes")
_SHAPES: dict[str, tuple[tuple[str, ...], Pattern[str]]] = {
    "listing": (
        (*_MODE_NAMES, "month", "day", "time", "name"),
        regex(_MODE + r"([A-Z][a-z]{2}) +(\d{1,2}) +(\d\d:\d\d|\d{4}) (.+)"),
    ),
    "long listing": ((*_MODE_NAMES, "date", "time", "name"), regex(_MODE + r"(\d{4}-\d\d-\d\d) (\d\d:\d\d) (.+)")),
    "full listing": (
        (*_MODE_NAMES, "date", "time", "zone", "name"),
        regex(_MODE + r"(\d{4}-\d\d-\d\d) (\d\d:\d\d:\d\d\.\d{1,9}) ([+-]\d{4}) (.+)"),
    ),
    "short listing": (
        (*_MODE_NAMES, "time", "name"),
        regex(_MODE + r"(\d\d-\d\d \d\d:\d\d|\d{4}-\d\d-\d\d|\d{9,10}) +(.+)"),
    ),
    "combined access": ((*_REQUEST_NAMES, "referer", "agent"), regex(f"{_CLIENT}{_REQUEST} {_QUOTED} {_QUOTED}")),
    "access": (_REQUEST_NAMES, regex(_CLIENT + _REQUEST)),
    "longer access": ((*_REQUEST_NAMES, "referer", "agent", "more"), regex(f"{_CLIENT}{_REQUEST} {_QUOTED} {_QUOTED} (.+)")),
    "mounts": (("source", "target", "fstype", "options"), regex(r"\A(\S++) on (/.*) type (\S+) \((\S+)\)")),
}
_MAX_TABLES_IN_BLOCK = 20
"""A limit, because finding each table reads samples from all following lines of the block."""


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
            # A line that is not an HTTP request stays whole, in the path column.
            cells[4:7] = [cells[4] or cells[6], cells[5]]
        return cells


def find_patterned(lines: Sequence[str]) -> Patterned | None:
    """The shape of most of these lines."""
    candidates = (line for line in lines if line.strip() and not _LIMITS.match(line))
    rows = list(islice(candidates, 3))
    for shape, (names, pattern) in _SHAPES.items():
        if any(pattern.fullmatch(row.rstrip()) for row in rows[:3]):
            rows += candidates
            matching = sum(pattern.fullmatch(row.rstrip()) is not None for row in rows)
            if matching >= _MIN_PATTERNED_SHARE * len(rows):
                return Patterned(names, shape)
    return None


class _Block(Struct):
    """Consecutive lines without a blank line between them."""

    text: Text
    starts: array[int] = field(default_factory=lambda: array("q"))
    ends: array[int] = field(default_factory=lambda: array("q"))

    def __len__(self) -> int:
        return len(self.starts)

    def add(self, start: int, end: int) -> None:
        self.starts.append(start)
        self.ends.append(end)

    def read(self, number: int) -> str:
        return read_line(self.text, self.starts[number], self.ends[number]).lstrip("\ufeff").rstrip("\r\n")

    def sample(self, first: int) -> list[str]:
        """Some lines: the first ones, and others from all that follow."""
        step = max(1, (len(self) - first) // _SAMPLED_ROWS)
        numbers = dict.fromkeys((*range(first, len(self))[: _SAMPLED_ROWS // 2], *range(first, len(self), step)))
        return [self.read(number) for number in sorted(numbers)]


def find_tables(text: Text, start: int, end: int) -> Iterable[FoundTable]:
    """The tables in the order of the text. Skips the lines between them."""
    if isinstance(text, bytes) and start == 0 and end == len(text) <= _MAX_REMEMBERED_BYTES:
        return _remember_tables(text)
    return _find_tables(text, start, end)


@lru_cache(maxsize=2)
def _remember_tables(text: bytes) -> tuple[FoundTable, ...]:
    """Remembers the tables of the last short texts: what recognises one then reads it."""
    return tuple(_find_tables(text, 0, len(text)))


def _find_tables(text: Text, start: int, end: int) -> Iterator[FoundTable]:
    block, heading, reached = _Block(text), "", start
    above = ""
    for line_start, line_end in iterate_lines(text, start, end):
        if line_start < reached:
            continue
        line = bytes(text[line_start:line_end])
        if is_blank(line):
            yield from (tables := list(_read_block(block, heading or above)))
            above = "" if tables or len(block) != 1 else _read_title(block.read(0))
            block = _Block(text) if block else block
        elif MAY_BEGIN_BARRED.search(line) and (barred := read_barred(text, line_start, end)):
            yield from _read_block(block, heading)
            found, reached = barred
            found.title = heading or (_read_title(block.read(0)) if len(block) == 1 else above)
            block, above = _Block(text), ""
            if found:
                yield found
        else:
            if line.startswith(b"#"):
                heading = _read_title(read_line(text, line_start, line_end))
            block.add(line_start, line_end)
    yield from _read_block(block, heading or above)


def is_sure(text: Text, table: FoundTable) -> bool:
    """Whether a table cannot be mere text, because of a rule, capitals in its header, bars or a known shape."""
    if table.header is None or isinstance(table.format, Barred):
        return isinstance(table.format, Barred | Patterned)
    below = read_line(text, table.header[1], table.starts[0]).strip("\r\n")
    return is_underline(below) or read_line(text, *table.header).isupper()


def _read_title(line: str) -> str:
    return "" if FOOTER.match(line.encode()) else line.strip("#=*-: \t\r\n")[:_MAX_TITLE_CHARS]


def _read_block(block: _Block, title: str) -> Iterator[FoundTable]:
    first = 0
    for _ in range(_MAX_TABLES_IN_BLOCK):
        if first < len(block):
            found, first = _read_table(block, first, title)
            if found:
                yield found


def _read_table(block: _Block, first: int, title: str) -> tuple[FoundTable | None, int]:
    """The table that begins at a line of a block, and the line at which another may begin."""
    lines = block.sample(first)
    if rows := find_patterned(lines):
        begin = next((number for number in range(first, len(block)) if rows.split(block.read(number))), len(block))
        return _make(block, rows, first, begin, begin, title, len(block)), len(block)
    number, rule, rows = _find_header(lines)
    if rows is None:
        return None, len(block)
    begin = first + number + 1 + bool(rule)
    if not rule and is_data(rows.split(lines[number]), map(rows.split, lines[number + 1 :])):
        rows, begin = replace(rows, names=tuple(make_unique([""] * len(rows.names)))), first + number
        return _make(block, rows, begin, begin, begin, title, len(block)), len(block)
    stop = _find_next_header(block, lines[number], begin)
    end = stop - 1 if stop < len(block) and stop > begin and _is_title(block.read(stop - 1)) else stop
    return _make(block, rows, first, first + number, begin, title, end), end


def _make(block: _Block, rows: RowFormat, first: int, header: int, begin: int, title: str, end: int) -> FoundTable | None:
    """The table with its rows from `begin` up to `end`, without drawn lines and repeated headers."""
    named = None if header == begin else (block.starts[header], block.ends[header])
    again = bytes(block.text[named[0] : named[1]]).strip() if named else b""
    above = header - first
    if above and (heading := block.read(first)) and (heading.endswith(":") if header == begin else above == 1):
        title = _read_title(heading)
    found = FoundTable(rows, named, title)
    while end > begin and FOOTER.match(block.text, block.starts[end - 1], block.ends[end - 1]):
        end -= 1
    has_dots = False
    for start, stop in zip(block.starts[begin:end], block.ends[begin:end], strict=True):
        line = bytes(block.text[start:stop]).strip()
        are_dots = line[:2] == b".." and _DOTS.match(line) is not None
        has_dots |= are_dots
        if line != again and line.strip(DRAWN) and not are_dots:
            found.starts.append(start)
            found.ends.append(stop)
    if has_dots:
        shown = _ALL_ROWS.match(block.text, block.ends[end - 1])
        found.omissions = (Omission(max(1, int(shown[1]) - len(found)) if shown else 1, "that the output does not show"),)
    return found if len(found) else None


def _find_header(lines: Sequence[str]) -> tuple[int, str, RowFormat | None]:
    """The line of the header, the rule below it if any, and how to split rows."""
    for number in range(1, min(_MAX_ABOVE, len(lines))):
        if is_underline(lines[number]) and (rows := find_aligned(lines[number - 1], lines[number + 1 :], lines[number])):
            return number - 1, lines[number], rows
    chosen, rows = 0, find_aligned(lines[0], lines[1:])
    for number in range(1, min(_MAX_TITLES + 1, len(lines) - 1)):
        if (
            (not isinstance(rows, Aligned) or _is_title(lines[0]))
            and _APART.search(lines[number])
            and not _NUMBERED.search(lines[number])
        ):
            other = find_aligned(lines[number], lines[number + 1 :])
            if isinstance(other, Aligned) and (not isinstance(rows, Aligned) or len(other.names) > len(rows.names)):
                chosen, rows = number, other
    return chosen, "", rows


def _is_title(line: str) -> bool:
    return not _APART.search(line) or "---" in line


def _find_next_header(block: _Block, header: str, begin: int) -> int:
    """The line that begins like the header but names other columns."""
    first = header.split(None, 1)[0]
    raw, at = first.encode(), block.starts[begin] if begin < len(block) else block.ends[-1]
    while (at := block.text.find(raw, at, block.ends[-1])) >= 0:
        number = bisect_right(block.starts, at) - 1
        start, at = block.starts[number], block.ends[number]
        if bytes(block.text[start : start + len(raw) + _HEAD_BYTES]).lstrip().startswith(raw):
            line = block.read(number)
            words = line.split()
            if words[0] == first and len(words) > 1 and words != header.split() and not _NUMBERED.search(line):
                return number
    return len(block)
