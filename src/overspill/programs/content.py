"""Stored text as a program reads it: as JSON, including the rows of a table, or as lines. Large text is cut into parts."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from itertools import accumulate, groupby, pairwise
from mmap import mmap
from operator import itemgetter
from typing import Literal

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from overspill.errors import BadRequest
from overspill.tables.delimited import Heading, find_delimited, find_heading, iterate_rows, read_heading
from overspill.tables.headers import NUMBER
from overspill.tables.json_tables import RepeatedKeys, find_json_tables, hold_documents, locate_values
from overspill.tables.json_text import HeldJson, hold_json
from overspill.tables.table import Omission, Row, Span, Text, Unreadable, write_note
from overspill.text.encoding import decode
from overspill.text.humanize import count_noun
from overspill.text.lenient_json import UNREADABLE
from overspill.text.regex import regex

MAX_LOADED_BYTES = 16 << 20
"""The most bytes to load as a whole. Parsed text takes about 23 times its size in the memory of a program."""
PART_BYTES = 8 << 20
_MAX_SHORT_BYTES = 4_096
"""Up to this size, text is also tried as a table, because it may be too short for its layout to be recognised."""
_MAX_HEADINGS_TRIED = 200
"""How many odd rows of a text are tried as the header of another table, each by comparing it with the rows below it."""
_NUMBER = regex(r"-?(?:0|[1-9][0-9]{0,17})(?:\.[0-9]{1,17})?")


class Content(Struct, frozen=True):
    form: Literal["json", "lines"]
    text: str
    note: str = ""
    """What the content leaves out."""


class Parts(Struct, frozen=True):
    reads: list[Callable[[], Content]]
    note: str = ""
    """What none of the parts contains."""


def find_layout(text: mmap | bytes) -> str:
    from overspill.lexical.kinds import find_kind  # noqa: PLC0415  # takes long to import, with a part of the engine

    return find_kind(text).traits.layout if len(text) else "text"


def read_content(text: bytes, layout: str) -> Content:
    """Read text as JSON, as rows of a table, or as lines. Text with several tables is read as lines."""
    if layout in ("document", "documents"):
        with suppress(*UNREADABLE):
            held = hold_documents(text, layout)
            if held.is_converted and _has_json_of_python(decode(text)):
                return Content("json", decode(text))
            is_one = layout == "document" and len(held.documents) == 1
            made = bytes(held.documents[0]) if is_one else b"[%b]" % b",".join(map(bytes, held.documents))
            return Content("json", decode(made), write_note(held.omissions))
    is_short = layout == "text" and len(text) <= _MAX_SHORT_BYTES
    with suppress(Unreadable):
        if layout == "rows" or (is_short and (heading := find_heading(text, min_rows=2)) and not heading.above):
            headings = [heading for heading, _ in groupby(_find_rows(text), itemgetter(0))]
            if len(headings) == 1:
                return _read_rows(text, headings[0], headings[0].first, len(text))
        if layout == "aligned":
            from overspill.tables.rows import read_tables  # noqa: PLC0415  # parses markup too, which takes long to import

            found = list(read_tables(text, layout))
            if found and all(table is found[0][0] for table, _ in found):
                return _write_rows([row for _, row in found])
    return Content("lines", decode(text))


def _has_json_of_python(text: str) -> bool:
    """Whether Python, and so the interpreter of programs, can parse the text unchanged, including numbers such as NaN."""
    with suppress(ValueError, RecursionError):
        json.loads(text)
        return True
    return False


def split_content(text: Text, layout: str) -> Parts:
    """Split text into parts of about the same size, between rows, elements or lines. Takes as long as reading all of it."""
    if layout == "document":
        with suppress(RepeatedKeys, *UNREADABLE):
            return _split_json(hold_json(text))
    if layout == "rows":
        with suppress(Unreadable):
            tables = groupby(_find_rows(text), itemgetter(0))
            spans = ((heading, span) for heading, rows in tables for span in _join(span for _, span in rows))
            return Parts([partial(_read_rows, text, heading, *span) for heading, span in spans])
    return _make_parts(text, layout if layout == "documents" else "lines", _cut_lines(text))


def _make_parts(text: Text | memoryview, layout: str, spans: Iterable[Span], brackets: str = "", note: str = "") -> Parts:
    return Parts([partial(_read_span, text, layout, brackets, *span) for span in spans], note)


def _read_span(text: Text | memoryview, layout: str, brackets: str, start: int, end: int) -> Content:
    if end - start > 2 * MAX_LOADED_BYTES:
        raise BadRequest(f"This part is a single value of {end - start:,} bytes, too large for load. Use text(name, start, end).")
    part = bytes(text[start:end])
    if brackets:
        part = b"%b%b%b" % (brackets[:1].encode(), part.lstrip(b", \t\r\n"), brackets[1:].encode())
    return read_content(part, layout)


def _find_rows(text: Text) -> Iterator[tuple[Heading, Span]]:
    """Yield the rows of one table, or of several tables below each other, each with its heading."""
    heading, tries = read_heading(text), _MAX_HEADINGS_TRIED
    while heading:
        last, mark, following = heading.first, heading.format.mark, None
        for start, end in iterate_rows(text, mark, heading.first, len(text)):
            is_odd = start > last or bytes(text[start:end]).count(mark.encode()) != len(heading.format.names) - 1
            tries -= is_odd
            following = (
                _find_next_heading(text, start, heading.format.names, is_apart=start > last) if is_odd and tries > 0 else None
            )
            if following:
                break
            last = end
            yield heading, (start, end)
        heading = following


def _find_next_heading(text: Text, start: int, names: tuple[str, ...], *, is_apart: bool) -> Heading | None:
    """Find the heading of a table that begins at `start`: other names above numbers or, after a blank line, more or fewer."""
    found = find_heading(text, start)
    if found is None or found.header is None or (*found.above, found.header)[0][0] != start or found.format.names == names:
        return None
    cells = found.format.split(decode(bytes(text[slice(*found.header)])).strip())
    below = found.format.split(decode(bytes(text[found.first : found.first + _MAX_SHORT_BYTES])).partition("\n")[0])
    is_other = any(map(NUMBER.match, below)) or (is_apart and len(found.format.names) != len(names))
    return found if is_other and len(set(cells)) == len(cells) else None  # names differ, but `n/a` may be in several cells


def _read_rows(text: Text, heading: Heading, start: int, end: int) -> Content:
    found = find_delimited(text, replace(heading, first=start, above=heading.above if start == heading.first else ()), end)
    spans = enumerate(zip(found.starts, found.ends, strict=True), 1)
    return _write_rows([found.format.read(number, span, text) for number, span in spans], found.omissions)


def _write_rows(read: Sequence[Row], omissions: Iterable[Omission] = ()) -> Content:
    """Write rows as JSON. The cells of columns that hold only numbers become numbers."""
    rows = [row.cells for row in read if row.cells is not None]
    for name in rows[0] if rows else ():
        cells = [row[name] for row in rows if row.get(name) is not None]
        if cells and all(isinstance(cell, str) and _NUMBER.fullmatch(cell) for cell in cells):
            number = float if any("." in cell for cell in cells) else int
            for row in rows:
                if row.get(name) is not None:  # a short row has fewer cells
                    row[name] = number(row[name])
    longer = Omission(sum(row.extra is not None for row in read), "with more cells than the header; those cells left out")
    left_out = (*omissions, Omission(len(read) - len(rows), "that could not be read left out"), longer)
    return Content("json", msgspec.json.encode(rows).decode(), write_note(each for each in left_out if each.count))


def _split_json(held: HeldJson) -> Parts:
    """Split JSON between documents if there are several, else within its longest list, or within the object itself."""
    if len(held.documents) > 1:
        ends = accumulate(len(document) + 1 for document in held.documents)
        spans = _join(pairwise([0, *ends]))
        return _make_parts(b"\n".join(held.documents), "documents", spans, note=write_note(held.omissions))
    (document,) = held.documents
    whole = max((table.raw for table in find_json_tables([document]) if table.shape == "list"), key=len, default=document)
    is_list = bytes(whole[:1]) == b"["
    ends = (end for _, _, end in locate_values(whole))  # each value with what is before it: a comma, a key
    outside = len(document) - len(whole)
    note = f"{count_noun(outside, 'byte')} outside its longest list left out." if outside else write_note(held.omissions)
    return _make_parts(whole, "document", _join(pairwise([1, *ends])), "[]" if is_list else "{}", note)


def _join(spans: Iterable[Span]) -> list[Span]:
    """Join neighbouring spans, up to the size of a part."""
    joined: list[Span] = []
    for start, end in spans:
        if joined and end - joined[-1][0] <= PART_BYTES:
            joined[-1] = (joined[-1][0], end)
        else:
            joined.append((start, end))
    return joined


def _cut_lines(text: Text) -> Iterator[Span]:
    """Cut at line ends, or between characters if a line is longer than a part."""
    start, size = 0, len(text)
    while start < size:
        end = min(start + PART_BYTES, size)
        if end < size:
            end = text.rfind(b"\n", start, end) + 1 or end
            while end > start and end < size and text[end] & 0xC0 == 0x80:
                end -= 1
        yield start, end
        start = end
