"""JSON: the tables that the room finds in it, read by DuckDB where it reads all rows exactly, otherwise row by row."""

from __future__ import annotations

import json
import mmap
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import Annotated, Any, Optional, TypeAlias, cast

import duckdb
import msgspec
from msgspec import Meta
from msgspec.structs import replace

from overspill.sql.tables.table import (
    MAX_COLUMNS,
    MAX_TABLES,
    Found,
    count_room,
    describe_left_out,
    join_notes,
    quote,
    quote_name,
)
from overspill.tables.json_rows import KEY, UNREADABLE, VALUE, read_float
from overspill.tables.json_tables import Json, JsonRow, JsonTable, Members, find_json_tables, is_list_of_rows
from overspill.tables.json_text import hold_json
from overspill.tables.names import ROW, make_unique
from overspill.text.humanize import count_noun

_MAX_INT_CHARS = 18  # that are sure to fit a BIGINT
_LONG_NUMBER, _LONG_FRACTION = b"0" * 19, b"." + b"0" * 18
_TO_ZEROS = bytes.maketrans(b"123456789", b"0" * 9)
_BLOCK_BYTES = 1 << 20
_CHECKED_BYTES = 1 << 16
"""How many are checked in one call, about: their values are all in memory."""
_MAX_TRIES = 30
"""To find the end of a row near there."""
_SAMPLED_ROWS = 1_000
_OPTIONS = "map_inference_threshold=-1, field_appearance_threshold=0, dateformat='%%', timestampformat='%%'"
"""Objects are never maps, and text stays text."""
_ARRAY, _VALUES, _LINES = (
    f"format={kind}, records={records}"
    for kind, records in (("'array'", True), ("'array'", False), ("'newline_delimited'", True))
)
_SCALARS: dict[str, tuple[Any, str]] = {
    "bigint": (Annotated[int, Meta(ge=-(1 << 63), le=(1 << 63) - 1)], "BIGINT"),
    "double": (Annotated[float, Meta(ge=-(1 << 53), le=1 << 53)], "DOUBLE"),  # beyond, whole numbers would be rounded
    "boolean": (bool, "BOOLEAN"),
    "varchar": (str, "VARCHAR"),
    "uuid": (str, "VARCHAR"),  # or its letters would be small
    "null": (None, "VARCHAR"),
}
"""By the type that DuckDB suggests: how it is checked, and how it is read."""

Work: TypeAlias = Callable[[], Path]
Text: TypeAlias = mmap.mmap | bytes


def find_in_document(source: Path, text: Text, work: Work) -> list[Found]:
    whole = JsonTable(memoryview(text))
    is_list = is_list_of_rows(whole.raw)
    if is_list and (found := _read_at_once(source, text, _ARRAY, whole, lambda: _read_row_by_row(whole, work))):
        return [found]
    held = hold_json(text)
    tables = list(islice(find_json_tables(held.documents), MAX_TABLES + 1))
    if is_list and held.documents[0].nbytes == len(text):
        read = [_read_row_by_row(tables[0], work)]
    elif tables:
        read = [_read_table(table, work) for table in tables]
    elif bytes(held.documents[0][:1]) == b"[":
        read = [_read_table(JsonTable(held.documents[0]), work, _VALUES)]
    else:
        read = [_load_row_by_row([JsonRow("", held.documents[0])], work(), count_room(1, len(text)))]
    around = f"{count_noun(held.around, 'byte')} of text around the JSON left out." if held.around else ""
    return [replace(read[0], note=join_notes(read[0].note, around)), *read[1:]]


def find_lines(source: Path, text: Text, work: Work) -> list[Found]:
    def read_row_by_row() -> Found:
        rows, _ = _count(row.raw for row in _lines(text))
        return _load_row_by_row(_lines(text), work(), count_room(rows, len(text)), has_line_numbers=True)

    is_numbered = text.find(b"\n\n") < 0 and text.find(b"\n\r\n") < 0 and text[:1] not in b"\r\n\xef"
    found = _read_at_once(source, text, _LINES, JsonTable(memoryview(text)), read_row_by_row) if is_numbered else None
    return [found or read_row_by_row()]


def _lines(text: Text) -> Iterator[JsonRow]:
    position, number, size = 0, 0, len(text)
    while position < size:
        end = text.find(b"\n", position) + 1 or size
        number += 1
        if line := text[position:end].strip(b" \t\r\n\xef\xbb\xbf"):
            yield JsonRow(str(number), line)
        position = end


def _read_table(table: JsonTable, work: Work, how: str = _ARRAY) -> Found:
    if table.shape == "list":
        file = work()
        file.write_bytes(table.raw)
        with file.open("rb") as opened:
            text = mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_READ)
        if found := _read_at_once(file, text, how, table, lambda: _read_row_by_row(table, work)):
            return found
    return _read_row_by_row(table, work)


def _read_row_by_row(table: JsonTable, work: Work) -> Found:
    rows, _ = _count(row.raw for row in table.rows())
    return _load_row_by_row(table.rows(), work(), count_room(rows, table.raw.nbytes), table.title)


def _count(rows: Iterable[Json]) -> tuple[int, int]:
    """Rows and columns. It stops counting columns once there are too many to load."""
    count, names = 0, set[str]()
    for row in rows:
        count += 1
        try:
            if len(names) <= MAX_COLUMNS:
                names.update(Members.decode(row))
        except UNREADABLE:
            continue  # it is counted as bad when it is read
    return count, len(names)


def _read_at_once(file: Path, text: Text, how: str, table: JsonTable, otherwise: Callable[[], Found]) -> Found | None:
    """What DuckDB suggests for the first rows holds for all if they can be decoded so. Otherwise it looks at all of them."""
    rows, types = 0, dict[str, tuple[Any, str]]()
    with duckdb.connect(config={"threads": 2}) as connection:
        for sample in (_SAMPLED_ROWS, -1):
            try:
                relation = connection.sql(f"FROM read_json({quote(str(file))}, {how}, sample_size={sample}, {_OPTIONS})")
                types = {name: _choose_type(kind) for name, kind in zip(relation.columns, relation.types, strict=True)}
                rows = rows or _check(text, how, {name: check for name, (check, _) in types.items()})
                break
            except msgspec.ValidationError:
                rows, columns = _count(row.raw for row in (_lines(text) if how == _LINES else table.rows()))
                if columns > count_room(rows, len(text)) or _has_long(_LONG_NUMBER, text):
                    return None
            except (msgspec.DecodeError, RecursionError, KeyError, ValueError, duckdb.Error):  # or names with line ends
                return None
    columns = ", ".join(f"{quote(name)}: {quote(kind)}" for name, (_, kind) in types.items())
    if "rowid" in map(str.lower, types):  # which is how rows are numbered
        return None
    if len(types) > count_room(rows, len(text)) or ("DOUBLE" in columns and _has_long(_LONG_FRACTION, text)):
        return None
    reader = f"read_json({quote(str(file))}, {how}, columns={{{columns}}})"
    reader = f'(SELECT json AS "{VALUE}" FROM {reader})' if how == _VALUES else reader
    where = "rowid + 1" if how == _LINES else f"{quote(table.pointer + '/')} || rowid"
    return Found(reader, where, table.title, is_typed=True, rows=rows, otherwise=otherwise)


def _choose_type(kind: Any) -> tuple[Any, str]:
    """Raises KeyError if there is none that keeps all digits."""
    if str(kind) == "JSON":
        return None, "JSON"
    if kind.id == "list":
        check, spelling = _choose_type(kind.children[0][1])
        return list[Optional[check]], f"{spelling}[]"  # noqa: UP045
    if kind.id != "struct":
        return _SCALARS[kind.id]
    members = {name: _choose_type(member) for name, member in kind.children}
    spelt = ", ".join(f"{quote_name(name)} {spelling}" for name, (_, spelling) in members.items())
    return _make_struct({name: check for name, (check, _) in members.items()}), f"STRUCT({spelt})"


def _make_struct(types: dict[str, Any]) -> Any:
    """An object that has these members and no others."""
    fields = [(f"f{number}", Optional[check], None) for number, check in enumerate(types.values())]  # noqa: UP045
    renamed = {f"f{number}": name for number, name in enumerate(types)}
    return msgspec.defstruct("Members", fields, rename=renamed, forbid_unknown_fields=True, gc=False)


def _check(text: Text, how: str, types: dict[str, Any]) -> int:
    """Counts the rows, a few at a time. Raises msgspec.ValidationError at one that has other types or members."""
    row = Optional[types["json"]] if how == _VALUES else _make_struct(types)  # noqa: UP045
    decoder: msgspec.json.Decoder[Any] = msgspec.json.Decoder(row if how == _LINES else list[row])
    start, end = (0, len(text)) if how == _LINES else (text.find(b"[") + 1, text.rfind(b"]"))
    if how != _LINES and text[end + 1 :].strip():
        raise msgspec.DecodeError("Something follows the array.")
    colon = text.find(b":", start, start + _BLOCK_BYTES) + 1
    mark = b"\n" if how == _LINES else b"," if how == _VALUES else text[start:colon].lstrip()
    rows = 0
    while start < end:
        near, stop = start + _CHECKED_BYTES, end
        for tries in range(_MAX_TRIES):
            while (
                (near := text.find(mark, near, end)) >= 0
                and mark[:1] == b"{"
                and not text[near - 64 : near].rstrip().endswith(b",")
            ):
                near += 1  # not the first member of a list
            stop = end if near < 0 else near if how == _LINES else text.rfind(b",", start, near + 1)
            try:
                part = text[start:stop]
                rows += len(decoder.decode_lines(part) if how == _LINES else decoder.decode(b"[%b]" % part))
                break
            except msgspec.ValidationError:
                raise
            except msgspec.DecodeError:
                if near < 0 or tries + 1 == _MAX_TRIES:
                    raise
                near += 1  # that was inside a row
        start = stop + 1
    return rows


def _has_long(number: bytes, text: Text) -> bool:
    """Whether there may be numbers that DuckDB would round."""
    blocks = (text[start : start + _BLOCK_BYTES + len(number)] for start in range(0, len(text), _BLOCK_BYTES))
    return any(number in block.translate(_TO_ZEROS) for block in blocks)


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


def _load_row_by_row(
    rows: Iterable[JsonRow], target: Path, room: int, title: str = "", *, has_line_numbers: bool = False
) -> Found:
    """For what DuckDB does not read, or not exactly: keys that occur twice, numbers that do not fit, half characters, rows that
    are no objects, lines that are no JSON, and more columns than there is `room` for."""
    bad = written = 0
    columns = _Columns(room)
    with target.open("wb") as file:
        for row in rows:
            try:
                value = _parse(bytes(row.raw))
            except (ValueError, RecursionError):
                bad += 1
                continue
            cells: dict[str, Any] = cast("dict[str, Any]", value) if isinstance(value, dict) else {VALUE: value}
            key = {KEY: row.key} if row.key else {}
            line = json.dumps({ROW: row.where, **key, **columns.choose(cells)}, ensure_ascii=False)
            written += 1
            file.write(line.encode("utf-8", "surrogatepass").decode("utf-8", "replace").encode() + b"\n")
    reader = f"read_json({quote(str(target))}, format='newline_delimited', records=true, sample_size=-1, {_OPTIONS})"
    where = f'TRY_CAST("{ROW}" AS BIGINT)' if has_line_numbers else f'"{ROW}"'
    return Found(reader, where, title, is_typed=True, hidden=(ROW,), rows=written, bad_rows=bad, note=columns.note)


def _parse(raw: bytes) -> Any:
    return json.loads(raw, object_pairs_hook=_make_object, parse_constant=str, parse_float=read_float, parse_int=_read_int)


def _make_object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    names = [name for name, _ in pairs]
    if len({name.lower() for name in names}) < len(names) or "" in names or ROW in names:
        names = make_unique(names)
    return dict(zip(names, (value for _, value in pairs), strict=True))


def _read_int(digits: str) -> int | str:
    return int(digits) if len(digits) <= _MAX_INT_CHARS else digits
