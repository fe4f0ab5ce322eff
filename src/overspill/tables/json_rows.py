"""The cells of a row of JSON, by path: `status.phase` for a member of an object inside the row."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, cast

import msgspec

from overspill.tables.json_text import convert_literal, read_float
from overspill.tables.table import ROW, make_unique
from overspill.text.lenient_json import UNREADABLE
from overspill.text.regex import regex

KEY = "_key"
"""The column with the keys of rows that have keys."""
VALUE = "value"
"""The column of rows that are no objects."""
_MAX_PATH_DEPTH = 3
"""How deep members of a row are columns of their own."""
_MAX_INT_CHARS = 18  # that are sure to fit 64 bits
_MEMBER_KEY = regex(rb"(?s)(\"[^\"\\]*+(?:\\.[^\"\\]*+)*+\"|'[^'\\]*+(?:\\.[^'\\]*+)*+')\s*+:\s*+")
_DECODER = msgspec.json.Decoder(float_hook=read_float)


def read_cells(row: msgspec.Raw | bytes | memoryview, key: str = "", *, merges_lists: bool = False) -> dict[str, object]:
    """Nothing if it is not JSON. `key` is that of a row that has one; a member of an object has its own."""
    try:
        value: Any = _DECODER.decode(row)
    except UNREADABLE:
        try:
            value = _DECODER.decode(convert_literal(bytes(row)))
        except UNREADABLE:
            return {}
    fields: dict[str, Any] = cast("dict[str, Any]", value) if isinstance(value, dict) else {VALUE: value}
    is_flat = not merges_lists and dict not in map(type, fields.values())
    cells: dict[str, object] = fields if is_flat else dict(_flatten(fields, "", 0, merges_lists))
    return {KEY: key, **cells} if key else cells


def read_exactly(raw: bytes, key: str = "") -> dict[str, Any] | None:
    """The fields of a row as they are, without paths. Numbers that would be rounded are text, and names that occur twice differ.
    None if it is not JSON."""
    try:
        value = json.loads(
            raw,
            object_pairs_hook=name_fields,
            parse_constant=str,
            parse_float=read_float,
            parse_int=lambda digits: int(digits) if len(digits) <= _MAX_INT_CHARS else digits,
        )
    except (ValueError, RecursionError):
        return None
    fields: dict[str, Any] = cast("dict[str, Any]", value) if isinstance(value, dict) else {VALUE: value}
    return {KEY: key, **fields} if key else fields


def name_fields(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Names that occur twice differ."""
    names = [name for name, _ in pairs]
    if len({name.lower() for name in names}) < len(names) or "" in names or ROW in names:
        names = make_unique(names)
    return dict(zip(names, (value for _, value in pairs), strict=True))


def split_member(raw: bytes) -> tuple[str, bytes]:
    """The key and the value of a member of an object. What has no key is all value."""
    if not (found := _MEMBER_KEY.match(raw)):
        return "", raw
    try:
        return str(_DECODER.decode(convert_literal(found[1]) if raw[:1] == b"'" else found[1])), raw[found.end() :]
    except UNREADABLE:
        return found[1].decode("utf-8", "replace"), raw[found.end() :]


def write_cell(cell: object) -> str:
    return cell if isinstance(cell, str) else msgspec.json.encode(cell).decode()


def _flatten(fields: dict[str, Any], above: str, depth: int, merges_lists: bool) -> Iterator[tuple[str, object]]:
    for key, field in fields.items():
        if isinstance(field, dict) and field and depth < _MAX_PATH_DEPTH:
            yield from _flatten(cast("dict[str, Any]", field), f"{above}{key}.", depth + 1, merges_lists)
        elif merges_lists and (members := _merge_members(cast(object, field))):
            yield from ((f"{above}{key}.{name}", held) for name, held in members.items())
        else:
            yield above + key, cast(object, field)


def _merge_members(field: object) -> dict[str, list[object]]:
    """What the objects of a list have, by name: the lines of an order have products. Empty if it is another list."""
    merged: dict[str, list[object]] = {}
    for member in cast("list[object]", field) if isinstance(field, list) else ():
        if isinstance(member, dict):
            for name, held in _flatten(cast("dict[str, Any]", member), "", _MAX_PATH_DEPTH - 1, merges_lists=False):
                merged.setdefault(name, []).append(held)
    return merged
