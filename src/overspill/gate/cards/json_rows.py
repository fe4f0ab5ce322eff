"""Finds the tables in JSON: arrays of objects, and documents one after the other. Also mends JSON that was cut off."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
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
_MAX_MEMBERS = 100
"""Members of one object in which tables are looked for."""
_MAX_PATH_DEPTH = 3
"""How deep members of a row are columns of their own."""


def _read_float(digits: str) -> float | str:
    return number if isfinite(number := float(digits)) else digits


_DECODER = msgspec.json.Decoder(dict[str, Any], float_hook=_read_float)


class JsonTable(Struct, frozen=True):
    pointer: str
    rows: Sequence[Raw]

    @property
    def bytes(self) -> int:
        return sum(len(memoryview(row)) for row in self.rows)


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
    objects = sum(isinstance(value, Raw) and bytes(memoryview(value)[:1]) == b"{" for value in values)
    return objects >= max(_MIN_ROWS, _MIN_OBJECT_SHARE * len(values))


def read_row(row: Raw) -> dict[str, object]:
    """Its cells by path: `status.phase` for a member of an object inside the row."""
    try:
        return dict(_flatten(_DECODER.decode(row), "", 0))
    except (msgspec.DecodeError, RecursionError):
        return {}


def _flatten(fields: dict[str, Any], above: str, depth: int) -> Iterator[tuple[str, object]]:
    for key, value in fields.items():
        if isinstance(value, dict) and value and depth < _MAX_PATH_DEPTH:
            yield from _flatten(cast("dict[str, Any]", value), f"{above}{key}.", depth + 1)
        else:
            yield above + key, cast(object, value)


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
