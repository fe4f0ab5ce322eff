"""JSON: the tables that the room finds in it, read by DuckDB where it reads all rows exactly, otherwise row by row."""

from __future__ import annotations

import mmap
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, Literal, TypeAlias

import msgspec
from msgspec.structs import replace

from overspill.sql.tables.json_type import JsonType, quote
from overspill.sql.tables.table import Found, RowWriter, count_room, join_notes
from overspill.tables.json_rows import read_exactly
from overspill.tables.json_tables import JsonTable, find_json_tables, is_list_of_rows
from overspill.tables.json_text import hold_json
from overspill.tables.table import MAX_TABLES, FoundTable, JsonRows, Row
from overspill.text.humanize import count_noun
from overspill.text.lines import iterate_lines

_LONG_FRACTION = b"." + b"0" * 18
_TO_ZEROS = bytes.maketrans(b"123456789", b"0" * 9)
_BLOCK_BYTES = 1 << 20
_CHECKED_BYTES = 1 << 16
"""How many are checked in one call, about: their values are all in memory."""
_MAX_TRIES = 30
"""To find the end of a row near there."""
_MAX_LEARNT = 4
"""Parts from which types are learnt. Each begins the check anew."""

Work: TypeAlias = Callable[[], Path]
Text: TypeAlias = mmap.mmap | bytes
Layout: TypeAlias = Literal["array", "newline_delimited"]


def find_in_document(source: Path, text: Text, work: Work) -> list[Found]:
    whole = JsonTable(memoryview(text))
    if is_list_of_rows(whole.raw) and (found := _read_at_once(source, text, "array", whole, partial(_write_table, whole, work))):
        return [found]
    held = hold_json(text)
    first = held.documents[0]
    alone = JsonTable(first, shape="list" if bytes(first[:1]) == b"[" else "value")
    read = [_read_table(table, work) for table in islice(find_json_tables(held.documents), MAX_TABLES + 1)]
    read = read or [_write_table(alone, work)]
    around = f"{count_noun(held.around, 'byte')} of text around the JSON left out." if held.around else ""
    return [replace(read[0], note=join_notes(read[0].note, around)), *read[1:]]


def find_lines(source: Path, text: Text, work: Work) -> list[Found]:
    def write() -> Found:
        return _write_rows(_read_lines(text), work())

    is_numbered = text.find(b"\n\n") < 0 and text.find(b"\n\r\n") < 0 and text[:1] not in b"\r\n\xef"
    return [(is_numbered and _read_at_once(source, text, "newline_delimited", JsonTable(memoryview(text)), write)) or write()]


def _read_lines(text: Text) -> Iterator[Row]:
    for number, (start, end) in enumerate(iterate_lines(text, 0, len(text)), 1):
        if line := text[start:end].strip(b" \t\r\n\xef\xbb\xbf"):
            yield Row(number, (start, end), read_exactly(line))


def _read_table(table: JsonTable, work: Work) -> Found:
    if table.shape == "list":
        file, text = work(), bytes(table.raw)
        file.write_bytes(text)
        if found := _read_at_once(file, text, "array", table, partial(_write_table, table, work)):
            return found
    return _write_table(table, work)


def _write_table(table: JsonTable, work: Work) -> Found:
    rows = (Row(row.where, (0, 0), read_exactly(bytes(row.raw), row.key)) for row in table.rows())
    return _write_rows(rows, work(), table.title)


def _write_rows(rows: Iterable[Row], file: Path, title: str = "") -> Found:
    """For what DuckDB does not read, or not exactly: keys that occur twice, numbers that do not fit, half characters, rows that
    are no objects, lines that are no JSON, and more columns than there is room for."""
    writer = RowWriter(file, FoundTable(JsonRows(), title=title))
    for row in rows:
        writer.write(row)
    return writer.finish()


def _read_at_once(file: Path, text: Text, layout: Layout, table: JsonTable, otherwise: Callable[[], Found]) -> Found | None:
    """None if DuckDB would not read all of it exactly."""
    try:
        types, rows = _learn_types(text, layout)
    except (msgspec.DecodeError, KeyError, ValueError, RecursionError):  # or names with line ends
        return None
    kinds = {name: inner.spell() for name, inner in types.inside.items()}
    columns = ", ".join(f"{quote(name)}: {quote(kind)}" for name, kind in kinds.items())
    if "rowid" in map(str.lower, kinds) or types.count > count_room(rows, len(text)):  # rowid is how rows are numbered
        return None
    where = "rowid + 1" if layout == "newline_delimited" else f"{quote(table.pointer + '/')} || rowid"
    reader = f"read_json({quote(str(file))}, format={quote(layout)}, records=true, columns={{{columns}}})"
    return Found(reader, where, table.title, is_typed=True, rows=rows, otherwise=otherwise)


def _learn_types(text: Text, layout: Layout) -> tuple[JsonType, int]:
    """What the first rows have holds for all if they can be decoded so; where some have something else, that is learnt too.
    Counts the rows. Raises msgspec.DecodeError if they cannot be decoded, and KeyError if DuckDB would change them."""
    is_lines = layout == "newline_delimited"
    begin, end = (0, len(text)) if is_lines else (text.find(b"[") + 1, text.rfind(b"]"))
    if not is_lines and text[end + 1 :].strip():
        raise msgspec.DecodeError("Something follows the array.")

    def read(part: bytes, kind: Any) -> list[Any]:
        return decoders[kind].decode_lines(part) if is_lines else decoders[kind].decode(b"[%b]" % part)

    def make(kind: Any) -> msgspec.json.Decoder[Any]:
        return msgspec.json.Decoder(kind if is_lines else list[kind])

    decoders = {"any": make(Any), "checked": make(None)}
    types, learnt, rows, start = JsonType(), 0, 0, begin
    while start < end:
        for stop in _find_row_ends(text, begin, start, end, _CHECKED_BYTES if learnt else _BLOCK_BYTES, is_lines=is_lines):
            part = text[start:stop]
            if _LONG_FRACTION in part.translate(_TO_ZEROS):
                raise KeyError("numbers that would be rounded")
            try:
                rows, start = rows + len(read(part, "checked")), stop + 1
            except msgspec.ValidationError:
                try:
                    values = read(part, "any")
                except msgspec.DecodeError:
                    continue
                if learnt == _MAX_LEARNT:
                    raise
                for value in values:
                    types.add(value)
                decoders["checked"] = make(types.check())
                learnt, rows, start = learnt + 1, 0, begin
            except msgspec.DecodeError:
                continue  # that was inside a row
            break
        else:
            raise msgspec.DecodeError("No row ends there.")
    return types, rows


def _find_row_ends(text: Text, begin: int, start: int, end: int, size: int, *, is_lines: bool) -> Iterator[int]:
    """Where the rows from `start` on may end, after so many bytes; at last, where all of them do."""
    colon = text.find(b":", begin, begin + _BLOCK_BYTES) + 1
    mark = b"\n" if is_lines else text[begin:colon].lstrip()
    near = start + size
    for _ in range(_MAX_TRIES):
        while (near := text.find(mark, near, end)) >= 0 and not is_lines and not text[near - 64 : near].rstrip().endswith(b","):
            near += 1  # not the first member of a list
        if near < 0:
            break
        yield near if is_lines else text.rfind(b",", start, near + 1)
        near += 1
    if near < 0:
        yield end
