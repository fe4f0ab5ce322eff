"""Tables that lines show: aligned columns, as `ps`, `kubectl get` and many others print them, boxes, `ls -l` and access logs."""

from __future__ import annotations

import re

from msgspec.structs import replace

from overspill.lexical.kinds.kind import CutEmbedded, Kind, Traits
from overspill.lexical.kinds.log import TRAITS
from overspill.lexical.kinds.sample import Sample
from overspill.lexical.outline import RESUMED, Outline, Table
from overspill.tables.aligned import Worded, is_ruled
from overspill.tables.bars import is_rule
from overspill.tables.lines import find_tables, is_sure
from overspill.tables.patterned import find_patterned
from overspill.tables.table import FoundTable, Text
from overspill.text.lines import is_blank, iterate_lines, read_line

_RULE = re.compile(rb"[\s|+=:-]{3,}$")
_GAPS = re.compile(r"\S(?: {2,}|\t+)(?=\S)")
_MIN_ALIGNED_SHARE = 0.7
_MIN_READ_SHARE = 0.9
_MAX_ABOVE = 8
_IN_NO_HEADER = re.compile(r"[,;\t=]|(?<!\S)[-+]?(?!(?:19|20)\d\d(?!\S))\d")
"""What is in rows of other kinds: delimited ones, and messages. A year may be the name of a column."""
_MARKDOWN_RULE = re.compile(r"\s*+\|?(?:\s*+:?-++:?\s*+\|)++")


def _count_gaps(line: str) -> int:
    return len(_GAPS.findall(line)) if "  " in line or "\t" in line else 0


def _show_tables(sample: Sample) -> bool:
    """Whether most lines are rows of tables, with headers that no log and no running text would have."""
    beginning = sample.lines[:_MAX_ABOVE]
    if any(map(_MARKDOWN_RULE.match, beginning)) or not any(map(_may_head, beginning)):
        return False
    text = sample.beginning[: sample.beginning.rfind(b"\n") + 1] or sample.beginning
    rows = sum(len(table) for table in find_tables(text, 0, len(text)) if _is_table(text, table, sample))
    return rows > 0 and rows >= _MIN_ALIGNED_SHARE * (text.count(b"\n") - len(beginning))


def _may_head(line: str) -> bool:
    return (_count_gaps(line) > 0 and not _IN_NO_HEADER.search(line)) or is_ruled(line) or is_rule(line)


def _is_table(text: bytes, table: FoundTable, sample: Sample) -> bool:
    read = sum(bool(table.format.split(read_line(text, *span))) for span in zip(table.starts, table.ends, strict=True))
    if read < _MIN_READ_SHARE * len(table):
        return False
    is_plain = table.header and not sample.is_wordy and not _IN_NO_HEADER.search(read_line(text, *table.header))
    return is_sure(text, table) or (is_plain is True and len(table.format.names) > 2)


def _is_listing(sample: Sample) -> bool:
    found = find_patterned(sample.whole_lines)
    return found is not None and not found.is_log


def _is_access_log(sample: Sample) -> bool:
    found = find_patterned(sample.whole_lines)
    return found is not None and found.is_log


def _cut(text: Text, start: int, end: int, outline: Outline, cut_embedded: CutEmbedded) -> None:
    position = _resume(text, start, end, outline) if outline.header == RESUMED else start
    for found in find_tables(text, position, end):
        _record_lines(text, position, found.header[0] if found.header else found.starts[0], outline)
        outline.add_table(found)
        position = found.ends[-1]
    _record_lines(text, position, end, outline)


def _record_lines(text: Text, start: int, end: int, outline: Outline) -> None:
    """What is in no table. Lines drawn around tables are skipped."""
    for span in iterate_lines(text, start, end):
        line = bytes(text[span[0] : span[1]])
        if not is_blank(line) and not _RULE.match(line):
            outline.record(*span)


def _resume(text: Text, start: int, end: int, outline: Outline) -> int:
    """Rows of a table that begins in an earlier part, up to a blank line."""
    first, position = len(outline), start
    for span in iterate_lines(text, start, end):
        line = bytes(text[span[0] : span[1]])
        if is_blank(line):
            break
        position = span[1]
        if not _RULE.match(line):
            outline.record(*span, RESUMED)
    if len(outline) > first:
        outline.tables.append(Table(first, len(outline), RESUMED, Worded()))
    return position


COLUMNS = Kind(
    "columns",
    _show_tables,
    _cut,
    Traits(is_celled=True, has_one_header=True, size_places=6, locator="line", layout="aligned"),
)
LISTING = Kind("listing", _is_listing, _cut, replace(COLUMNS.traits, has_one_header=False))
ACCESS_LOG = Kind("access log", _is_access_log, _cut, replace(TRAITS, is_celled=True, locator="line", layout="aligned"))
