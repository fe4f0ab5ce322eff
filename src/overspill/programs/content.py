"""A stored text as a program reads it: as JSON, also for the rows of a table, or as lines. Large ones are cut into parts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from itertools import accumulate, pairwise
from mmap import mmap
from typing import Any, Literal

import msgspec
from msgspec import Struct

from overspill.tables.delimited import find_heading, iterate_rows
from overspill.tables.json_rows import UNREADABLE
from overspill.tables.json_tables import BEFORE_VALUE, Elements, Members, find_json_tables
from overspill.tables.json_text import HeldJson, hold_json
from overspill.tables.rows import read_heading, read_tables
from overspill.tables.table import Span, Text, Unreadable
from overspill.text.encoding import decode
from overspill.text.humanize import count_noun
from overspill.text.regex import regex

MAX_LOADED_BYTES = 16 << 20
"""Parsed, text takes about 23 times its size in the memory of a program."""
PART_BYTES = 8 << 20
_MAX_SHORT_BYTES = 4_096
"""Of a text that is too short to be recognised as a table."""
_OPENING = regex(rb"\s*+\[")
_BETWEEN = regex(rb"[\s,]*+")
_BEFORE_MEMBER = regex(rb"[\s,{]*+")
_INTEGER = regex(r"-?(?:0|[1-9][0-9]{0,17})")
_NUMBER = regex(r"-?(?:0|[1-9][0-9]{0,17})(?:\.[0-9]{1,17})?")


class Content(Struct, frozen=True):
    form: Literal["json", "lines"]
    text: str
    note: str = ""
    """What is not in it."""


class Parts(Struct, frozen=True):
    """Spans of a text. Each can be read by itself, between `before` and `after`."""

    text: Text | memoryview
    layout: str
    spans: list[Span]
    before: bytes = b""
    after: bytes = b""
    note: str = ""
    """What is in none of them."""

    def read(self, number: int) -> bytes:
        start, end = self.spans[number]
        return self.before + bytes(self.text[start:end]) + self.after


def find_layout(text: mmap | bytes) -> str:
    from overspill.sql.kinds import find_kind  # noqa: PLC0415  # recognises the text, with a part of the engine

    return find_kind(text).traits.layout if len(text) else "text"


def read_content(text: bytes, layout: str) -> Content:
    if layout in ("document", "documents"):
        with suppress(*UNREADABLE):
            held = hold_json(text)
            is_one = layout == "document" and len(held.documents) == 1
            json = bytes(held.documents[0]) if is_one else b"[%b]" % b",".join(map(bytes, held.documents))
            return Content("json", decode(json), _say_left(held.around, "byte", "of text around the JSON"))
    if layout == "text" and len(text) <= _MAX_SHORT_BYTES and (heading := find_heading(text, min_rows=2)):
        layout = layout if heading.above else "rows"
    if layout in ("rows", "aligned"):
        with suppress(Unreadable):
            return _read_rows(text, layout)
    return Content("lines", decode(text))


def _read_rows(text: bytes, layout: str) -> Content:
    """Raises Unreadable if it is not one table."""
    found = list(read_tables(text, layout))
    rows = [row.cells for _, row in found if row.cells is not None]
    if not rows or any(table is not found[0][0] for table, _ in found):
        raise Unreadable
    note = _say_left(len(found) - len(rows), "row", "that could not be read")
    return Content("json", msgspec.json.encode(_read_numbers(rows)).decode(), note)


def _say_left(count: int, noun: str, what: str) -> str:
    return f"{count_noun(count, noun)} {what} left out." if count else ""


def split_content(text: Text, layout: str) -> Parts:
    """Parts of about the same size, cut between rows, elements or lines. Takes as long as reading all of it."""
    if layout == "document":
        with suppress(*UNREADABLE):
            return _split_json(hold_json(text))
    if layout == "rows":
        with suppress(Unreadable):
            heading = read_heading(text)
            header = bytes(text[slice(*heading.header)]) + b"\n" if heading.header else b""
            return Parts(text, layout, _join(iterate_rows(text, heading.format.mark, heading.first, len(text))), header)
    return Parts(text, layout if layout == "documents" else "lines", list(_cut_lines(text)))


def _split_json(held: HeldJson) -> Parts:
    """Between documents if there are several, else within the longest list, or the object itself."""
    around = _say_left(held.around, "byte", "of text around the JSON")
    if len(held.documents) > 1:
        ends = list(accumulate(len(document) + 1 for document in held.documents))
        return Parts(b"\n".join(held.documents), "documents", _join(pairwise([0, *ends])), note=around)
    (document,) = held.documents
    whole = max((table.raw for table in find_json_tables([document]) if table.shape == "list"), key=len, default=document)
    is_list = bytes(whole[:64]).lstrip()[:1] == b"["
    spans = _join(_find_elements(whole) if is_list else _find_members(whole))
    note = _say_left(len(document) - len(whole), "byte", "outside its longest list") or around
    return Parts(whole, "document", spans, *((b"[", b"]") if is_list else (b"{", b"}")), note)


def _find_elements(raw: memoryview) -> Iterator[Span]:
    opening = _OPENING.match(raw)
    position = opening.end() if opening else 0
    for element in Elements.decode(raw):
        before = _BETWEEN.match(raw, position)
        start = before.end() if before else position
        position = start + len(memoryview(element))
        yield start, position


def _find_members(raw: memoryview) -> Iterator[Span]:
    position = 0
    for member in Members.decode(raw).values():
        found, opening = BEFORE_VALUE.match(raw, position), _BEFORE_MEMBER.match(raw, position)
        if found is None or opening is None:
            raise UnicodeDecodeError("utf-8", b"", 0, 0, "keys that occur twice")
        position = found.end() + len(memoryview(member))
        yield opening.end(), position


def _join(spans: Iterable[Span]) -> list[Span]:
    """Those next to each other, up to the size of a part."""
    joined: list[Span] = []
    for start, end in spans:
        if joined and end - joined[-1][0] <= PART_BYTES:
            joined[-1] = (joined[-1][0], end)
        else:
            joined.append((start, end))
    return joined


def _cut_lines(text: Text) -> Iterator[Span]:
    """At line ends, or anywhere in a line that is longer than a part."""
    start, size = 0, len(text)
    while start < size:
        end = min(start + PART_BYTES, size)
        if end < size:
            end = text.rfind(b"\n", start, end) + 1 or end
            while end > start and bytes(text[end : end + 1]) and text[end] & 0xC0 == 0x80:
                end -= 1
        yield start, end
        start = end


def _read_numbers(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """With numbers in the columns that have nothing else."""
    for name in rows[0]:
        cells = [row[name] for row in rows if row.get(name) is not None]
        if not cells or not all(isinstance(cell, str) and _NUMBER.fullmatch(cell) for cell in cells):
            continue
        read = int if all(map(_INTEGER.fullmatch, cells)) else float
        for row in rows:
            if row.get(name) is not None:
                row[name] = read(row[name])
    return rows
