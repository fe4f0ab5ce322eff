"""The cells of a JSON row by path: `status.phase` for a member of an object inside the row."""

from __future__ import annotations

import json
from functools import partial
from typing import Any, cast

import msgspec

from overspill.tables.json_text import convert_literal, read_float
from overspill.tables.table import ROW, make_unique
from overspill.text.lenient_json import UNREADABLE
from overspill.text.regex import regex

KEY = "_key"
"""The column for the keys of rows, if they have keys."""
VALUE = "value"
"""The column for rows that are not objects."""
_MAX_PATH_DEPTH = 3
"""How deep a nested member may be and still get a column."""
_MAX_INT_CHARS = 18  # always fit into 64 bits
_MEMBER_KEY = regex(rb"(?s)(\"[^\"\\]*+(?:\\.[^\"\\]*+)*+\"|'[^'\\]*+(?:\\.[^'\\]*+)*+')\s*+:\s*+")
_DECODER = msgspec.json.Decoder(float_hook=read_float)


def read_cells(row: msgspec.Raw | bytes | memoryview, key: str = "", *, merges_lists: bool = False) -> dict[str, object]:
    """The cells of a row by path; empty if it is not JSON. `key`: the row's key; a member of an object has its own."""
    try:
        value: Any = _DECODER.decode(row)
    except UNREADABLE:
        try:
            value = _DECODER.decode(convert_literal(bytes(row)))
        except UNREADABLE:
            return {}
    fields: dict[str, Any] = cast("dict[str, Any]", value) if isinstance(value, dict) else {VALUE: value}
    is_flat = ({dict, list} if merges_lists else {dict}).isdisjoint(map(type, fields.values()))
    cells: dict[str, object] = fields if is_flat else _flatten(fields, "", 0, {}, merges_lists=merges_lists)
    return {KEY: key, **cells} if key else cells


def read_exactly(raw: bytes, key: str = "") -> dict[str, Any] | None:
    """A row's fields, without paths. Numbers that would be rounded become text; names become unique. None if it is not JSON."""
    try:
        value = _load(raw, parse_int=lambda digits: int(digits) if len(digits) <= _MAX_INT_CHARS else digits)
    except (ValueError, RecursionError):
        return None
    fields: dict[str, Any] = cast("dict[str, Any]", value) if isinstance(value, dict) else {VALUE: value}
    return {KEY: key, **fields} if key else fields


def name_fields(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Makes repeated names unique."""
    names = [name for name, _ in pairs]
    if len({name.lower() for name in names}) < len(names) or "" in names or ROW in names:
        names = make_unique(names)
    return dict(zip(names, (value for _, value in pairs), strict=True))


_load = partial(json.loads, object_pairs_hook=name_fields, parse_constant=str, parse_float=read_float)


def respell(raw: bytes) -> bytes:
    """JSON as every reader takes it, even with NaN or with a key twice. Raises ValueError or RecursionError if it is not JSON."""
    return json.dumps(_load(raw)).encode()


def split_member(raw: bytes) -> tuple[str, bytes]:
    """The key and the value of an object's member. The key is empty if there is only a value."""
    if not (found := _MEMBER_KEY.match(raw)):
        return "", raw
    try:
        return str(_DECODER.decode(convert_literal(found[1]) if raw[:1] == b"'" else found[1])), raw[found.end() :]
    except UNREADABLE:
        return found[1].decode("utf-8", "replace"), raw[found.end() :]


def write_cell(cell: object) -> str:
    return cell if isinstance(cell, str) else msgspec.json.encode(cell).decode()


def _flatten(fields: dict[str, Any], above: str, depth: int, cells: dict[str, Any], *, merges_lists: bool) -> dict[str, Any]:
    """Adds the fields to `cells` by path."""
    for key, field in fields.items():
        if isinstance(field, dict) and field and depth < _MAX_PATH_DEPTH:
            _flatten(cast("dict[str, Any]", field), f"{above}{key}.", depth + 1, cells, merges_lists=merges_lists)
        elif merges_lists and isinstance(field, list) and (members := _merge_members(cast("list[object]", field))):
            cells.update((f"{above}{key}.{name}", values) for name, values in members.items())
        else:
            cells[above + key] = field
    return cells


def _merge_members(field: list[object]) -> dict[str, list[object]]:
    """The members of a list's objects, by name: the lines of an order have products. Empty if the list has other elements."""
    merged: dict[str, list[object]] = {}
    for member in field:
        if isinstance(member, dict):
            for name, held in _flatten(cast("dict[str, Any]", member), "", _MAX_PATH_DEPTH - 1, {}, merges_lists=False).items():
                merged.setdefault(name, []).append(held)
    return merged
