"""Tables made of lines: delimited rows, aligned columns such as those of `ps`, boxes, `ls -l` and access logs."""

from __future__ import annotations

from functools import partial

from msgspec.structs import replace

from overspill.lexical.kinds.kind import CutEmbedded, Kind, Sample, Traits
from overspill.lexical.kinds.logs import LOG_TRAITS, begins_with_stamp
from overspill.lexical.outline import NO_LABEL, RESUMED, Outline, Table
from overspill.tables.aligned import Worded, is_underline
from overspill.tables.bars import DRAWN, MARKDOWN_RULE, is_rule
from overspill.tables.delimited import Heading, find_delimited, find_heading, take_heading
from overspill.tables.lines import find_patterned, find_tables, is_sure
from overspill.tables.table import FoundTable, Text
from overspill.text import pieces
from overspill.text.lines import FILLERS, is_blank, iterate_lines, read_line
from overspill.text.regex import regex

_MAX_LINES_ABOVE = 8
"""How many lines, including the header, may come before the rows of a table."""
_MIN_DELIMITED_ROWS = 4
_ROW = regex(rb"(?:[^\"\n]++|\"[^\"]*+\")*+(?:\n|\Z)")
_OPENS_INSIDE = regex(rb"[^\",;|\t\n]*+\"[,;|\t\n]")
"""The end of a quoted cell, where a row should begin."""


def _is_delimited(sample: Sample) -> bool:
    lines = sample.lines
    if len(lines) < 1 or any(map(is_rule, lines[:_MAX_LINES_ABOVE])) or begins_with_stamp(lines[0]):
        return False
    return find_heading(sample.data, sample.start, sample.end, _MIN_DELIMITED_ROWS, FILLERS) is not None


def _cut_delimited(text: Text, start: int, end: int, outline: Outline, cut_embedded: CutEmbedded) -> None:
    heading = Heading(first=start)
    if outline.header != RESUMED:
        heading = take_heading(text, start, end, FILLERS)
    elif pieces.find(text, b'"', start, end) >= 0:
        heading = replace(heading, format=take_heading(text, start, end, FILLERS).format)
    for span in heading.above:
        outline.record(*span)
    if found := find_delimited(text, heading, end, FILLERS):
        outline.add_table(found, outline.header)
    elif heading.header:
        outline.record(*heading.header)


def _find_row_start(window: bytes) -> int:
    """A line end between quotation marks is part of a cell. A row that begins inside a cell has an odd number of marks."""
    first = window.find(b"\n") + 1
    start = first
    while start and (found := _ROW.match(window, start)):
        if found[0].count(b'"') % 2 == 0 and found[0].count(b"\n") <= 1 and not _OPENS_INSIDE.match(found[0]):
            return start
        start = window.find(b"\n", start) + 1
    return first or -1


CSV = Kind(
    "csv",
    _is_delimited,
    _cut_delimited,
    Traits(is_celled=True, has_one_header=True, layout="rows"),
    find_start=_find_row_start,
)


_GAP = regex(r"\S(?: {2,}|\t+)(?=\S)")
_MIN_ALIGNED_SHARE = 0.7
_MIN_READ_SHARE = 0.9
_MAX_TABLE_BYTES = 16_000
"""How much text to search for tables, to recognise an output that consists of them."""
_IN_NO_HEADER = regex(r"[,;\t=]|(?<!\S)[-+]?(?!(?:19|20)\d\d(?!\S))\d")
"""Signs of another kind of row, such as a delimited one or a message. A year may be the name of a column."""


def _show_tables(sample: Sample) -> bool:
    """Whether most lines are rows of tables, with headers that logs and running text do not have."""
    beginning = sample.lines[:_MAX_LINES_ABOVE]
    heads = ((_GAP.search(line) and not _IN_NO_HEADER.search(line)) or is_underline(line) or is_rule(line) for line in beginning)
    if any(map(MARKDOWN_RULE.match, beginning)) or not any(heads):
        return False
    text = sample.beginning[: sample.beginning.rfind(b"\n", 0, _MAX_TABLE_BYTES) + 1] or sample.beginning
    rows = sum(len(table) for table in find_tables(text, 0, len(text)) if _is_table(text, table, sample))
    lines = sum(map(bool, map(bytes.strip, text.split(b"\n"))))
    return rows > 0 and rows >= _MIN_ALIGNED_SHARE * (lines - len(beginning))


def _is_table(text: bytes, table: FoundTable, sample: Sample) -> bool:
    read = sum(bool(table.format.split(read_line(text, *span))) for span in zip(table.starts, table.ends, strict=True))
    if read < _MIN_READ_SHARE * len(table):
        return False
    is_plain = table.header and not sample.is_wordy and not _IN_NO_HEADER.search(read_line(text, *table.header))
    return is_sure(text, table) or (is_plain is True and len(table.format.names) > 2)


def _is_listing(sample: Sample, *, is_log: bool = False) -> bool:
    found = find_patterned(sample.whole_lines)
    return found is not None and found.is_log == is_log


def _cut_tables(text: Text, start: int, end: int, outline: Outline, cut_embedded: CutEmbedded) -> None:
    position = _resume(text, start, end, outline) if outline.header == RESUMED else start
    for found in find_tables(text, position, end):
        _record_lines(text, position, found.header[0] if found.header else found.starts[0], outline)
        outline.add_table(found)
        position = found.ends[-1]
    _record_lines(text, position, end, outline)


def _record_lines(text: Text, start: int, end: int, outline: Outline, label: int = NO_LABEL) -> None:
    """Records the lines outside tables. Skips lines drawn around tables."""
    for span in iterate_lines(text, start, end):
        line = bytes(text[span[0] : span[1]])
        if not is_blank(line) and line.strip(DRAWN):
            outline.record(*span, label)


def _resume(text: Text, start: int, end: int, outline: Outline) -> int:
    """Records the rows of a table that began in an earlier part, up to a blank line."""
    lines = iterate_lines(text, start, end)
    stop = next((span[0] for span in lines if is_blank(bytes(text[span[0] : span[1]]))), end)
    first = len(outline)
    _record_lines(text, start, stop, outline, RESUMED)
    if len(outline) > first:
        outline.tables.append(Table(first, len(outline), RESUMED, Worded()))
    return stop


COLUMNS = Kind(
    "columns",
    _show_tables,
    _cut_tables,
    Traits(is_celled=True, has_one_header=True, layout="aligned"),
)
LISTING = Kind("listing", _is_listing, _cut_tables, replace(COLUMNS.traits, has_one_header=False))
ACCESS_LOG = Kind(
    "access log",
    partial(_is_listing, is_log=True),
    _cut_tables,
    replace(LOG_TRAITS, is_celled=True, layout="aligned"),
)
