"""Delimited rows: CSV, TSV, and rows with semicolons or bars between cells."""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Sequence
from functools import cache, lru_cache
from itertools import chain, islice

from msgspec import Struct

from overspill.tables.headers import Header, count_header_rows, find_header
from overspill.tables.table import FoundTable, Omission, RowFormat, Span, Text, Unreadable, make_unique
from overspill.text import pieces
from overspill.text.encoding import decode
from overspill.text.humanize import format_size, quote_line
from overspill.text.lines import FILLERS, iterate_lines
from overspill.text.regex import Pattern, escape, regex

_MARKS = ",\t;|"
_SAMPLE_BYTES = 48_000
_MAX_HEADING_BYTES = 1 << 20
"""How far to look for a header, which may name thousands of columns."""
_MIN_SAMPLE_LINES = 8
_MAX_SAMPLE_ROWS = 400
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
    """Quotation marks enclose a cell only if they begin it and are closed. In `12" disk`, they mean inches."""
    rest = rb"[^%b\r\n]*+" % escape(mark.encode())
    cell = rb'(?:"[^"]*+(?:""[^"]*+)*+"%b|%b)' % (rest, rest)
    return regex(rb"%b(?:%b%b)*+(?:\r\n?|\n|\Z)" % (cell, escape(mark.encode()), cell))


def split_row(row: str, mark: str) -> list[str]:
    """The cells of a row. Avoids Python's CSV parser, which has one limit on cell length for the whole program."""
    if '"' not in row:
        return row.split(mark)
    cells = compile_cell(mark).findall(row + mark)
    return [quoted.replace('""', '"') + rest for quoted, rest in cells[:-1]]  # the last match is after the added mark


def iterate_rows(
    text: Text, mark: str, start: int, end: int, *, omit: bytes = b"", has_quotes: bool | None = None
) -> Iterator[Span]:
    """All rows except blank ones, with their line ends. `omit` are bytes without a meaning in this text."""
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
    """Whether lines end with a CR without LF."""
    if pieces.find(text, b"\r", start, end) < 0:
        return False
    parts = ((at, min(at + pieces.PIECE_BYTES, end)) for at in range(start, end, pieces.PIECE_BYTES))
    return any(bytes(text[at:to]).count(b"\r") > bytes(text[at : to + 1]).count(b"\r\n") for at, to in parts)


class Heading(Struct, frozen=True):
    """Where the header of a table is and where its rows begin, in bytes."""

    format: Delimited = Delimited()
    header: Span | None = None
    """All rows of the header; None if the first row is data."""
    above: Sequence[Span] = ()
    """Rows above the header that name no columns, such as a title."""
    first: int = 0

    def count_skipped(self, text: Text) -> int:
        """The number of rows before the table's first one, including blank rows."""
        return sum(1 for _ in _find_rows(text, self.format.mark, 0, self.first))


def find_heading(text: Text, start: int = 0, end: int | None = None, min_rows: int = 3, omit: bytes = b"") -> Heading | None:
    """The header and the mark that splits rows into equally many cells. None if these are not the rows of a table."""
    end = len(text) if end is None else end
    start += 3 if text[start : start + 3] == _BOM else 0
    sample = _take_sample(text, start, end)
    omit = omit if len(sample.translate(None, omit)) < len(sample) else b""
    found = _find_headers(sample, omit, is_cut=len(sample) < end - start)
    likely = [each for each in found if len(each[0]) - each[1].above >= min_rows]
    best = max(likely, key=lambda each: len(each[1].names), default=None)
    return _locate(*best, start) if best else None


@lru_cache(maxsize=4)
def _find_headers(sample: bytes, omit: bytes, *, is_cut: bool) -> list[tuple[list[Span], Header, str]]:
    """The rows, the header and the mark for each mark that splits rows evenly. Remembers the last texts: what recognises one
    then reads it."""
    found: list[tuple[list[Span], Header, str]] = []
    for mark in filter(decode(sample).__contains__, _MARKS):
        spans, rows = _read_rows(sample, mark, omit, is_cut=is_cut)
        if header := find_header(rows, mark, 1):
            found.append((spans, header, mark))
    return found


def take_heading(text: Text, start: int = 0, end: int | None = None, omit: bytes = b"") -> Heading:
    """The heading of text known to be delimited, even if its rows are few or uneven."""
    end = len(text) if end is None else end
    if found := find_heading(text, start, end, omit=omit):
        return found
    if (found := find_heading(text, start, end, 1, omit)) and not found.above:
        return found
    start += 3 if text[start : start + 3] == _BOM else 0
    spans, rows = _read_rows(_take_sample(text, start, end), ",", omit)
    if not rows:
        return Heading(first=end)
    count = count_header_rows(rows[:1], len(rows[0]))
    return _locate(spans, Header(0, count, make_unique(rows[0] if count else [""] * len(rows[0]))), ",", start)


def read_heading(text: Text) -> Heading:
    """The heading of text known to be delimited. Raises Unreadable if its header is too long."""
    heading = take_heading(text)
    if heading.first >= _MAX_HEADING_BYTES < len(text):
        raise Unreadable(f"the row that names its columns is longer than {format_size(_MAX_HEADING_BYTES)}.")
    return heading


def _take_sample(text: Text, start: int, end: int) -> bytes:
    """At least a few whole lines, unless they are too long."""
    if start + _SAMPLE_BYTES >= end:
        return bytes(text[start:end])
    most = min(end, start + _MAX_HEADING_BYTES)
    ends = [found.end() for found in islice(_LINE_END.finditer(text, start, most), _MIN_SAMPLE_LINES)]
    return bytes(text[start : max(ends[-1] if len(ends) == _MIN_SAMPLE_LINES else most, start + _SAMPLE_BYTES)])


def _read_rows(sample: bytes, mark: str, omit: bytes, *, is_cut: bool = False) -> tuple[list[Span], list[list[str]]]:
    """The first rows and their cells. `is_cut`: without the last one."""
    spans = list(islice(iterate_rows(sample, mark, 0, len(sample), omit=omit), _MAX_SAMPLE_ROWS))[: -1 if is_cut else None]
    plain = sample.decode() if sample.isascii() else ""
    lines = [plain[start:end] if plain else decode(sample[start:end].translate(None, omit)) for start, end in spans]
    return spans, [split_row(line.rstrip("\r\n"), mark) for line in lines]


def _locate(rows: list[Span], found: Header, mark: str, start: int) -> Heading:
    above, first, names = found
    spans = [(start + row_start, start + row_end) for row_start, row_end in rows]
    header, begin = spans[above:first], spans[first][0] if first < len(spans) else spans[-1][1]
    return Heading(Delimited(tuple(names), mark), (header[0][0], header[-1][1]) if header else None, spans[:above], begin)


def find_delimited(text: Text, heading: Heading, end: int, omit: bytes = b"") -> FoundTable:
    """The table with its rows up to `end`, except repeated headers. `omit` are bytes without a meaning in this text."""
    places = array("q", chain.from_iterable(iterate_rows(text, heading.format.mark, heading.first, end, omit=omit)))
    found = FoundTable(heading.format, heading.header, "", places[::2], places[1::2], list_above(text, heading))
    if repeats_header(text, heading, end):
        header, many = read_header(text, heading), len(found)
        rows = [row for row in range(many) if bytes(text[found.starts[row] : found.ends[row]]).rstrip(b"\r\n") != header]
        found.starts, found.ends = (array("q", map(side.__getitem__, rows)) for side in (found.starts, found.ends))
        found.omissions = (*found.omissions, *[Omission(many - len(rows), _REPEATED)][: many - len(rows)])
    return found


def list_above(text: Text, heading: Heading) -> tuple[Omission, ...]:
    if not heading.above:
        return ()
    said = quote_line(decode(bytes(text[heading.above[0][0] : heading.above[-1][1]])).strip())
    return (Omission(len(heading.above), f"above the header left out: {said}"),)


def read_header(text: Text, heading: Heading) -> bytes:
    """The header's last row, which names the columns."""
    start, end = heading.header or (0, 0)
    return next(iter(bytes(text[start:end]).rstrip(b"\r\n").splitlines()[-1:]), b"")


def repeats_header(text: Text, heading: Heading, end: int) -> bool:
    """Whether a later row may repeat the header, as in joined files."""
    header = read_header(text, heading)
    return bool(header) and pieces.find(text, b"\n" + header, heading.first - 1, end) >= 0


def read_last_row(text: Text, heading: Heading) -> list[str]:
    start = max(heading.first, len(text) - _SAMPLE_BYTES)
    start = start if start == heading.first else text.find(b"\n", start) + 1
    rows = [(0, 0), *iterate_rows(text, heading.format.mark, start, len(text))] if start else [(0, 0)]
    return heading.format.split(decode(bytes(text[slice(*rows[-1])])))
