"""JSON: arrays of objects, wherever they are in a document, and lines of JSON."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator
from decimal import Decimal
from math import isfinite
from mmap import mmap
from pathlib import Path
from typing import Any, TypeAlias, cast

import msgspec
from msgspec import Struct

from overspill.sql.tables.table import (
    MAX_COLUMNS,
    MAX_TABLES,
    Found,
    count_room,
    describe_left_out,
    join_notes,
    quote,
)
from overspill.tables.names import ROW, make_unique

_MAX_DEPTH = 8
_MIN_KEYED_ROWS = 3
_MAX_INT_CHARS = 18  # that are sure to fit a BIGINT
_LONG_NUMBERS = (b"0" * 19, b"." + b"0" * 18)
_TO_ZEROS = bytes.maketrans(b"123456789", b"0" * 9)
_BLOCK_BYTES = 1 << 20
KEY = "_key"
"""The column with the keys of rows that have keys."""
_OPTIONS = "sample_size=-1, map_inference_threshold=-1, field_appearance_threshold=0, dateformat='%%', timestampformat='%%'"
"""All rows decide about the types, objects are never maps, and text stays text."""

Work: TypeAlias = Callable[[], Path]
Members = msgspec.json.Decoder(dict[str, msgspec.Raw])
Elements = msgspec.json.Decoder(list[msgspec.Raw])
BEFORE_VALUE = re.compile(rb"[\s,{]*+\"[^\"\\]*+(?:\\.[^\"\\]*+)*+\"\s*+:\s*+", re.DOTALL)


class _Object(Struct):
    """Any object."""


_Objects = msgspec.json.Decoder(list[_Object])


class _Row(Struct, frozen=True):
    where: str
    raw: bytes
    key: str = ""


class _Place(Struct, frozen=True):
    """An array of objects, or an object whose members are all objects, in a document."""

    raw: memoryview
    pointer: str
    key: str
    is_keyed: bool = False
    has_plain_rows: bool = False
    """Whether all its elements are objects."""


def find_in_document(source: Path, text: mmap | bytes, work: Work) -> list[Found]:
    places = list(_find_places(memoryview(text), "", "", 0))
    if not places:
        return [_load_row_by_row([_Row("", bytes(text))], work(), count_room(1, len(text)))]
    return [_read_place(source, text, place, work) for place in places[: MAX_TABLES + 1]]


def find_lines(source: Path, text: mmap | bytes, work: Work) -> list[Found]:
    rows, columns = _count(row.raw for row in _lines(text))
    room = count_room(rows, len(text))

    def read_row_by_row() -> Found:
        return _load_row_by_row(_lines(text), work(), room, has_line_numbers=True)

    if columns > room or _has_blank_lines(text) or _has_long_numbers(memoryview(text)):
        return [read_row_by_row()]
    reader = f"read_json({quote(str(source))}, format='newline_delimited', records=true, {_OPTIONS})"
    return [Found(reader, "rowid + 1", is_typed=True, rows=rows, otherwise=read_row_by_row)]


def _has_blank_lines(text: mmap | bytes) -> bool:
    """Then the number of a row is not that of its line."""
    return text.find(b"\n\n") >= 0 or text.find(b"\n\r\n") >= 0 or text[:1] in b"\r\n\xef"


def _lines(text: mmap | bytes) -> Iterator[_Row]:
    position, number, size = 0, 0, len(text)
    while position < size:
        end = text.find(b"\n", position) + 1 or size
        number += 1
        if line := text[position:end].strip(b" \t\r\n\xef\xbb\xbf"):
            yield _Row(str(number), line)
        position = end


def _find_places(raw: memoryview, pointer: str, key: str, depth: int) -> Iterator[_Place]:
    """The outermost ones. A table inside a row is a column of that row."""
    opening = bytes(raw[:64]).lstrip()[:1]
    if opening == b"[":
        if _are_objects(raw):
            yield _Place(raw, pointer, key, has_plain_rows=True)
        elif (elements := Elements.decode(raw)) and (depth == 0 or any(map(_is_object, elements))):
            yield _Place(raw, pointer, key)
    elif opening == b"{" and depth <= _MAX_DEPTH:
        members = Members.decode(raw)
        if _has_repeated_keys(raw, members):  # of which that has only the last
            raw = memoryview(json.dumps(_parse(bytes(raw))).encode())
            members = Members.decode(raw)
        if _are_rows(members):
            yield _Place(raw, pointer, key, is_keyed=True)
            return
        for name, member in members.items():
            yield from _find_places(memoryview(member), f"{pointer}/{_escape(name)}", name, depth + 1)
    elif opening == b'"' and depth <= _MAX_DEPTH and bytes(raw[1:2]) in (b"[", b"{"):
        inner = cast(str, msgspec.json.decode(raw)).encode("utf-8", "replace")
        try:
            yield from _find_places(memoryview(inner), pointer, key, depth + 1)
        except (msgspec.DecodeError, RecursionError):
            return


def _is_object(element: msgspec.Raw) -> bool:
    return bytes(memoryview(element)[:1]) == b"{"


def _are_objects(array: memoryview) -> bool:
    """Whether there are elements, and all are objects. Much faster than a look at each."""
    try:
        return bool(_Objects.decode(array))
    except msgspec.ValidationError:
        return False


def _are_rows(members: dict[str, msgspec.Raw]) -> bool:
    """Whether an object is a table whose rows have keys: {"a": {"size": 1}, "b": {"size": 2}, …}."""
    if len(members) < _MIN_KEYED_ROWS or not all(map(_is_object, members.values())):
        return False
    first, *others = [set(Members.decode(member)) for member in list(members.values())[:20]]
    return all(len(first & other) * 2 >= max(len(first), len(other)) > 0 for other in others)


def _has_repeated_keys(raw: memoryview, members: dict[str, msgspec.Raw]) -> bool:
    """Otherwise the values follow each other, with nothing but keys and blanks between them, up to the end."""
    position = 0
    for value in members.values():
        found = BEFORE_VALUE.match(raw, position)
        start = found.end() if found else position
        position = start + memoryview(value).nbytes
        if raw[start:position] != memoryview(value):
            return True
    return bytes(raw[position:]).strip(b" \t\r\n{") != b"}"


def _count(rows: Iterable[bytes | msgspec.Raw]) -> tuple[int, int]:
    """Rows and columns. It stops counting columns once there are too many to load."""
    count, names = 0, set[str]()
    for row in rows:
        count += 1
        try:
            if len(names) <= MAX_COLUMNS:
                names.update(Members.decode(row))
        except (msgspec.DecodeError, RecursionError):
            continue  # it is counted as bad when it is read
    return count, len(names)


def _escape(name: str) -> str:
    return name.replace("~", "~0").replace("/", "~1")


def _read_place(source: Path, text: mmap | bytes, place: _Place, work: Work) -> Found:
    rows, columns = _count(Members.decode(place.raw).values() if place.is_keyed else Elements.decode(place.raw))
    room = count_room(rows, place.raw.nbytes)

    def read_row_by_row() -> Found:
        return _load_row_by_row(_rows_of(place), work(), room, place.key)

    if columns > room or not place.has_plain_rows or _has_long_numbers(place.raw):
        return read_row_by_row()
    file = source
    if place.raw.nbytes != len(text) or place.raw.obj is not text:
        file = work()
        file.write_bytes(place.raw)
    reader = f"read_json({quote(str(file))}, format='array', records=true, {_OPTIONS})"
    where = f"{quote(place.pointer + '/')} || rowid"
    return Found(reader, where, place.key, is_typed=True, rows=rows, otherwise=read_row_by_row)


def _has_long_numbers(raw: memoryview) -> bool:
    """Whether there may be numbers that DuckDB would round."""
    for start in range(0, len(raw), _BLOCK_BYTES):
        zeros = bytes(raw[start : start + _BLOCK_BYTES + len(_LONG_NUMBERS[0])]).translate(_TO_ZEROS)
        if any(zeros.find(number) >= 0 for number in _LONG_NUMBERS):
            return True
    return False


def _rows_of(place: _Place) -> Iterator[_Row]:
    if place.is_keyed:
        for name, member in Members.decode(place.raw).items():
            yield _Row(f"{place.pointer}/{_escape(name)}", bytes(member), name)
    else:
        for number, element in enumerate(Elements.decode(place.raw)):
            yield _Row(f"{place.pointer}/{number}", bytes(element))


class _Columns:
    """The columns that there is room for, and the keys of the objects inside them: DuckDB makes columns of those too."""

    def __init__(self, room: int) -> None:
        self._room = room
        self._names = set[str]()
        self._left_out = set[str]()
        self._inside: dict[tuple[int, str], int] = {}
        self._has_text = False

    @property
    def note(self) -> str:
        text = "Objects with too many different keys are text." if self._has_text else ""
        return join_notes(describe_left_out(len(self._left_out), self._room), text)

    def choose(self, cells: dict[str, Any]) -> dict[str, Any]:
        chosen: dict[str, Any] = {}
        for name, cell in cells.items():
            if name in self._names or len(self._names) < self._room:
                self._names.add(name)
                chosen[name] = self._simplify(name, cell) if isinstance(cell, dict | list) else cell
            else:
                self._left_out.add(name)
        return chosen

    def _simplify(self, name: str, cell: Any) -> Any:
        """As text if there is no room for what is inside."""
        inside: list[tuple[dict[str, Any] | list[Any], int]] = [(cell, self._number(0, name))]
        while inside:
            value, place = inside.pop()
            for key, member in value.items() if isinstance(value, dict) else (("", element) for element in value):
                number = self._number(place, key)
                if isinstance(member, dict | list):
                    inside.append((cast("dict[str, Any] | list[Any]", member), number))
            if len(self._inside) > self._room:
                self._has_text = True
                return json.dumps(cell, ensure_ascii=False)
        return cell

    def _number(self, place: int, key: str) -> int:
        """Of a key in the objects at a place; the elements of arrays have none."""
        return self._inside.setdefault((place, key), len(self._inside) + 1)


def _load_row_by_row(rows: Iterable[_Row], target: Path, room: int, title: str = "", *, has_line_numbers: bool = False) -> Found:
    """For what DuckDB does not read, or not exactly: keys that occur twice, numbers that do not fit, half characters, rows that
    are no objects, lines that are no JSON, and more columns than there is `room` for."""
    bad = written = 0
    columns = _Columns(room)
    with target.open("wb") as file:
        for row in rows:
            try:
                value = _parse(row.raw)
            except (ValueError, RecursionError):
                bad += 1
                continue
            cells: dict[str, Any] = cast("dict[str, Any]", value) if isinstance(value, dict) else {"value": value}
            key = {KEY: row.key} if row.key else {}
            line = json.dumps({ROW: row.where, **key, **columns.choose(cells)}, ensure_ascii=False)
            written += 1
            file.write(line.encode("utf-8", "surrogatepass").decode("utf-8", "replace").encode() + b"\n")
    reader = f"read_json({quote(str(target))}, format='newline_delimited', records=true, {_OPTIONS})"
    where = f'TRY_CAST("{ROW}" AS BIGINT)' if has_line_numbers else f'"{ROW}"'
    return Found(reader, where, title, is_typed=True, hidden=(ROW,), rows=written, bad_rows=bad, note=columns.note)


def _parse(raw: bytes) -> Any:
    return json.loads(raw, object_pairs_hook=_make_object, parse_constant=str, parse_float=_read_float, parse_int=_read_int)


def _make_object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    names = [name for name, _ in pairs]
    if len({name.lower() for name in names}) < len(names) or "" in names or ROW in names:
        names = make_unique(names)
    return dict(zip(names, (value for _, value in pairs), strict=True))


def _read_float(digits: str) -> float | str:
    """As text where a DOUBLE would change it."""
    number = float(digits)
    return number if isfinite(number) and Decimal(repr(number)) == Decimal(digits) else digits


def _read_int(digits: str) -> int | str:
    return int(digits) if len(digits) <= _MAX_INT_CHARS else digits
