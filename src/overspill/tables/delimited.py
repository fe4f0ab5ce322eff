"""Delimited rows: CSV, TSV, and rows with semicolons or bars between cells."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import accumulate, chain, islice, pairwise
from typing import NamedTuple, TypeAlias

from msgspec import Struct

from overspill.tables.table import FoundTable, Omission, RowFormat, Span, Text, make_unique, name_column
from overspill.text import pieces
from overspill.text.encoding import decode
from overspill.text.humanize import quote_line
from overspill.text.lines import FILLERS, iterate_lines
from overspill.text.regex import Pattern, escape, regex

_MARKS = ",\t;|"
_SAMPLE_BYTES = 48_000
MAX_HEADING_BYTES = 1 << 20
"""Up to which a header is looked for. It may name thousands of columns."""
_MIN_SAMPLE_LINES = 8
_MAX_SAMPLE_ROWS = 400
_MAX_ABOVE = 6
_MAX_HEADER_ROWS = 3
_MIN_TITLED_CELLS = 3
"""A line above rows of two cells is as likely to be a sentence above others that have a comma."""
_MIN_ALIKE = 0.8
"""Of the cells of a column, how many must be numbers for a word above them to be a name."""
NUMBER = regex(r"\A\s*+[-+]?[\d.,]*\d\s*+(?:%|[KMGTP]i?B?)?$")
_PERIOD = regex(r"\A\s*+(?:(?:1[89]|2[01])\d\d(?:-\d\d){0,2}|\d\d?/\d\d?/(?:\d\d){1,2})\s*+$")
"""A year or a date: a value, or the name of a column of values of that time."""
_NO_VALUE = regex(r"(?i)\W*+(?:n/?a|nan|nil|none|null|unknown)?\W*+$")
_NAME = regex(r"[A-Za-z_][\w%()/.-]{0,30}$")
_MIN_SURE_NAMES = 3
_FEW_UNMARKED, _MAX_UNMARKED = 3, 0.15
"""Of the rows below them, how many may lack all marks."""
_LINE_END = regex(rb"\r\n?|\n")
_BLANK_START = regex(rb"\n[ \t\r\n\v\f%b]" % FILLERS)
_BOM = b"\xef\xbb\xbf"
_REPEATED = "left out: the header again"


class Delimited(RowFormat, frozen=True):
    mark: str = ","

    def join(self, cells: list[str]) -> str:
        return self.mark.join(cells)

    def split(self, row: str) -> list[str]:
        return split_row(row.rstrip("\r\n"), self.mark)


@cache
def compile_cell(mark: str) -> Pattern[str]:
    return regex(rf'(?:"([^"]*+(?:""[^"]*+)*+)")?([^{escape(mark)}]*+)(?:{escape(mark)}|\Z)')


@cache
def compile_row(mark: str) -> Pattern[bytes]:
    """Quotation marks enclose a cell only if they begin it, and if it ends: in `12" disk` they mean inches."""
    rest = rb"[^%b\r\n]*+" % escape(mark.encode())
    cell = rb'(?:"[^"]*+(?:""[^"]*+)*+"%b|%b)' % (rest, rest)
    return regex(rb"%b(?:%b%b)*+(?:\r\n?|\n|\Z)" % (cell, escape(mark.encode()), cell))


def split_row(row: str, mark: str) -> list[str]:
    """Not with Python's parser of CSV, whose limit of a cell's length is one for the whole program."""
    if '"' not in row:
        return row.split(mark)
    cells = compile_cell(mark).findall(row + mark)
    return [quoted.replace('""', '"') + rest for quoted, rest in cells[:-1]]  # the last is what follows the last mark


def iterate_rows(
    text: Text, mark: str, start: int, end: int, *, omit: bytes = b"", has_quotes: bool | None = None
) -> Iterator[Span]:
    """All rows but blank ones, with their line ends. `omit` are bytes that mean nothing in this text."""
    blank = b" \r\n\v\f" + omit + (b"" if mark == "\t" else b"\t")
    has_quotes = pieces.find(text, b'"', start, end) >= 0 if has_quotes is None else has_quotes
    has_other_ends = has_quotes or has_lone_returns(text, start, end)
    find = _find_rows(text, mark, start, end) if has_other_ends else iterate_lines(text, start, end)
    if end - start <= pieces.PIECE_BYTES and not has_other_ends and not _BLANK_START.search(b"\n" + text[start:end]):
        return find
    return ((start, stop) for start, stop in find if text[start] not in blank or text[start:stop].strip(blank))


def _find_rows(text: Text, mark: str, start: int, end: int) -> Iterator[Span]:
    match = compile_row(mark).match
    while start < end and (found := match(text, start, end)):
        yield found.span()
        start = found.end()


def has_lone_returns(text: Text, start: int, end: int) -> bool:
    """Whether a CR ends lines without a LF."""
    if pieces.find(text, b"\r", start, end) < 0:
        return False
    parts = ((at, min(at + pieces.PIECE_BYTES, end)) for at in range(start, end, pieces.PIECE_BYTES))
    return any(bytes(text[at:to]).count(b"\r") > bytes(text[at : to + 1]).count(b"\r\n") for at, to in parts)


class Heading(Struct, frozen=True):
    """Where the header of a table is, and its rows begin. Positions are in bytes of the text."""

    format: Delimited = Delimited()
    header: Span | None = None
    """All rows of the header; None if the first row is data."""
    above: Sequence[Span] = ()
    """Rows above the header that name no columns, such as a title."""
    first: int = 0

    def count_skipped(self, text: Text) -> int:
        """Rows before the first of the table, blank ones too."""
        return sum(1 for _ in _find_rows(text, self.format.mark, 0, self.first))


def find_heading(text: Text, start: int = 0, end: int | None = None, min_rows: int = 3, omit: bytes = b"") -> Heading | None:
    """With the mark that splits rows into the same number of cells; None if these are not the rows of a table."""
    end = len(text) if end is None else end
    start += 3 if text[start : start + 3] == _BOM else 0
    sample, best = _take_sample(text, start, end), None
    for mark in filter(decode(sample).__contains__, _MARKS):
        rows = _read_rows(sample, mark, omit)[: -1 if len(sample) < end - start else None]
        header = _find_header([row.cells for row in rows], mark, min_rows)
        if header and (best is None or len(header[2]) > len(best.format.names)):
            best = _locate(rows, header, mark, start)
    return best


def take_heading(text: Text, start: int = 0, end: int | None = None, omit: bytes = b"") -> Heading:
    """For text that is known to be delimited, however few or uneven its rows are."""
    end = len(text) if end is None else end
    if found := find_heading(text, start, end, omit=omit):
        return found
    if (found := find_heading(text, start, end, 1, omit)) and not found.above:
        return found
    start += 3 if text[start : start + 3] == _BOM else 0
    rows = _read_rows(_take_sample(text, start, end), ",", omit)
    if not rows:
        return Heading(first=end)
    count = _count_header_rows([row.cells for row in rows[:1]], len(rows[0].cells))
    return _locate(rows, (0, count, make_unique(rows[0].cells if count else [""] * len(rows[0].cells))), ",", start)


class _Row(NamedTuple):
    start: int
    stop: int
    cells: list[str]


def _take_sample(text: Text, start: int, end: int) -> bytes:
    """At least some whole lines, if they are not too long."""
    if start + _SAMPLE_BYTES >= end:
        return bytes(text[start:end])
    most = min(end, start + MAX_HEADING_BYTES)
    ends = [found.end() for found in islice(_LINE_END.finditer(text, start, most), _MIN_SAMPLE_LINES)]
    return bytes(text[start : max(ends[-1] if len(ends) == _MIN_SAMPLE_LINES else most, start + _SAMPLE_BYTES)])


def _read_rows(sample: bytes, mark: str, omit: bytes) -> list[_Row]:
    spans = islice(iterate_rows(sample, mark, 0, len(sample), omit=omit), _MAX_SAMPLE_ROWS)
    return [
        _Row(start, stop, split_row(decode(sample[start:stop].translate(None, omit)).rstrip("\r\n"), mark))
        for start, stop in spans
    ]


_Header: TypeAlias = tuple[int, int, list[str]]
"""The rows above a header, with its own rows, and the names of the columns."""


def _locate(rows: list[_Row], found: _Header, mark: str, start: int) -> Heading:
    above, first, names = found
    header, begin = rows[above:first], rows[first].start if first < len(rows) else rows[-1].stop
    return Heading(
        Delimited(tuple(names), mark),
        (start + header[0].start, start + header[-1].stop) if header else None,
        [(start + row.start, start + row.stop) for row in rows[:above]],
        start + begin,
    )


def _find_header(rows: list[list[str]], mark: str, min_rows: int) -> _Header | None:
    """None if these are not the rows of a table."""
    width = Counter(map(len, rows)).most_common(1)[0][0] if rows else 0
    above = _count_above(rows, width)
    table = rows[above:]
    first = table[0] if table else []
    # Whether these can hardly be anything but the names of columns, however uneven the rows below them are.
    are_names = len(set(first)) == len(first) >= _MIN_SURE_NAMES and all(map(_NAME.match, first))
    is_sure = are_names and sum(len(row) == 1 for row in table) <= max(_FEW_UNMARKED, _MAX_UNMARKED * len(table))
    even = sum(len(row) == width for row in table) / max(1, len(table))
    is_even = even >= (0.5 if is_sure else 0.85) and len(table) >= min_rows and len(first) == width > 1
    if not is_even or not _looks_tabular(table, mark, is_sure=is_sure, is_regular=even == 1 and width >= _MIN_TITLED_CELLS):
        return None
    count = _count_header_rows(table, width)

    def spread(last: str, cell: str) -> str:
        """An empty cell right of a filled one in an upper row of a header belongs to it."""
        return cell or last

    upper = [list(accumulate(map(str.strip, row), spread)) for row in table[: max(0, count - 1)]]
    names = [name_column([*upper, *table[count - 1 : count]], column) for column in range(width)]
    below = table[count] if 1 < count < len(table) and len(table[count]) == width else []
    filled = [bool(cell.strip()) for cell in below]
    # pandas writes the names of the columns that name rows below those of the others.
    if any(filled) and not all(filled) and filled == sorted(filled, reverse=True):
        names, count = [index.strip() or name for index, name in zip(below, names, strict=True)], count + 1
    return above, above + count, make_unique(names)


def _looks_tabular(rows: list[list[str]], mark: str, *, is_sure: bool, is_regular: bool) -> bool:
    """Commas also separate clauses, and semicolons end statements; in a table, header cells are short and cells are filled.
    Only where all rows have as many cells may a name be longer, such as a question of a survey."""
    widest = max(len(cell) for cell in rows[0]) if mark != "\t" and not is_regular else 0
    spaced = sum(row[1][:1] == " " for row in rows if len(row) > 1) if mark == "," else 0
    filled = sum(any(row[1:]) for row in rows)
    return widest <= 60 and spaced < 0.5 * len(rows) and (is_sure or filled > 0.5 * len(rows))


def _count_above(rows: list[list[str]], width: int) -> int:
    """How many rows are above the header: titles, and what an export says about itself."""
    if width < _MIN_TITLED_CELLS:
        return 0
    above = next((number for number, pair in enumerate(pairwise(rows[: _MAX_ABOVE + 2])) if not _is_above(*pair, width)), 0)
    empty = [number for number, row in enumerate(rows[:above]) if len(row) == width]
    # Below a first row in which most names are empty, a row with numbers is data.
    return empty[-1] if empty and not _are_names(rows[above], rows[above + 1 :]) else above


def _is_above(row: list[str], below: list[str], width: int) -> bool:
    filled = [number for number, cell in enumerate(row) if cell.strip()]
    if len(row) != width or len(filled) < 2:
        return True
    if 2 * len(filled) > width:
        return False
    # A few names belong to a header if those below them are not enough. In an export's own lines, they are a name and its value.
    is_named = len({cell.strip().lower() for cell in below if cell.strip()}) == width
    begins = filled == list(range(len(filled))) and all(cell.strip() for cell in below[: len(filled)])
    return is_named or begins or any(cell[:1] == " " for cell in row)


def _count_header_rows(rows: list[list[str]], width: int) -> int:
    """Words above columns of numbers are names, and so are years above columns of something else."""
    body = [row for row in rows[_MAX_HEADER_ROWS:] or rows[1:] if len(row) == width]
    numbers = [column for column in range(width) if _are_mostly(NUMBER, [row[column] for row in body])]
    for count in range(min(_MAX_HEADER_ROWS, len(rows) - 1), 1, -1):
        upper, lowest = rows[: count - 1], rows[count - 1]
        named = len(lowest) == width and sum(not _NO_VALUE.match(lowest[column]) for column in numbers)
        has_groups = all(any(one.strip() and other.strip() in ("", one.strip()) for one, other in pairwise(row)) for row in upper)
        if named and (named > 1 or has_groups) and all(_are_names(row, body) for row in (*upper, lowest)):
            return count
    is_worded = not all(map(_PERIOD.match, rows[0]))
    return int(is_worded and _are_names(rows[0], rows[1:]))


def _are_names(row: list[str], body: Sequence[list[str]]) -> bool:
    def is_name(column: int, cell: str) -> bool:
        if not NUMBER.match(cell) and not _PERIOD.match(cell):
            return True
        below = [each[column] for each in body if column < len(each)]
        if _PERIOD.match(cell):
            return bool(below) and not _are_mostly(_PERIOD, below)
        # A number may only be the name of a column that has other values, mostly words.
        return bool(below) and cell not in below and 2 * sum(map(bool, map(NUMBER.match, below))) < len(below)

    # pandas numbers columns that have no names.
    return row == ["", *map(str, range(len(row) - 1))] or all(is_name(column, cell) for column, cell in enumerate(row))


def _are_mostly(pattern: Pattern[str], cells: list[str]) -> bool:
    """Of those that have a value."""
    others = [cell for cell in cells if not pattern.match(cell)]
    filled = len(cells) - sum(map(bool, map(_NO_VALUE.match, others)))
    return filled > 0 and len(cells) - len(others) >= _MIN_ALIKE * filled


def find_delimited(text: Text, heading: Heading, end: int, omit: bytes = b"") -> FoundTable:
    """With its rows up to `end`, without those that repeat the header. `omit` are bytes that mean nothing in this text."""
    places = array("q", chain.from_iterable(iterate_rows(text, heading.format.mark, heading.first, end, omit=omit)))
    found = FoundTable(heading.format, heading.header, "", places[::2], places[1::2], list_above(text, heading))
    if repeats_header(text, heading, end):
        header, many = _read_header(text, heading), len(found)
        rows = [row for row in range(many) if bytes(text[found.starts[row] : found.ends[row]]).rstrip(b"\r\n") != header]
        found.starts, found.ends = (array("q", map(side.__getitem__, rows)) for side in (found.starts, found.ends))
        found.omissions = (*found.omissions, *[Omission(many - len(rows), _REPEATED)][: many - len(rows)])
    return found


def list_above(text: Text, heading: Heading) -> tuple[Omission, ...]:
    if not heading.above:
        return ()
    said = quote_line(decode(bytes(text[heading.above[0][0] : heading.above[-1][1]])).strip())
    return (Omission(len(heading.above), f"above the header left out: {said}"),)


def _read_header(text: Text, heading: Heading) -> bytes:
    """Its last row, which names columns."""
    start, end = heading.header or (0, 0)
    return next(iter(bytes(text[start:end]).rstrip(b"\r\n").splitlines()[-1:]), b"")


def repeats_header(text: Text, heading: Heading, end: int) -> bool:
    """Whether a later row may be the header again, as where files were joined."""
    header = _read_header(text, heading)
    return bool(header) and pieces.find(text, b"\n" + header, heading.first - 1, end) >= 0


def read_last_row(text: Text, heading: Heading) -> list[str]:
    start = max(heading.first, len(text) - _SAMPLE_BYTES)
    start = start if start == heading.first else text.find(b"\n", start) + 1
    rows = [(0, 0), *iterate_rows(text, heading.format.mark, start, len(text))] if start else [(0, 0)]
    return heading.format.split(decode(bytes(text[slice(*rows[-1])])))
