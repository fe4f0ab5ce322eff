"""Finds the tables in JSON.

A list that begins with an object is a table. So is an object of similar objects or of such lists, whose keys become cells of
their rows. Consecutive documents are rows. Only the outermost table counts: a table inside a row is a cell.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Iterator
from collections.abc import Set as AbstractSet
from contextlib import suppress
from itertools import count, repeat
from typing import Literal, TypeAlias, cast

import msgspec
from msgspec import Raw, Struct

from overspill.tables.json_rows import read_cells, read_exactly, respell
from overspill.tables.json_text import BOM, DOCUMENT, HeldJson, find_end, hold_json
from overspill.tables.table import Row
from overspill.text.lenient_json import UNREADABLE
from overspill.text.regex import regex

MIN_ROWS = 3
"""The fewest members of an object that count as rows. A list with fewer rows is a table too, but adds nothing to its text."""
_NAMES, _CELLS = ("columns", "fields", "header", "headers"), ("data", "rows", "values")
"""The keys of members with column names, and of members with lists of cells."""
_MAX_DEPTH = 8
_MAX_COMPARED = 20
_MIN_SHARED_KEYS = 0.5
_MIN_SHARED_KEYS_OF_LISTS = 0.75
"""The share of keys that lists must have in common. High, because separate tables all have an id and a name."""
_ROWS = regex(rb"\[\s*+(?:null\s*+,\s*+)*+\{")
ROWS_INSIDE = regex(rb"\[(?:\s|\\++[nrt])*+(?:null(?:\s|\\++[nrt])*+,(?:\s|\\++[nrt])*+)*+\{")
"""The beginning of a list of objects anywhere, even in a string."""
_GRID = regex(rb"\s*+\[\s*+\[\s*+\"")
_MIN_GRID_NAMES = 3
_BEFORE_ELEMENT = regex(rb"[\s,]*+")
_BEFORE_VALUE = regex(rb"(?s)[\s,]*+\"[^\"\\]*+(?:\\.[^\"\\]*+)*+\"\s*+:\s*+")

Members = msgspec.json.Decoder(dict[str, Raw])
Elements = msgspec.json.Decoder(list[Raw])
_Names = msgspec.json.Decoder(tuple[str, ...])
_Cells = msgspec.json.Decoder(list[list[Raw]])
Json: TypeAlias = Raw | bytes | memoryview
JsonRow: TypeAlias = tuple[int | str, Json, str]
Shape: TypeAlias = Literal["list", "members", "lists", "documents", "value", "apart", "grid"]


class _FewElements(Struct, array_like=True, forbid_unknown_fields=True):
    first: Raw
    second: Raw = Raw(b"")


_Few = msgspec.json.Decoder(_FewElements)


class JsonTable(Struct, frozen=True):
    raw: memoryview
    pointer: str = ""
    title: str = ""
    shape: Shape = "list"
    documents: list[memoryview] = []

    def rows(self) -> Iterator[JsonRow]:
        """Each row with the end of its JSON pointer, its text, and its key if it has one."""
        if self.shape in ("list", "documents"):
            yield from zip(count(), self.documents or Elements.decode(self.raw), repeat(""))
            return
        if self.shape == "value":
            yield "", self.raw, ""
            return
        if self.shape == "grid":
            names, *rows = Elements.decode(self.raw)
            yield from _name_cells(names, enumerate(rows, 1))
            return
        members = Members.decode(self.raw)
        if self.shape == "apart":
            names, cells = find_apart(members)
            rows = Elements.decode(members[cells])
            yield from _name_cells(members[names], ((f"{cells}/{number}", row) for number, row in enumerate(rows)))
            return
        for name, member in members.items():
            if self.shape == "members":
                yield _escape(name), member, name
            else:
                yield from ((f"{_escape(name)}/{number}", row, name) for number, row in enumerate(Elements.decode(member)))


def _name_cells(names: Raw, rows: Iterable[tuple[int | str, Raw]]) -> Iterator[JsonRow]:
    keys = list(map(bytes, Elements.decode(names)))
    for where, row in rows:
        fields = zip(keys, Elements.decode(row), strict=False)
        yield where, b"{%b}" % b",".join(b"%b:%b" % (name, bytes(value)) for name, value in fields), ""


def hold_documents(text: bytes, layout: str) -> HeldJson:
    """The same for text whose non-blank lines may each be a document. Rewrites those that only Python reads, as with NaN."""
    if layout != "documents":
        return hold_json(text)
    text = text.removeprefix(BOM)
    with suppress(msgspec.DecodeError):
        return HeldJson(list(map(memoryview, DOCUMENT.decode_lines(text))))
    lines = [line for line in map(bytes.strip, text.split(b"\n")) if line]
    documents: list[memoryview] = []
    for line in lines:
        with suppress(ValueError, RecursionError):
            documents.append(memoryview(line if find_end(memoryview(line)) == len(line) else respell(line)))
    return HeldJson(documents, unread=len(lines) - len(documents))


def read_json_table(table: JsonTable) -> Iterator[Row]:
    """Every row, its values exactly as written, located by its JSON pointer."""
    above = table.pointer if table.shape == "value" else f"{table.pointer}/"
    return (Row(f"{above}{where}", (0, 0), read_exactly(bytes(raw), key)) for where, raw, key in table.rows())


def find_json_tables(documents: list[memoryview]) -> Iterator[JsonTable]:
    if len(documents) == 1:
        yield from _find(documents[0], "", "", 0)
    elif documents and bytes(documents[0][:64]).lstrip()[:1] == b"{":
        yield JsonTable(documents[0], shape="documents", documents=documents)


def _find(raw: memoryview, pointer: str, title: str, depth: int) -> Iterator[JsonTable]:
    opening = bytes(raw[:64]).lstrip()[:1]
    if depth > _MAX_DEPTH:
        return
    if opening == b"[" and is_list_of_rows(raw):
        yield from find_in_few(raw, pointer, depth) or [JsonTable(raw, pointer, title)]
    elif opening == b"[" and read_grid(raw):
        yield JsonTable(raw, pointer, title, "grid")
    elif opening == b"{":
        members = Members.decode(raw)
        if _has_repeated_keys(raw):  # the decoded object has only the last value of a repeated key
            raw = memoryview(respell(bytes(raw)))
            members = Members.decode(raw)
        if shape := find_shape(members.values()):
            yield JsonTable(raw, pointer, title, shape)
            return
        names, cells = find_apart(members)
        if names and cells and read_names(members[names], members[cells]):
            yield JsonTable(raw, pointer, title, "apart")
            return
        for name, member in members.items():
            # Skip members without a list of objects and with too few objects to be rows themselves.
            if bytes(member).count(b"{") > MIN_ROWS or ROWS_INSIDE.search(member) or _GRID.match(member):
                yield from _find(memoryview(member), f"{pointer}/{_escape(name)}", name, depth + 1)
    elif opening == b'"' and raw.nbytes > 1 and re.match(rb"\"(?:\\[nrt]|\s)*+(?:[\[{]|[^\n\"]{0,400}?(?:\\n|```))", raw[:999]):
        with suppress(*UNREADABLE):
            held = hold_json(cast(str, msgspec.json.decode(raw)).encode("utf-8", "replace"))
            if len(held.documents) == 1:
                yield from _find(held.documents[0], pointer, title, depth + 1)


def find_apart(members: Container[str]) -> tuple[str, str]:
    """The key of the member with the column names, and of the member that may have the cells; empty if missing."""
    names, cells = (next((name for name in among if name in members), "") for among in (_NAMES, _CELLS))
    return names, cells


def read_names(names: Json, rows: Json) -> tuple[str, ...]:
    """The column names. Empty if a name repeats or a row has more cells. Rows may have fewer: spreadsheets drop empty ones."""
    try:
        found, cells = _Names.decode(names), _Cells.decode(rows)
    except UNREADABLE:
        return ()
    is_even = len(set(found)) == len(found) > 1 and len(cells) > 0 and all(0 < len(row) <= len(found) for row in cells)
    return found if is_even else ()


def read_grid(raw: Json) -> tuple[str, ...]:
    """The names in the first of several lists, as from a spreadsheet. Empty unless above other values or at least three."""
    if not _GRID.match(bytes(memoryview(raw)[:4096])):
        return ()
    with suppress(*UNREADABLE):
        names, *rows = Elements.decode(raw)
        columns, cells = _Names.decode(names), (cell for row in rows[:_MAX_COMPARED] for cell in Elements.decode(row))
        is_named = len(columns) >= _MIN_GRID_NAMES or any(bytes(cell)[:1] != b'"' for cell in cells)
        if is_named and len(rows) >= MIN_ROWS and read_names(names, b"[%b]" % b",".join(map(bytes, rows))):
            return columns
    return ()


def find_in_few(raw: memoryview, pointer: str = "", depth: int = 0) -> list[JsonTable]:
    """The tables in the texts of one or two objects, such as MCP results."""
    try:
        few = _Few.decode(raw)
    except UNREADABLE:
        return []
    found: list[JsonTable] = []
    for number, element in enumerate((few.first, few.second)):
        view = memoryview(element)
        for name, member in Members.decode(element).items() if bytes(view[:1]) == b"{" else ():
            if bytes(memoryview(member)[:1]) == b'"':
                found += _find(memoryview(member), f"{pointer}/{number}/{_escape(name)}", name, depth + 1)
    return found


def is_list_of_rows(raw: Json) -> bool:
    """Whether a list is a table. Decides by the first elements, because counting would read a long list twice."""
    return _ROWS.match(bytes(memoryview(raw)[:4096]).lstrip()) is not None


def find_shape(members: Iterable[Json]) -> Literal["members", "lists"] | None:
    """The shape of an object whose members are rows or lists of rows."""
    values = list(members)
    if len(values) < MIN_ROWS:
        return None
    few = (*values[:_MAX_COMPARED], *values[-_MAX_COMPARED:])
    openings = {bytes(memoryview(value)[:1]) for value in (few if len({bytes(value)[:1] for value in few}) > 1 else values)}
    if openings == {b"{"} and _are_alike(map(_read_keys, values[:_MAX_COMPARED]), _MIN_SHARED_KEYS):
        return "members"
    lists = [value for value in values if len(memoryview(value)) > 2] if openings == {b"["} else []
    if not lists or not all(map(is_list_of_rows, lists)):
        return None
    try:
        firsts = [read_cells(Elements.decode(value)[0]).keys() for value in lists[:_MAX_COMPARED]]
    except UNREADABLE:
        return None
    return "lists" if len(lists) > 1 and _are_alike(firsts, _MIN_SHARED_KEYS_OF_LISTS) else None


def _are_alike(keys: Iterable[AbstractSet[str]], share: float) -> bool:
    first, *others = keys
    return all(len(first & other) >= share * max(len(first), len(other)) > 0 for other in others)


def _read_keys(value: Json) -> AbstractSet[str]:
    try:
        return Members.decode(value).keys()
    except UNREADABLE:
        return frozenset(name.partition(".")[0] for name in read_cells(value))


class RepeatedKeys(Exception):
    """An object has a key twice, and its decoder keeps only the last value."""


def locate_values(raw: memoryview) -> Iterator[tuple[str, int, int]]:
    """The key of each member, or the number of each element, and where its value begins and ends. Values must follow each other
    with only keys and blanks between them. Otherwise, raises RepeatedKeys."""
    head = bytes(raw[:64])
    position = 1 + len(head) - len(head.lstrip())
    is_list = head.lstrip()[:1] == b"["
    values = {str(number): each for number, each in enumerate(Elements.decode(raw))} if is_list else Members.decode(raw)
    match = _BEFORE_ELEMENT.match if is_list else _BEFORE_VALUE.match
    for name, value in values.items():
        start = found.end() if (found := match(raw, position)) else position
        position = start + len(memoryview(value))
        if bytes(raw[start:position]) != bytes(value):
            raise RepeatedKeys
        yield name, start, position
    if bytes(raw[position:]).strip() not in (b"]", b"}"):
        raise RepeatedKeys


def _has_repeated_keys(raw: memoryview) -> bool:
    try:
        return not all(True for _ in locate_values(raw))
    except RepeatedKeys:
        return True


def _escape(name: str) -> str:
    return name.replace("~", "~0").replace("/", "~1")
