"""Finds the tables in JSON: arrays of objects, and documents one after the other. Also mends JSON that was cut off."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain
from math import isfinite
from typing import Any, cast

import msgspec
from msgspec import Raw, Struct

from overspill.lexical.records.tree import json_tree
from overspill.reading.query.document import Value, is_array, is_object, open_raw

_MIN_ROWS = 3
_MIN_OBJECT_SHARE = 0.8
_MAX_DEPTH = 3
"""How deep tables are looked for."""
_TRIED_ROWS = 200
_MAX_MEMBERS = 40
"""Members of one object in which tables are looked for."""
_MAX_PATH_DEPTH = 3
"""How deep members of a row are columns of their own."""


def _read_float(digits: str) -> float | str:
    return number if isfinite(number := float(digits)) else digits


_DECODER = msgspec.json.Decoder(dict[str, Any], float_hook=_read_float)
_ROWS_DECODER = msgspec.json.Decoder(list[dict[str, Any]], float_hook=_read_float)


class JsonTable(Struct, frozen=True):
    pointer: str
    rows: Sequence[Raw]

    @property
    def bytes(self) -> int:
        """About: from some of them."""
        step = len(self.rows) // _TRIED_ROWS + 1
        return step * sum(len(memoryview(row)) for row in self.rows[::step])


def find_json_tables(found: Sequence[Value]) -> list[JsonTable]:
    """`found`: the JSON documents in the output."""
    if len(found) == 1:
        return list(_walk(found[0], "", 0))
    return [JsonTable("", found)] if _are_rows(found) else []


def _walk(value: Value, pointer: str, depth: int) -> Iterator[JsonTable]:
    opened = open_raw(value)
    if is_array(opened) and _are_rows(opened):
        yield JsonTable(pointer, opened)
    elif is_object(opened) and depth < _MAX_DEPTH:
        for key, member in list(opened.items())[:_MAX_MEMBERS]:
            if isinstance(member, Raw) and bytes(memoryview(member)[:1]) in (b"{", b"["):
                yield from _walk(member, f"{pointer}/{key}", depth + 1)


def _are_rows(values: Sequence[Value]) -> bool:
    some = values[:: len(values) // _TRIED_ROWS + 1]
    objects = sum(isinstance(value, Raw) and bytes(memoryview(value)[:1]) == b"{" for value in some)
    return objects >= max(_MIN_ROWS, _MIN_OBJECT_SHARE * len(some))


def read_row(row: Raw) -> dict[str, object]:
    """Its cells by path: `status.phase` for a member of an object inside the row."""
    try:
        return _flatten(_DECODER.decode(row), "", 0, {})
    except (msgspec.DecodeError, RecursionError):
        return {}


def _flatten(fields: dict[str, Any], above: str, depth: int, cells: dict[str, object]) -> dict[str, object]:
    for key, value in fields.items():
        if isinstance(value, dict) and value and depth < _MAX_PATH_DEPTH:
            _flatten(cast("dict[str, Any]", value), f"{above}{key}.", depth + 1, cells)
        else:
            cells[above + key] = value
    return cells


def read_cells(rows: Sequence[Raw], most: int) -> dict[str, list[object]] | None:
    """The cells of all rows by path, as `read_row` has them. None if there are more than `most`, or a row is not read."""
    try:
        found = _ROWS_DECODER.decode(b"[" + b",".join(map(bytes, rows)) + b"]")
    except (msgspec.DecodeError, RecursionError):
        return None
    columns: dict[str, list[object]] = {}
    return columns if _add_columns(found, "", 0, most, columns) else None


def _add_columns(rows: list[dict[str, Any]], above: str, depth: int, most: int, columns: dict[str, list[object]]) -> bool:
    keys = dict.fromkeys(chain.from_iterable(rows))
    if len(keys) > most:
        return False
    for key in keys:
        cells: list[Any] = [row.get(key) for row in rows]
        if depth < _MAX_PATH_DEPTH and dict in set(map(type, cells)):
            inner: list[dict[str, Any]] = [cell if isinstance(cell, dict) else {} for cell in cells]
            if not _add_columns(inner, f"{above}{key}.", depth + 1, most, columns):
                return False
            cells = [None if isinstance(cell, dict) and cell else cell for cell in cells]
            if cells.count(None) == len(cells):
                continue
        columns[above + key] = cells
    return len(columns) <= most


def mend_json(head: bytes) -> bytes:
    """The beginning of a JSON document, without what is cut off, and closed. Empty if nothing in it is whole."""
    tree = json_tree(head, 0, len(head))
    whole = [node for node in range(len(tree.starts)) if tree.ends[node] < len(head)]
    last = max(whole, key=lambda node: tree.ends[node], default=-1)
    if last < 0:
        return b""
    closing = bytearray()
    node = tree.parents[last]
    while node >= 0:
        closing += b"]" if node in tree.arrays else b"}"
        node = tree.parents[node]
    return head[: tree.ends[last]] + bytes(closing)
